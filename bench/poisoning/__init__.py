"""Measure attacks that try to plant, end or hide memories."""
