"""Holdfast's clients: a memory behind a server, and the Memory Gateway's own three calls."""
