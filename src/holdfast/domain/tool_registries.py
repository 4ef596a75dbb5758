"""Registries of a host's tools: compact snapshots and fingerprints. Full schemas are neither taken nor stored.

Tools belong to the host, which installs and runs them. Names follow a narrow pattern, so that none of them can carry a
sentence into a prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from holdfast.domain.canonical import fingerprint
from holdfast.domain.checks import checked_flag, checked_instance, checked_instances
from holdfast.domain.presentable import Presentable
from holdfast.domain.times import checked_iso_time
from holdfast.domain.transcript_turns import checked_member
from holdfast.errors import InvalidInput

MAX_REGISTRIES = 64
MAX_TOOLS = 512
MAX_TAGS = 16
MAX_NAME_CHARS = 128
FINGERPRINT_MISMATCH = "agent_tool_registry_fingerprint_mismatch"
_NAME = re.compile(r"\w[\w.:/@+-]*")
_TITLE = re.compile(r"\w[\w .:/@+()&,'-]*")


class RegistryOwner(StrEnum):
    HOST_RUNTIME = "host_runtime"
    AGENT_TOOLS = "agent_tools"
    REQUEST_SCOPED_GATEWAY = "request_scoped_gateway"


class RegistryScope(StrEnum):
    GLOBAL = "global"
    OWNER = "owner"
    PROJECT = "project"
    WORKSPACE = "workspace"
    CONVERSATION = "conversation"


@dataclass(frozen=True, slots=True)
class ToolRegistryRef:
    """A registry as the host knows it now. With another fingerprint or scope than the registered one it has drifted."""

    registry_id: str
    fingerprint: str
    scope: str = RegistryScope.GLOBAL.value


@dataclass(frozen=True, slots=True)
class AgentTool(Presentable):
    """A tool by name and fingerprints. `schema_fingerprint` is the contract that experience rests on."""

    tool_id: str
    schema_fingerprint: str
    display_name: str = ""
    version: str = ""
    descriptor_fingerprint: str = ""
    permission_tags: tuple[str, ...] = ()
    risk_tags: tuple[str, ...] = ()
    tool_groups: tuple[str, ...] = ()
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class AgentToolRegistry(Presentable):
    """A snapshot of a host's tools. Without a fingerprint or a time, it gets its own fingerprint, and the time of now.

    A fingerprint that is given must be that of the content; `registry_fingerprint` computes it.
    """

    _summary = ("registry_id", "scope", "fingerprint", "tools")

    registry_id: str
    tools: tuple[AgentTool, ...]
    namespace: str = "default"
    owner: RegistryOwner = RegistryOwner.HOST_RUNTIME
    scope: RegistryScope = RegistryScope.GLOBAL
    fingerprint: str | None = None
    registered_at: datetime | None = None

    @property
    def ref(self) -> ToolRegistryRef:
        return ToolRegistryRef(self.registry_id, self.fingerprint or registry_fingerprint(self), str(self.scope))

    @property
    def by_id(self) -> Mapping[str, AgentTool]:
        return {tool.tool_id: tool for tool in self.tools}

    def to_snapshot(self) -> str:
        """Return the registry as it is stored."""
        return json.dumps(self.to_dict(), ensure_ascii=False, sort_keys=True)

    @classmethod
    def from_snapshot(cls, text: str) -> Self:
        parts = json.loads(text)
        tools = tuple(AgentTool(**{**each, **_tags_of(each)}) for each in parts.pop("tools"))
        registered_at = datetime.fromisoformat(parts.pop("registered_at"))
        owner, scope = RegistryOwner(parts.pop("owner")), RegistryScope(parts.pop("scope"))
        return cls(tools=tools, registered_at=registered_at, owner=owner, scope=scope, **parts)


_TAGS = ("permission_tags", "risk_tags", "tool_groups")


class RegistrySnapshot:
    """A stored registry of which few tools are read: a recall must not build hundreds."""

    __slots__ = ("_tools", "ref")

    def __init__(self, text: str) -> None:
        parts = json.loads(text)
        self.ref = ToolRegistryRef(parts["registry_id"], parts["fingerprint"], parts["scope"])
        self._tools = {tool["tool_id"]: tool for tool in parts["tools"]}

    def find_tool(self, tool_id: str) -> AgentTool | None:
        found = self._tools.get(tool_id)
        return None if found is None else AgentTool(**{**found, **_tags_of(found)})


def _tags_of(parts: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(parts[name]) for name in _TAGS}


def registry_fingerprint(registry: AgentToolRegistry) -> str:
    """Compute the fingerprint of a registry's content: the order of tools and tags, and the time, do not matter."""
    tools = sorted((_content_of(tool) for tool in registry.tools), key=lambda each: str(each["tool_id"]))
    parts = {name: str(getattr(registry, name)) for name in ("registry_id", "namespace", "owner", "scope")}
    return fingerprint({**parts, "tools": tools})


