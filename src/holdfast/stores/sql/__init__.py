"""The implementation of the ports that all SQL stores share, over a thin connection handle and a small dialect."""
