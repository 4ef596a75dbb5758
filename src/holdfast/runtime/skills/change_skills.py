"""Edit, switch and delete runtime skills of one memory.

A request that cannot be carried out has a report that says why, and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from holdfast.domain.access import Action, Grant, check_skill_approval
from holdfast.domain.checks import Metadata, checked_flag, checked_instance, checked_text
from holdfast.domain.events import EventKind
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.governance import Governance
from holdfast.domain.ids import OperationId
from holdfast.domain.memory import Plane
from holdfast.domain.runtime_api.skills import (
    DONE,
    NO_SUCH_SKILL,
    NOT_A_SKILL,
    UNCHANGED,
    RuntimeSkillDeleteRequest,
    RuntimeSkillEditRequest,
    RuntimeSkillMutationReport,
    RuntimeSkillSetEnabledRequest,
)
from holdfast.domain.runtime_skills import MAX_SUMMARY_CHARS, MAX_TITLE_CHARS, SkillContent, is_skill_name
from holdfast.domain.scope import Scope
from holdfast.domain.skill_checks import reject_procedure
from holdfast.errors import InvalidInput
from holdfast.ports import NewRevision, Reader, Transaction
from holdfast.runtime import indexing
from holdfast.runtime.event_log import append_event
from holdfast.runtime.forget import forget_planned, scrub_store
from holdfast.runtime.gate import Core, Write
from holdfast.runtime.job_queue import enqueue_indexing
from holdfast.runtime.record_writes import add_revision
from holdfast.runtime.remember import MAX_REASON_CHARS, current_memory, trust_of
from holdfast.runtime.revisions import require_revision, time_after
from holdfast.runtime.skills.stored_skill import StoredSkill, find_skill, store_state
from holdfast.runtime.transcripts.budgets import require_budget

_NAME_CHARS = 256
_EDITABLE = {"title": MAX_TITLE_CHARS, "topic": MAX_TITLE_CHARS, "summary": MAX_SUMMARY_CHARS}
_MUST_SAY = ("title",)


class PreparedChange(NamedTuple):
    core: Core
    grant: Grant
    now: datetime


@dataclass(frozen=True, slots=True)
class _SkillChange(Write[Any, RuntimeSkillMutationReport]):
    """Common base of the verbs that change one skill by its name."""

    governance: Governance

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return self.governance.identity.scope

    @property
    def name(self) -> str:
        raise NotImplementedError

    async def prepare(self, core: Core, grant: Grant) -> Any:
        return PreparedChange(core, grant, core.clock.now())

    def find(self, reader: Reader) -> StoredSkill | RuntimeSkillMutationReport:
        """Find the skill, or report why there is none."""
        if not is_skill_name(self.name):
            return self.report(NOT_A_SKILL, accepted=False)
        return find_skill(reader, [self.scope.partition], self.name) or self.report(NO_SUCH_SKILL, accepted=False)

    def report(self, reason: str = DONE, *, accepted: bool = True, changed: bool = False) -> RuntimeSkillMutationReport:
        return RuntimeSkillMutationReport(accepted, changed, self.name, self.action, reason)

    def append_event(self, transaction: Transaction, core: Core, kind: EventKind, skill: StoredSkill) -> None:
        append_event(
            transaction,
            core,
            kind,
            skill.memory.scope,
            keep=self.governance.budget.events,
            plane=Plane.PROCEDURAL,
            record_key=skill.memory.id,
            details={"operation": self.action},
        )

    def record_count(self, result: RuntimeSkillMutationReport) -> int:
        return int(result.changed)

    def without_text(self, result: RuntimeSkillMutationReport) -> RuntimeSkillMutationReport:
        return replace(result, name="")

    def with_text(self, reader: Reader, result: RuntimeSkillMutationReport) -> RuntimeSkillMutationReport:
        return replace(result, name=self.name)


def _checked_name(name: object) -> None:
    checked_text(name, "name", max_chars=_NAME_CHARS)


# --- edit -------------------------------------------------------------------------------------------------------------


class _PreparedEdit(NamedTuple):
    change: PreparedChange
    skill: StoredSkill | RuntimeSkillMutationReport
    content: SkillContent | None = None
    entry: indexing.IndexedText | None = None


@dataclass(frozen=True, slots=True)
class EditSkill(_SkillChange):
    """Give a skill a new text, as a revision. It rests on what the earlier one rested on."""

    action: ClassVar[Action] = Action.EDIT_SKILL
    request: RuntimeSkillEditRequest

    def __post_init__(self) -> None:
        request = checked_instance(self.request, RuntimeSkillEditRequest)
        _checked_name(request.name)
        for part, most in _EDITABLE.items():
            value = getattr(request, part)
            if value is not None and (value != "" or part in _MUST_SAY):
                checked_text(value, part, max_chars=most)
        if request.edit_reason is not None:
            checked_text(request.edit_reason, "edit_reason", max_chars=MAX_REASON_CHARS)
        if all(getattr(request, part) is None for part in (*_EDITABLE, "procedure")):
            raise InvalidInput("procedure", "is missing, and so are title, topic and summary; give what to change")

    @property
    def name(self) -> str:
        return self.request.name

    async def prepare(self, core: Core, grant: Grant) -> _PreparedEdit:
        change = PreparedChange(core, grant, core.clock.now())
        request = self.request
        if request.procedure is not None:
            rejection = reject_procedure(request.procedure, self.governance.budget.source_chars)
            if rejection is not None:
                return _PreparedEdit(change, self.report(rejection, accepted=False))
        skill = await core.store.read(grant, self.find)
        if not isinstance(skill, StoredSkill):
            return _PreparedEdit(change, skill)
        parts: dict[str, Any] = {
            part: " ".join(value.split()) for part in _EDITABLE if (value := getattr(request, part)) is not None
        }
        if request.procedure is not None:
            parts["procedure"] = request.procedure.strip()
        content = replace(skill.content, **parts)
        (entry,) = await indexing.make_entries(core, [content.text])
        return _PreparedEdit(change, skill, content, entry)

    def apply(self, transaction: Transaction, prepared: _PreparedEdit) -> RuntimeSkillMutationReport:
        change, read, content, entry = prepared
        if not isinstance(read, StoredSkill) or content is None or entry is None:
            return read if isinstance(read, RuntimeSkillMutationReport) else self.report()
        skill = self.find(transaction)
        if not isinstance(skill, StoredSkill):
            return skill
        require_revision(skill.memory, read.memory.revision)
        if content == skill.content:
            return self.report(UNCHANGED)
        old, core = skill.memory, change.core
        add_revision(
            transaction,
            core,
            NewRevision(
                id=old.id,
                scope=old.scope,
                plane=old.plane,
                text=content.text,
                trust=trust_of(change.grant.actor),
                status=old.status,
                validity=old.validity,
                recorded_at=time_after(change.now, old),
                source=old.source,
                author=str(change.grant.actor),
                reason=self.request.edit_reason,
                evidence=(),
                rests_as_before=True,
                metadata=_edited_metadata(old.metadata, content),
                analysis=entry.analysis,
                vectors=entry.vectors,
                supersedes=old.revision,
                by_runtime=True,
            ),
            {"operation": self.action},
        )
        if not core.embedder.local:
            enqueue_indexing(transaction, core, old.scope, (old.id,))
        store_state(transaction, current_memory(transaction, old.id), skill.state.with_new_text(), change.now)
        require_budget(transaction, self.governance)
        return self.report(changed=True)

    def has_work(self, core: Core, result: RuntimeSkillMutationReport) -> bool:
        return result.changed and not core.embedder.local


def _edited_metadata(known: Metadata, content: SkillContent) -> Metadata:
    """Keep what others wrote in it."""
    return {name: value for name, value in known.items() if name not in _EDITABLE} | dict(content.metadata)


# --- switch and delete ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetSkillEnabled(_SkillChange):
    """Switch a skill on or off. Enabling one that needs an approval approves it."""

    action: ClassVar[Action] = Action.SET_SKILL_ENABLED
    request: RuntimeSkillSetEnabledRequest

    def __post_init__(self) -> None:
        request = checked_instance(self.request, RuntimeSkillSetEnabledRequest)
        _checked_name(request.name)
        checked_flag(request.enabled, "enabled")

    @property
    def name(self) -> str:
        return self.request.name

    def apply(self, transaction: Transaction, prepared: PreparedChange) -> RuntimeSkillMutationReport:
        skill = self.find(transaction)
        if not isinstance(skill, StoredSkill):
            return skill
        enabled = self.request.enabled
        if enabled and skill.state.needs_approval:
            check_skill_approval(prepared.grant.actor)
        state = replace(skill.state, enabled=enabled, needs_approval=skill.state.needs_approval and not enabled)
        if state == skill.state:
            return self.report(UNCHANGED)
        store_state(transaction, skill.memory, state, prepared.now)
        self.append_event(transaction, prepared.core, EventKind.OPERATOR, skill)
        return self.report(changed=True)


@dataclass(frozen=True, slots=True)
class DeleteSkill(_SkillChange):
    """Delete a skill with its history and its state. No byte of their texts stays."""

    action: ClassVar[Action] = Action.DELETE_SKILL
    request: RuntimeSkillDeleteRequest

    def __post_init__(self) -> None:
        _checked_name(checked_instance(self.request, RuntimeSkillDeleteRequest).name)

    @property
    def name(self) -> str:
        return self.request.name

    def apply(self, transaction: Transaction, prepared: PreparedChange) -> RuntimeSkillMutationReport:
        skill = self.find(transaction)
        if not isinstance(skill, StoredSkill):
            return skill
        plan = transaction.records.plan_forget(ForgetTarget(ids=(skill.memory.id,)))
        forget_planned(transaction, prepared.core, plan)
        return self.report(changed=True)

    async def finish(
        self, core: Core, result: RuntimeSkillMutationReport, operation_id: OperationId
    ) -> RuntimeSkillMutationReport:
        if result.changed:
            await scrub_store(core)
        return result
