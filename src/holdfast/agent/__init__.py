"""An agent that remembers: curated files always, a Memory Gateway as a best-effort second layer, and one loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.agent.memory import AgentMemory

__all__ = ["AgentMemory"]


def __getattr__(name: str) -> Any:
    """Imported when it is asked for: whoever needs one module of the agent does not load all of them."""
    if name == "AgentMemory":
        from holdfast.agent.memory import AgentMemory

        return AgentMemory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
