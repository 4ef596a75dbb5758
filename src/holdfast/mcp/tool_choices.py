"""The sets of tools that a server can offer, by name: simple, company and runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from holdfast.control.tool_sets import ToolMemory, ToolSet
from holdfast.control.tools import COMPANY_TOOLS
from holdfast.mcp.session import ToolCaller
from holdfast.mcp.simple_tools import SIMPLE_TOOLS


class ToolChoice(StrEnum):
    """A set of tools: the default for assistants, or the memory of a company's agents."""

    SIMPLE = "simple"
    COMPANY = "company"


@dataclass(frozen=True, slots=True)
class ServedTools:
    """A set of tools, and the memory that they call for a caller."""

    tools: ToolSet
    memory_of: Callable[[ToolCaller], ToolMemory]


SERVED_TOOLS = {
    ToolChoice.SIMPLE: ServedTools(SIMPLE_TOOLS, lambda caller: caller.memory),
    ToolChoice.COMPANY: ServedTools(COMPANY_TOOLS, lambda caller: caller.plane),
}
