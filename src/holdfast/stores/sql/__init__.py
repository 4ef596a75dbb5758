"""What the stores over SQL share: one implementation of the ports over a thin handle and a small dialect."""