def schema_fingerprint(schema: Mapping[str, Any]) -> str:
    """Compute a fingerprint of a tool's JSON schema, for hosts that have none: the schema itself stays with them."""
    return fingerprint(schema)


def _content_of(tool: AgentTool) -> dict[str, Any]:
    sets = {name: sorted(set(getattr(tool, name))) for name in _TAGS}
    return {name: getattr(tool, name) for name in AgentTool.__slots__} | sets


# --- checks -----------------------------------------------------------------------------------------------------------


def checked_registry(given: object) -> AgentToolRegistry:
    """Return the registry with its members as enumerations, and tools and tags in order."""
    registry = checked_instance(given, AgentToolRegistry, "registry")
    checked_name(registry.registry_id, "registry_id")
    checked_name(registry.namespace, "namespace")
    tools = checked_instances(registry.tools, AgentTool, "tools")
    if len(tools) > MAX_TOOLS:
        raise InvalidInput("tools", f"has {len(tools):,} entries; at most {MAX_TOOLS:,} are allowed")
    checked = [_checked_tool(tool, f"tools[{place}]") for place, tool in enumerate(tools)]
    if len({tool.tool_id for tool in checked}) < len(checked):
        raise InvalidInput("tools", "two of them have the same tool_id; give each its own")
    if registry.fingerprint is not None:
        checked_name(registry.fingerprint, "fingerprint")
    if registry.registered_at is not None:
        checked_iso_time(registry.registered_at, "registered_at")
    return replace(
        registry,
        tools=tuple(sorted(checked, key=lambda tool: tool.tool_id)),
        owner=checked_member(RegistryOwner, registry.owner, "owner"),
        scope=checked_member(RegistryScope, registry.scope, "scope"),
    )


def _checked_tool(tool: AgentTool, place: str) -> AgentTool:
    for name in ("tool_id", "schema_fingerprint"):
        checked_name(getattr(tool, name), f"{place}.{name}")
    for name in ("version", "descriptor_fingerprint"):
        if getattr(tool, name) != "":
            checked_name(getattr(tool, name), f"{place}.{name}")
    if tool.display_name != "":
        _checked_pattern(
            tool.display_name, f"{place}.display_name", _TITLE, "letters, digits, blanks and . : / @ + - ( )"
        )
    checked_flag(tool.disabled, f"{place}.disabled")
    tags: dict[str, Any] = {name: checked_tags(getattr(tool, name), f"{place}.{name}") for name in _TAGS}
    return replace(tool, **tags)


def checked_name(value: object, field: str) -> str:
    """Return a name of tools: nothing in it can be read as a sentence, a heading or another line."""
    return _checked_pattern(value, field, _NAME, "letters, digits and _ . : / @ + -")


def _checked_pattern(value: object, field: str, pattern: re.Pattern[str], allowed: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_NAME_CHARS or not pattern.fullmatch(value):
        raise InvalidInput(
            field, f"must be 1 to {MAX_NAME_CHARS} characters of {allowed}, and begin with a letter or digit"
        )
    return value


def checked_tags(values: object, field: str) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence) or len(values) > MAX_TAGS:
        raise InvalidInput(field, f"give a list of at most {MAX_TAGS} names")
    return tuple(sorted({checked_name(value, field) for value in values}))
