"""An agent that remembers: curated files always, a Memory Gateway as a best-effort second layer, and one loop."""
