"""Port of tool registries and of the experience with tools. Both belong to exactly the memory of a scope."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from holdfast.domain.scope import Scope
from holdfast.domain.tool_experience import ExperienceKey, ToolExperience
from holdfast.domain.tool_registries import AgentToolRegistry, RegistrySnapshot


class ExperienceCount(NamedTuple):
    """The tasks of one version of a tool, by its digest: those that give hints, and those that wait for repetition."""

    registry_digest: bytes
    governed: int
    deferred: int


class ToolReader(Protocol):
    def registries(self, scope: Scope) -> Sequence[AgentToolRegistry]:
        """Return the registries, by id."""

    def snapshots(self, scope: Scope) -> Sequence[RegistrySnapshot]:
        """Return the registries for looking up some of their tools."""

    def registry(self, scope: Scope, registry_id: str) -> AgentToolRegistry | None: ...

    def experience(self, scope: Scope, key: ExperienceKey) -> ToolExperience | None: ...

    def leading(self, scope: Scope) -> Iterator[ToolExperience]:
        """Yield the governed experience of each version of a tool with the task that speaks most for it.

        The order is that of hints: by confidence, successes and the time of the last, all descending.
        """

    def experience_count(self, scope: Scope) -> int: ...

    def count_versions(self, scope: Scope) -> Mapping[bytes, ExperienceCount]:
        """Count the experience with each version of a tool, by its digest."""


class ToolWriter(ToolReader, Protocol):
    def put_registry(self, scope: Scope, registry: AgentToolRegistry) -> None:
        """Store a snapshot in place of the earlier one of its id."""

    def delete_registry(self, scope: Scope, registry_id: str) -> bool: ...

    def put_experience(self, scope: Scope, experience: ToolExperience) -> None: ...

    def delete_experience(self, scope: Scope, registry_id: str) -> int:
        """Delete all experience with the tools of a registry; return how much there was."""
