"""Measurements of Holdfast beside its peers. Nothing here is part of the library."""
