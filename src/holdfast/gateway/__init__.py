"""The Memory Gateway: the engine's service port over HTTP, for agents in any language."""
