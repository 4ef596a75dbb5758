"""Cost of the agent's loop beyond the three gateway calls of each turn."""
