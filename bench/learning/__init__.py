"""Facts that Holdfast learns from plain lines of conversation. Run it with `python -m bench.learning`."""
