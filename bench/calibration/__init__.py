"""Fit what the scores of a search mean, and measure how well they mean it."""
