"""Measurements of Holdfast and its peers. Nothing here is part of the library."""
