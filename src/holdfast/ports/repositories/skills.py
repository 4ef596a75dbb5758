"""Port of runtime skills: the state of memories on the procedural plane that changes without a new text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from holdfast.domain.ids import MemoryId
from holdfast.domain.memory import Status
from holdfast.domain.runtime_skills import SkillState
from holdfast.domain.scope import Partition


class SkillReader(Protocol):
    def states(self, memory_ids: Sequence[str]) -> Mapping[str, SkillState]:
        """Return the stored states of these memories. A memory without one was never written as a skill."""

    def find(self, partition: Partition, name: str) -> MemoryId | None:
        """Return the memory that has this name in the partition."""


class SkillWriter(SkillReader, Protocol):
    def put(self, memory_id: MemoryId, partition: Partition, state: SkillState, status: Status) -> None:
        """Store the state of a memory, and give its current revision this status. A name belongs to one memory."""
