"""Speed of the gateway, and its behaviour under overload."""
