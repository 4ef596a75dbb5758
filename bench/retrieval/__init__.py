"""Evidence recall and speed of memory systems on real conversations. Run it with `python -m bench.retrieval`."""
