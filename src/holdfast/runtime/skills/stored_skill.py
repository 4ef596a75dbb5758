"""Load skills from their memories and states, and store both so that they agree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from holdfast.domain.candidates import Verdict
from holdfast.domain.ids import MemoryId
from holdfast.domain.memory import MemoryRecord, Plane, Status
from holdfast.domain.results import HitKind
from holdfast.domain.runtime_api.skills import RuntimeSkillSummary
from holdfast.domain.runtime_skills import (
    SkillContent,
    SkillState,
    SkillStatus,
    name_from,
    name_of_unnamed,
    quality_of,
    status_of,
    visibility_of,
)
from holdfast.domain.scope import Partition, Scope
from holdfast.ports import ListFilter, Reader, Transaction
from holdfast.runtime.remember import current_memory

_PAGE = 500
_TAIL = re.compile("_[0-9a-f]{8}$")
_ON_PLANE = ListFilter(kind=HitKind.MEMORY, planes=frozenset({Plane.PROCEDURAL}))


@dataclass(frozen=True, slots=True)
class StoredSkill:
    """The current revision of a skill, and its state."""

    memory: MemoryRecord
    state: SkillState

    @property
    def content(self) -> SkillContent:
        return SkillContent.of(self.memory)

    def status(self, now: datetime) -> SkillStatus:
        return status_of(self.content, self.state, self.memory.recorded_at, now)

    def summary(self, now: datetime) -> RuntimeSkillSummary:
        content, state = self.content, self.state
        return RuntimeSkillSummary(
            name=state.name,
            title=content.title,
            topic=content.topic,
            status=self.status(now),
            enabled=state.enabled,
            quality_score=quality_of(content, state),
            use_count=state.use_count,
            validated_success_count=state.validated_success_count,
            mismatch_count=state.mismatch_count,
            revision_pending=state.revision_pending,
            updated_at=self.memory.recorded_at,
            last_used_at=state.last_used_at,
            needs_approval=state.needs_approval,
            memory_id=self.memory.id,
        )


def with_states(reader: Reader, memories: Sequence[MemoryRecord]) -> list[StoredSkill]:
    """Return the skills of these memories. One that was never written as a skill has the state of a new one."""
    states = reader.skills.states([memory.id for memory in memories])
    return [StoredSkill(memory, states.get(memory.id) or _first_state(memory)) for memory in memories]


def _first_state(memory: MemoryRecord) -> SkillState:
    # Quarantined on weak evidence: somebody must look at it first.
    return SkillState(
        name_of_unnamed(memory.id, SkillContent.of(memory)), needs_approval=memory.status is Status.QUARANTINED
    )


def all_skills(reader: Reader) -> Iterator[StoredSkill]:
    """Yield the skills that the grant reaches, the newest first."""
    before: str | None = None
    while page := reader.records.page(_ON_PLANE, before, _PAGE):
        before = page[-1].id.partition("_")[2]
        yield from with_states(reader, [record for record in page if isinstance(record, MemoryRecord)])


def skill_of(reader: Reader, memory_id: str) -> StoredSkill | None:
    """Load the skill of a memory; None if there is no such memory on the procedural plane."""
    found = reader.records.find(memory_id)
    if found is None or not isinstance(found[1], MemoryRecord) or found[1].plane is not Plane.PROCEDURAL:
        return None
    return with_states(reader, [found[1]])[0]


def find_skill(reader: Reader, partitions: Sequence[Partition], name: str) -> StoredSkill | None:
    """Find a skill by name in the first of the partitions that has it."""
    for partition in partitions:
        memory_id = reader.skills.find(partition, name)
        if memory_id is not None and (skill := skill_of(reader, memory_id)) is not None:
            return skill
    # The name of a memory that was never written as a skill ends like its id.
    found = (skill for skill in all_skills(reader) if skill.state.name == name) if _TAIL.search(name) else ()
    return next((skill for skill in found if skill.memory.scope.partition in partitions), None)


def free_name(transaction: Transaction, scope: Scope, title: str) -> str:
    """Return a name after the title that no skill of the scope's owner has."""
    place = 1
    while transaction.skills.find(scope.partition, name_from(title, place)) is not None:
        place += 1
    return name_from(title, place)


def store_state(transaction: Transaction, memory: MemoryRecord, state: SkillState, now: datetime) -> None:
    """Store the state, and let the memory be recalled or not, as the state says."""
    status = visibility_of(SkillContent.of(memory), state, max(now, memory.recorded_at))
    transaction.skills.put(memory.id, memory.scope.partition, state, status)


def store_candidate_skill(
    transaction: Transaction, memory_id: MemoryId, known: StoredSkill | None, verdict: Verdict, now: datetime
) -> None:
    """Store the state of a candidate that was written as a revision: of a new skill, or of a known one.

    A deferred one needs an approval. An accepted restatement approves it, but does not switch it on.
    """
    memory = current_memory(transaction, memory_id)
    accepted = verdict is Verdict.ACCEPTED
    if known is None:
        name = free_name(transaction, memory.scope, SkillContent.of(memory).title)
        state = SkillState(name, needs_approval=not accepted)
    else:
        approved = replace(known.state, needs_approval=known.state.needs_approval and not accepted)
        state = approved.with_new_text() if memory.text != known.memory.text else approved
    store_state(transaction, memory, state, now)


def restore_skill(transaction: Transaction, memory_id: MemoryId, state: SkillState, now: datetime) -> None:
    """Store the state of an imported memory. If its name is taken here, it gets another."""
    memory = current_memory(transaction, memory_id)
    if transaction.skills.find(memory.scope.partition, state.name) is not None:
        state = replace(state, name=free_name(transaction, memory.scope, state.name))
    store_state(transaction, memory, state, now)
