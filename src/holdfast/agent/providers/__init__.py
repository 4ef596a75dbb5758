"""The models that an agent speaks with: one module a provider, each behind `ChatModel`."""
