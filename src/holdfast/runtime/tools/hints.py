"""Hints of tools for recall and projection: from governed experience with tools that are registered as they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from holdfast.domain.governance import Governance
from holdfast.domain.runtime_api.tools import AgentToolHint
from holdfast.domain.tool_experience import MAX_HINTS, ToolExperience
from holdfast.domain.tool_registries import RegistrySnapshot, ToolRegistryRef
from holdfast.ports import Reader


def find_hints(
    reader: Reader, governance: Governance, refs: Sequence[ToolRegistryRef], limit: int = MAX_HINTS
) -> tuple[AgentToolHint, ...]:
    """Return the best hints of this memory: of the registries that the host names, or of all that are registered."""
    if not governance.catalogue["agent_tool_registries"].visible:
        return ()
    scope = governance.identity.scope
    current = set(refs)
    # A registry that the host knows otherwise has drifted.
    registered = {
        each.ref.registry_id: each for each in reader.tools.snapshots(scope) if not refs or each.ref in current
    }
    if not registered:
        return ()
    hints = (_to_hint(experience, registered) for experience in reader.tools.leading(scope))
    return tuple(islice((hint for hint in hints if hint is not None), min(limit, MAX_HINTS)))


def _to_hint(experience: ToolExperience, registered: Mapping[str, RegistrySnapshot]) -> AgentToolHint | None:
    key, confidence = experience.key, experience.confidence
    registry = registered.get(key.registry_id)
    tool = None if registry is None else registry.find_tool(key.tool_id)
    if tool is None or tool.disabled or confidence is None or tool.schema_fingerprint != key.schema_fingerprint:
        return None
    return AgentToolHint.of(experience, confidence, tool)
