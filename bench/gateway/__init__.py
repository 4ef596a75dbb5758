"""How fast the gateway is, and how it behaves when too much is asked of it."""
