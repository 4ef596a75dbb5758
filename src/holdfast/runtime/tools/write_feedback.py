"""`write` of tool usage feedback: judge observations by tool and task, and fold those that count into experience."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from holdfast.domain.access import Action, Grant, check_tool_note
from holdfast.domain.checks import checked_flag, checked_instance, checked_instances, checked_text
from holdfast.domain.events import EventKind
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope
from holdfast.domain.runtime_api.tools import (
    FEEDBACK,
    NO_OBSERVATIONS,
    AgentToolUsageFeedback,
    ToolExperienceReport,
)
from holdfast.domain.runtime_api.writing import MemoryWriteReport, MemoryWriteRequest, SemanticGovernance
from holdfast.domain.runtime_skills import ReuseOutcome
from holdfast.domain.scope import Scope
from holdfast.domain.times import checked_iso_time
from holdfast.domain.tool_checks import ObservationRejection, reject_text
from holdfast.domain.tool_experience import (
    MAX_NOTE_CHARS,
    MAX_OBSERVATIONS,
    MAX_SUMMARY_CHARS,
    AgentToolObservation,
    CallOutcome,
    ExperienceKey,
    ToolDisposition,
    ToolExperience,
    digest_of,
    find_drift,
    judge,
)
from holdfast.domain.tool_registries import MAX_NAME_CHARS, ToolRegistryRef, checked_name, checked_tags
from holdfast.domain.transcript_turns import checked_member
from holdfast.errors import BudgetExceeded, InvalidInput
from holdfast.ports import Reader, Transaction
from holdfast.runtime.event_log import append_event
from holdfast.runtime.gate import Core, Write
from holdfast.runtime.transcripts.conversation_address import ConversationAddress, StartedOperation


@dataclass(frozen=True, slots=True)
class _PreparedFeedback:
    started: StartedOperation
    core: Core
    now: datetime


@dataclass(frozen=True, slots=True)
class WriteToolFeedback(Write[_PreparedFeedback, MemoryWriteReport]):
    """Judge what a host observed of its tools, and fold it into counts. No observation is stored."""

    action: ClassVar[Action] = Action.WRITE
    scope: Scope
    governance: Governance
    feedback: AgentToolUsageFeedback
    address: ConversationAddress | None

    @classmethod
    def of(cls, governance: Governance, request: MemoryWriteRequest, last: MemoryScope | None) -> WriteToolFeedback:
        if request.given or request.extraction is not None or request.skills is not None:
            raise InvalidInput("tool_feedback", "give a feedback, procedures, candidates or an extraction, only one")
        governance.require("agent_tool_registries")
        feedback = _checked_feedback(request.tool_feedback)
        where = request.scope or last
        address = None if where is None else ConversationAddress.of(governance, where)
        return cls(governance.identity.scope, governance, feedback, address)

    async def prepare(self, core: Core, grant: Grant) -> _PreparedFeedback:
        if self.feedback.operator_note is not None:
            check_tool_note(grant.actor)
        now = core.clock.now()
        return _PreparedFeedback(StartedOperation(core, self.action, now), core, now)

    def apply(self, transaction: Transaction, prepared: _PreparedFeedback) -> MemoryWriteReport:
        rejection = _reject(self.feedback)
        if rejection is not None or not self.feedback.observations:
            return self._report(prepared, (), NO_OBSERVATIONS if rejection is None else rejection)
        place = self._place(transaction)
        reports = tuple(self._judge(transaction, group, prepared.now, place) for group in self._groups())
        if any(report.changed for report in reports):
            append_event(
                transaction,
                prepared.core,
                EventKind.WRITE,
                self.scope,
                keep=self.governance.budget.events,
                details={"operation": FEEDBACK, "experience": sum(report.changed for report in reports)},
            )
        reasons = {report.disposition.value for report in reports}
        return self._report(prepared, reports, reasons.pop() if len(reasons) == 1 else "mixed")

    def _groups(self) -> Iterable[Sequence[AgentToolObservation]]:
        """Return the observations of each tool and task."""
        groups: dict[tuple[str, str], list[AgentToolObservation]] = {}
        for each in self.feedback.observations:
            groups.setdefault((each.tool_id, each.task_signature), []).append(each)
        return groups.values()

    def _key(self, group: Sequence[AgentToolObservation]) -> ExperienceKey:
        first = group[0]
        registry_id = self.feedback.registry_ref.registry_id
        return ExperienceKey(registry_id, first.tool_id, first.schema_fingerprint, first.task_signature)

    def _judge(
        self, transaction: Transaction, group: Sequence[AgentToolObservation], now: datetime, place: bytes | None
    ) -> ToolExperienceReport:
        feedback, ref, key = self.feedback, self.feedback.registry_ref, self._key(group)
        registry = transaction.tools.registry(self.scope, ref.registry_id)
        schemas, registries = {each.schema_fingerprint for each in group}, {each.registry_id for each in group}
        drift = find_drift(ref, registry, key, schemas, registries)
        known = transaction.tools.experience(self.scope, key) if drift is None else None
        before = known or ToolExperience(key, now, place=place)
        new = before.unseen(group)
        after = before.with_observations(
            new,
            now,
            noted=feedback.operator_note is not None,
            fallback=feedback.user_visible_result_summary,
            place=place,
        )
        judged = judge(
            mismatch=feedback.reuse_outcome is ReuseOutcome.MISMATCH,
            drift=drift,
            private=any(each.private_content_used for each in group),
            successes=after.succeeded,
            noted=after.noted,
        )
        is_stored = judged.disposition.is_stored
        changed = is_stored and (bool(new) or after.noted != before.noted)
        if changed:
            self._require_room(transaction, known)
            transaction.tools.put_experience(self.scope, after)
        return ToolExperienceReport(
            *key,
            disposition=judged.disposition,
            reason=judged.reason,
            confidence=judged.confidence,
            observed=len(new) if is_stored else 0,
            success_count=after.succeeded if is_stored else 0,
            call_count=after.calls if is_stored else 0,
            changed=changed,
        )

    def _require_room(self, transaction: Transaction, known: ToolExperience | None) -> None:
        most = self.governance.budget.records
        if known is None and transaction.tools.experience_count(self.scope) >= most:
            raise BudgetExceeded(
                f"records: this memory knows {most:,} tools and tasks, and {self.governance.profile.name} allows no"
                " more; delete the experience of a registry, or raise the budget when you open the runtime"
            )

    def _place(self, reader: Reader) -> bytes | None:
        """Return the digest of the conversation that a forget would name."""
        if self.address is None:
            return None
        conversation = self.address.resolve(reader).conversation
        return None if conversation is None else digest_of(conversation)

    def _report(
        self, prepared: _PreparedFeedback, reports: tuple[ToolExperienceReport, ...], reason: str
    ) -> MemoryWriteReport:
        accepted = sum(report.disposition is ToolDisposition.ACCEPTED for report in reports)
        deferred = sum(report.disposition is ToolDisposition.DEFERRED for report in reports)
        changed = any(report.changed for report in reports)
        summary = f"{accepted} accepted, {deferred} deferred, {len(reports) - accepted - deferred} rejected"
        return MemoryWriteReport(
            accepted=accepted > 0,
            changed=changed,
            operation=FEEDBACK,
            reason=reason,
            lifecycle_report=prepared.started.report(summary, changed=changed),
            semantic_governance=SemanticGovernance(),
            agent_tool_experience=reports,
            agent_tool_experience_reason=reason,
        )

    def record_count(self, result: MemoryWriteReport) -> int:
        return sum(report.changed for report in result.agent_tool_experience)

    def without_text(self, result: MemoryWriteReport) -> MemoryWriteReport:
        nameless = ExperienceKey("", "", "", "")._asdict()
        return replace(
            result, agent_tool_experience=tuple(replace(each, **nameless) for each in result.agent_tool_experience)
        )

    def with_text(self, reader: Reader, result: MemoryWriteReport) -> MemoryWriteReport:
        # A rejected feedback has no report of its groups.
        stored = zip(self._groups(), result.agent_tool_experience, strict=False)
        named = tuple(replace(each, **self._key(group)._asdict()) for group, each in stored)
        return replace(result, agent_tool_experience=named)


# --- checks -----------------------------------------------------------------------------------------------------------


def _checked_feedback(value: object) -> AgentToolUsageFeedback:
    feedback = checked_instance(value, AgentToolUsageFeedback, "tool_feedback")
    ref = checked_instance(feedback.registry_ref, ToolRegistryRef, "registry_ref")
    for name in ToolRegistryRef.__slots__:
        checked_name(getattr(ref, name), f"registry_ref.{name}")
    observations = checked_instances(feedback.observations, AgentToolObservation, "observations")
    if len(observations) > MAX_OBSERVATIONS:
        raise InvalidInput("observations", f"has {len(observations):,} entries; at most {MAX_OBSERVATIONS} are allowed")
    if feedback.user_visible_result_summary != "":
        checked_text(feedback.user_visible_result_summary, "user_visible_result_summary", max_chars=MAX_SUMMARY_CHARS)
    if feedback.operator_note is not None:
        checked_text(feedback.operator_note, "operator_note", max_chars=MAX_NOTE_CHARS)
    return replace(
        feedback,
        observations=tuple(_checked_observation(each, f"observations[{n}]") for n, each in enumerate(observations)),
        reuse_outcome=checked_member(ReuseOutcome, feedback.reuse_outcome, "reuse_outcome"),
    )


def _checked_observation(each: AgentToolObservation, place: str) -> AgentToolObservation:
    checked_text(each.observation_id, f"{place}.observation_id", max_chars=MAX_NAME_CHARS)
    for name in ("registry_id", "tool_id", "schema_fingerprint", "task_signature"):
        checked_name(getattr(each, name), f"{place}.{name}")
    for name in ("call_id", "error_code"):
        if getattr(each, name) is not None:
            checked_name(getattr(each, name), f"{place}.{name}")
    if each.summary != "":
        checked_text(each.summary, f"{place}.summary", max_chars=MAX_SUMMARY_CHARS)
    for name in ("external_content", "private_content_used"):
        checked_flag(getattr(each, name), f"{place}.{name}")
    for name in ("permission_tags", "risk_tags"):
        checked_tags(getattr(each, name), f"{place}.{name}")
    for name in ("started_at", "completed_at"):
        if getattr(each, name) is not None:
            checked_iso_time(getattr(each, name), f"{place}.{name}")
    return replace(each, outcome=checked_member(CallOutcome, each.outcome, f"{place}.outcome"))


def _reject(feedback: AgentToolUsageFeedback) -> ObservationRejection | None:
    """Return the reason why nothing of a feedback is taken: one of its texts is no summary."""
    texts = [feedback.user_visible_result_summary, feedback.operator_note or ""]
    for each in feedback.observations:
        texts += [each.summary, each.task_signature, each.error_code or ""]
    return next((found for text in texts if (found := reject_text(text)) is not None), None)
