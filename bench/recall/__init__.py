"""Answers that `recall` puts before a model, and questions on which it should stay silent. `python -m bench.recall`."""
