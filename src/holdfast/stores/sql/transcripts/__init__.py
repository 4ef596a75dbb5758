"""The repository of transcripts: turns in order, their states, checks, and their part of a forget."""
