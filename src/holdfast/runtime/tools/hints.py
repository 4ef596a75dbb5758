"""Hints of tools for recall and projection: from governed experience with tools that are registered as they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from holdfast.domain.governance import Governance
from holdfast.domain.runtime_api.tools import AgentToolHint
from holdfast.domain.tool_experience import MAX_HINTS, ToolExperience
from holdfast.domain.tool_registries import AgentTool, AgentToolRegistry, ToolRegistryRef
from holdfast.ports import Reader


def find_hints(
    reader: Reader, governance: Governance, refs: Sequence[ToolRegistryRef], limit: int = MAX_HINTS
) -> tuple[AgentToolHint, ...]:
    """Return the best hints of this memory: of the registries that the host names, or of all that are registered."""
    if not governance.catalogue["agent_tool_registries"].visible:
        return ()
    scope = governance.identity.scope
    registered = reader.tools.registries(scope)
    tools = _usable_tools(registered, refs)
    if not tools:
        return ()
    hints = (_to_hint(experience, tools) for experience in reader.tools.leading(scope))
    return tuple(islice((hint for hint in hints if hint is not None), min(limit, MAX_HINTS)))


def _usable_tools(
    registered: Sequence[AgentToolRegistry], refs: Sequence[ToolRegistryRef]
) -> Mapping[tuple[str, str], AgentTool]:
    """Return the enabled tools by registry and id. A registry that the host knows otherwise has drifted."""
    current = set(refs)
    return {
        (registry.registry_id, tool.tool_id): tool
        for registry in registered
        if not refs or registry.ref in current
        for tool in registry.tools
        if not tool.disabled
    }


def _to_hint(experience: ToolExperience, tools: Mapping[tuple[str, str], AgentTool]) -> AgentToolHint | None:
    key, confidence = experience.key, experience.confidence
    tool = tools.get((key.registry_id, key.tool_id))
    if tool is None or confidence is None or tool.schema_fingerprint != key.schema_fingerprint:
        return None
    return AgentToolHint.of(experience, confidence, tool)
