"""What the agent's loop costs beside the three calls to the gateway that each turn makes."""
