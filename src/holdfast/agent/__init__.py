"""An agent with memory: curated files, a Memory Gateway as a best-effort second layer, and one loop."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.agent.loader import EngineLoader
    from holdfast.agent.loop import AgentLoop
    from holdfast.agent.memory import AgentMemory
    from holdfast.agent.result import AgentRunResult

__all__ = ["AgentLoop", "AgentMemory", "AgentRunResult", "EngineLoader"]
_WHERE = {"AgentLoop": "loop", "AgentMemory": "memory", "AgentRunResult": "result", "EngineLoader": "loader"}


def __getattr__(name: str) -> Any:
    """Import lazily: using one module of the agent does not load the others."""
    if name in _WHERE:
        return getattr(import_module(f"holdfast.agent.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
