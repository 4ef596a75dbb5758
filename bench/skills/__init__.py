"""Measure whether learned skills save an agent tool calls."""
