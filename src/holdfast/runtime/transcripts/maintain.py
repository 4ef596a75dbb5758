"""`maintain`: queue a job that lets a model learn from a committed turn, and report its outcome."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from holdfast.domain.access import SYSTEM, Action, Grant, authorize
from holdfast.domain.checks import checked_flag, checked_text
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope
from holdfast.domain.ids import JobId, MessageId, OperationId
from holdfast.domain.jobs import Job, JobKind, JobStatus, NewJob
from holdfast.domain.lifecycle import Admission, Disposition, Trigger, admit, checked_mode
from holdfast.domain.profiles import pressure_of
from holdfast.domain.runtime_api.writing import (
    MemoryMaintainReport,
    MemoryMaintainRequest,
    SemanticGovernance,
)
from holdfast.domain.runtime_skills import ReuseOutcome
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import MAX_TURN_MESSAGES, TranscriptState
from holdfast.errors import InvalidInput
from holdfast.ports import Reader, Transaction
from holdfast.runtime.gate import Core, Write
from holdfast.runtime.job_queue import enqueue
from holdfast.runtime.skills.outcomes import ReportedReuse, count_reuse
from holdfast.runtime.skills.tool_context import ToolContext, note_tool_use
from holdfast.runtime.transcripts.conversation_address import ConversationAddress, StartedOperation
from holdfast.runtime.transcripts.maintenance_job import NOTHING_TO_LEARN, LearningOutcome, load_outcome

NO_MODEL = "no_model_configured"
SWITCHED_OFF = "switched_off"
ALREADY_MAINTAINED = "already_maintained"
NOT_IN_TRANSCRIPT = "content_not_in_transcript"
UNDER_WAY = "under_way"
MODEL_FAILED = "model_failed"
OUTCOMES = tuple(outcome.value for outcome in ReuseOutcome)
_LAST_TURNS = 4  # how many turns to search for the content a host quotes
_MAX_NAMES = 256
# Maximum wait for a job that another process is running.
_WAIT_SECONDS = 60.0
_LOOK_SECONDS = 0.05
_JOBS_LOOKED_AT = 1_000


@dataclass(frozen=True, slots=True)
class Maintain(Write[StartedOperation, MemoryMaintainReport]):
    """Learn from a committed turn. `configured` is the host's switch; the model itself is checked on each call."""

    action: ClassVar[Action] = Action.MAINTAIN
    scope: Scope
    governance: Governance
    request: MemoryMaintainRequest
    address: ConversationAddress
    configured: bool

    @classmethod
    def of(cls, governance: Governance, where: MemoryScope, request: MemoryMaintainRequest) -> Maintain:
        _validate_request(request)
        configured = governance.catalogue["maintain"].configured
        return cls(
            governance.identity.scope, governance, request, ConversationAddress.of(governance, where), configured
        )

    async def prepare(self, core: Core, grant: Grant) -> StartedOperation:
        if core.curator is None:
            admission = Admission(Disposition.REJECT, NO_MODEL)
        elif not self.configured:
            admission = Admission(Disposition.REJECT, SWITCHED_OFF)
        else:
            admission = admit(self.action, self.request.mode_input, pressure_of(self.request.pressure))
        return StartedOperation(core, self.action, core.clock.now(), admission)

    def apply(self, transaction: Transaction, prepared: StartedOperation) -> MemoryMaintainReport:
        # A deferred call is repeated, and counts then.
        if prepared.admission.disposition is Disposition.DEFER:
            return self._report(prepared, prepared.admission.reason or "")
        thread = self.address.resolve(transaction)
        chosen = _choose_messages(transaction, thread, self.request)
        request, turn = self.request, () if isinstance(chosen, str) else chosen
        outcome = ReuseOutcome(request.reuse_outcome)
        used = ReportedReuse(self.governance, request.runtime_skill_selected_ids, outcome, request.reuse_outcome_note)
        reuse = count_reuse(transaction, prepared.core, used, turn, prepared.started_at)
        report = self._learn(transaction, prepared, thread, chosen)
        changed = any(each.changed for each in reuse)
        lifecycle = replace(report.lifecycle_report, changed=changed or report.lifecycle_report.changed)
        return replace(report, runtime_skill_reuse=reuse, changed=changed, lifecycle_report=lifecycle)

    def _learn(
        self, transaction: Transaction, prepared: StartedOperation, thread: Scope, chosen: tuple[MessageId, ...] | str
    ) -> MemoryMaintainReport:
        if not prepared.is_admitted:
            return self._report(prepared, prepared.admission.reason or "")
        if isinstance(chosen, str):
            return self._skip(prepared, chosen)
        outcome = load_outcome(transaction, thread, chosen)
        if outcome is not None:
            replay = replace(
                outcome, verdicts=tuple(replace(each, changed=False, replayed=True) for each in outcome.verdicts)
            )
            return _with_outcome(self._skip(prepared, ALREADY_MAINTAINED), replay)
        tools = ToolContext(bool(self.request.tool_calls), self.request.external_content_used)
        note_tool_use(transaction, thread, chosen, tools, prepared.started_at)
        job_id = enqueue(transaction, prepared.core, NewJob(JobKind.MAINTAIN, thread, chosen))
        return replace(self._report(prepared, UNDER_WAY), job_id=job_id)

    def _skip(self, prepared: StartedOperation, reason: str) -> MemoryMaintainReport:
        return self._report(replace(prepared, admission=Admission(Disposition.SKIP, reason)), reason)

    def _report(self, started: StartedOperation, reason: str) -> MemoryMaintainReport:
        return MemoryMaintainReport(
            accepted=started.is_admitted,
            changed=False,
            operation=self.action,
            reason=reason,
            lifecycle_report=started.report(reason, trigger=Trigger.POST_REPLY),
        )

    async def finish(self, core: Core, result: MemoryMaintainReport, operation_id: OperationId) -> MemoryMaintainReport:
        """Wait for the job. On a timeout or cancellation it continues in the background."""
        if result.job_id is None:
            return result
        await core.drain()
        grant = authorize(SYSTEM, Action.WORK, self.scope)
        base = result.job_id
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            job, outcome = await core.store.read(grant, lambda reader: _load_attempt(reader, base))
            if outcome is not None or job is None or job.status is not JobStatus.RUNNING or time.monotonic() > deadline:
                break
            await asyncio.sleep(_LOOK_SECONDS)  # another process is running it
        return _final_report(core, result, job, outcome)

    def record_count(self, result: MemoryMaintainReport) -> int:
        return (result.job_id is not None) + sum(each.changed for each in result.runtime_skill_reuse)

    def without_text(self, result: MemoryMaintainReport) -> MemoryMaintainReport:
        return replace(result, runtime_skill_reuse=tuple(replace(each, name="") for each in result.runtime_skill_reuse))

    def with_text(self, reader: Reader, result: MemoryMaintainReport) -> MemoryMaintainReport:
        named = zip(dict.fromkeys(self.request.runtime_skill_selected_ids), result.runtime_skill_reuse, strict=False)
        return replace(result, runtime_skill_reuse=tuple(replace(each, name=name) for name, each in named))


