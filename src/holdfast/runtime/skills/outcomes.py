"""Count what came of the skills that a host used in a turn. One turn counts once for each skill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.domain.access import Action
from holdfast.domain.events import EventKind
from holdfast.domain.governance import Governance
from holdfast.domain.ids import MessageId
from holdfast.domain.memory import Plane
from holdfast.domain.runtime_api.skills import NO_SUCH_SKILL, UNCHANGED, SkillReuse
from holdfast.domain.runtime_skills import ReuseOutcome, is_skill_name
from holdfast.domain.scope import Scope
from holdfast.ports import Reader, StoredResponse, Transaction
from holdfast.runtime.event_log import append_event
from holdfast.runtime.gate import Core
from holdfast.runtime.idempotency import digest_of
from holdfast.runtime.skills.stored_skill import StoredSkill, find_skill, skill_of, store_state

COUNTED = "counted"


@dataclass(frozen=True, slots=True)
class ReportedReuse:
    """Skills by name or by the id of their memory, and how the turn went that used them."""

    governance: Governance
    selected: Sequence[str]
    outcome: ReuseOutcome
    note: str | None

    @property
    def owner(self) -> Scope:
        return self.governance.identity.scope


def count_reuse(
    transaction: Transaction, core: Core, reuse: ReportedReuse, turn: Sequence[MessageId], now: datetime
) -> tuple[SkillReuse, ...]:
    """Change the counts of the skills, with an event for each. Without a turn, each call counts."""
    return tuple(_count(transaction, core, reuse, each, turn, now) for each in dict.fromkeys(reuse.selected))


def _count(
    transaction: Transaction, core: Core, reuse: ReportedReuse, selected: str, turn: Sequence[MessageId], now: datetime
) -> SkillReuse:
    skill = _selected_skill(transaction, reuse.owner, selected)
    if skill is None:
        return SkillReuse(selected, reuse.outcome, False, NO_SUCH_SKILL)
    partition = reuse.owner.partition
    key = digest_of("skill_reuse", skill.memory.id, sorted(turn))
    if turn and transaction.records.response(partition, key) is not None:
        return SkillReuse(skill.state.name, reuse.outcome, False, UNCHANGED)
    state = skill.state.with_use(now, reuse.outcome, reuse.note)
    if turn:
        transaction.records.put_response(partition, key, StoredResponse(key, "{}"), now)
    if state == skill.state:
        return SkillReuse(state.name, reuse.outcome, False, UNCHANGED)
    store_state(transaction, skill.memory, state, now)
    append_event(
        transaction,
        core,
        EventKind.MAINTENANCE,
        skill.memory.scope,
        keep=reuse.governance.budget.events,
        plane=Plane.PROCEDURAL,
        record_key=skill.memory.id,
        details={"operation": Action.MAINTAIN, "outcome": reuse.outcome},
    )
    return SkillReuse(state.name, reuse.outcome, True, COUNTED)


def _selected_skill(reader: Reader, owner: Scope, selected: str) -> StoredSkill | None:
    """Find a skill of this owner. Those of others can be read and used, but not changed."""
    if is_skill_name(selected):
        return find_skill(reader, [owner.partition], selected)
    skill = skill_of(reader, selected)
    return skill if skill is not None and skill.memory.scope.partition == owner.partition else None
