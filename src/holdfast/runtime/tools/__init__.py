"""Registries of a host's tools, and what is learned from calls of them."""