def _validate_request(request: MemoryMaintainRequest) -> None:
    checked_text(request.ingress, "ingress", max_chars=_MAX_NAMES)
    for name in ("user_content", "reply_content", "reuse_outcome_note"):
        if (value := getattr(request, name)) is not None:
            checked_text(value, name)
    for name in ("tool_calls", "runtime_skill_selected_ids", "task_learning_selected_ids"):
        names = getattr(request, name)
        if isinstance(names, str) or not isinstance(names, Sequence) or len(names) > _MAX_NAMES:
            raise InvalidInput(name, f"expected a tuple of names, at most {_MAX_NAMES}")
        for each in names:
            checked_text(each, name, max_chars=_MAX_NAMES)
    checked_flag(request.external_content_used, "external_content_used")
    if request.reuse_outcome not in OUTCOMES:
        raise InvalidInput("reuse_outcome", f"must be one of {', '.join(OUTCOMES)}, not {request.reuse_outcome!r:.40}")
    pressure_of(request.pressure)
    checked_mode(request.mode_input)


def _choose_messages(reader: Reader, thread: Scope, request: MemoryMaintainRequest) -> tuple[MessageId, ...] | str:
    """Return the messages of the requested turn, or the reason why there are none."""
    quoted = {(Role.USER, request.user_content), (Role.ASSISTANT, request.reply_content)}
    quotes = {(role, text) for role, text in quoted if text is not None}
    turns = reader.transcripts.last_turns(thread, _LAST_TURNS if quotes else 1)
    for turn in reversed(turns):
        spoken = {(message.role, message.text) for message in turn.messages}
        if quotes <= spoken and turn.state is TranscriptState.ACTIVE:
            # With external content, learn only from the user: the assistant's answer is no more reliable than it.
            user_only = request.external_content_used
            found = tuple(message.id for message in turn.messages if not user_only or message.role is Role.USER)
            return found[-MAX_TURN_MESSAGES:] or NOTHING_TO_LEARN
    return NOT_IN_TRANSCRIPT if quotes else NOTHING_TO_LEARN


# --- outcome ----------------------------------------------------------------------------------------------------------


def _load_attempt(reader: Reader, base: JobId) -> tuple[Job | None, LearningOutcome | None]:
    """Return the newest attempt at the job, and its outcome."""
    attempts = [job for job in reader.jobs.newest(None, _JOBS_LOOKED_AT) if job.id.partition(".")[0] == base]
    if not attempts:
        return None, None
    newest = max(attempts, key=lambda job: job.attempt)
    return newest, load_outcome(reader, newest.scope, newest.record_ids)


def _with_outcome(report: MemoryMaintainReport, outcome: LearningOutcome) -> MemoryMaintainReport:
    return replace(
        report,
        semantic_governance=SemanticGovernance(outcome.verdicts),
        usage=outcome.usage,
        dropped=outcome.dropped,
    )


def _final_report(
    core: Core, report: MemoryMaintainReport, job: Job | None, outcome: LearningOutcome | None
) -> MemoryMaintainReport:
    lifecycle = replace(report.lifecycle_report, finished_at=core.clock.now())
    if outcome is not None:
        changed = report.changed or any(verdict.changed for verdict in outcome.verdicts)
        governed = SemanticGovernance(outcome.verdicts)
        summary = f"{governed.accepted} accepted, {governed.deferred} deferred, {governed.rejected} rejected"
        lifecycle = replace(lifecycle, changed=changed, result_summary=summary)
        return replace(
            _with_outcome(report, outcome), changed=changed, reason=outcome.reason, lifecycle_report=lifecycle
        )
    if job is None or job.status is JobStatus.SUCCEEDED:
        return replace(report, reason=NOTHING_TO_LEARN, lifecycle_report=lifecycle)  # forgotten meanwhile
    if job.status is JobStatus.RUNNING or (job.status is JobStatus.QUEUED and job.attempt == 1):
        return replace(report, reason=UNDER_WAY, lifecycle_report=lifecycle)
    failed = replace(
        lifecycle,
        admission=replace(lifecycle.admission, disposition=Disposition.FAILED, reason=MODEL_FAILED),
        success=False,
        result_summary=MODEL_FAILED,
        error_stage="model",
    )
    return replace(report, accepted=False, reason=MODEL_FAILED, lifecycle_report=failed)
