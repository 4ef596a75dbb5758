"""The sets of tools that a server can offer, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from holdfast.control.tool_sets import ToolMemory, ToolSet
from holdfast.control.tools import COMPANY_TOOLS
from holdfast.mcp.runtime_tools import RUNTIME_TOOLS, is_rejected
from holdfast.mcp.session import ToolCaller
from holdfast.mcp.simple_tools import SIMPLE_TOOLS

Meta = Mapping[str, Any] | None


class ToolChoice(StrEnum):
    """A set of tools: the few for assistants, those of a space's agents, or those of a runtime's host."""

    SIMPLE = "simple"
    COMPANY = "company"
    RUNTIME = "runtime"


@dataclass(frozen=True, slots=True)
class ServedTools:
    """A set of tools, and the memory that they call for a caller. `is_refusal` says if a result is an error."""

    tools: ToolSet
    memory_of: Callable[[ToolCaller, Meta], ToolMemory]
    is_refusal: Callable[[Mapping[str, Any]], bool] = lambda _: False


SERVED_TOOLS = {
    ToolChoice.SIMPLE: ServedTools(SIMPLE_TOOLS, lambda caller, _: caller.memory),
    ToolChoice.COMPANY: ServedTools(COMPANY_TOOLS, lambda caller, _: caller.plane),
    ToolChoice.RUNTIME: ServedTools(RUNTIME_TOOLS, lambda caller, meta: caller.runtime(meta), is_rejected),
}
