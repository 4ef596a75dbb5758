"""Values and pure decisions. No I/O, no clock, no randomness."""
