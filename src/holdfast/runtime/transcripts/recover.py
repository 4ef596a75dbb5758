"""`recover` and `close`: finish pending jobs, and record an orderly shutdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from holdfast.domain import ids
from holdfast.domain.access import Action, Grant
from holdfast.domain.checks import checked_text
from holdfast.domain.events import Event, EventKind
from holdfast.domain.governance import Governance
from holdfast.domain.ids import EventId, JobId
from holdfast.domain.jobs import Job, JobKind, JobStatus
from holdfast.domain.lifecycle import Trigger, checked_mode
from holdfast.domain.runtime_api.writing import (
    MemoryCloseReport,
    MemoryCloseRequest,
    MemoryRecoverReport,
    MemoryRecoverRequest,
)
from holdfast.domain.scope import Scope
from holdfast.domain.transcript_turns import checked_member
from holdfast.ports import Reader, Transaction
from holdfast.runtime.gate import Core, Write
from holdfast.runtime.transcripts.conversation_address import StartedOperation

MAX_REASON_CHARS = 1_000
_JOBS = 10_000
RECOVERED = "recovered"
NOTHING_TO_RECOVER = "nothing_to_recover"


def _append_event(
    core: Core, transaction: Transaction, governance: Governance, scope: Scope, details: Mapping[str, str | int | None]
) -> EventId:
    """Append a lifecycle event of the runtime, and prune the log to the profile's budget."""
    event_id = EventId(core.ids.new(ids.EVENT))
    transaction.events.append(Event(event_id, EventKind.LIFECYCLE, scope, core.clock.now(), details=details))
    transaction.events.prune(scope.space, governance.budget.events)
    return event_id


@dataclass(frozen=True, slots=True)
class _PreparedRecover:
    started: StartedOperation
    pending: Mapping[JobId, Job]


@dataclass(frozen=True, slots=True)
class Recover(Write[_PreparedRecover, MemoryRecoverReport]):
    """Run the due jobs, including those of lost workers. Jobs that another worker is running are left to it."""

    action: ClassVar[Action] = Action.RECOVER
    scope: Scope
    governance: Governance
    trigger: Trigger

    @classmethod
    def of(cls, governance: Governance, request: MemoryRecoverRequest) -> Recover:
        trigger = checked_member(Trigger, request.trigger, "trigger")
        checked_mode(request.mode_input)
        return cls(Scope(space=governance.identity.space), governance, trigger)

    async def prepare(self, core: Core, grant: Grant) -> _PreparedRecover:
        started = StartedOperation(core, self.action, core.clock.now())
        pending = await core.store.read(grant, _pending_jobs)
        await core.drain()
        return _PreparedRecover(started, pending)

    def apply(self, transaction: Transaction, prepared: _PreparedRecover) -> MemoryRecoverReport:
        core = prepared.started.core
        waiting = _pending_jobs(transaction)
        ended = {job.id: job for job in transaction.jobs.newest(JobStatus.SUCCEEDED, _JOBS)}
        exhausted = {job.id: job for job in transaction.jobs.newest(JobStatus.FAILED, _JOBS)}
        retried = {job.id.partition(".")[0] for job in waiting.values()}
        finished = Counter(job.kind.value for job_id, job in prepared.pending.items() if job_id in ended)
        failed = Counter(
            job.kind.value
            for job_id, job in prepared.pending.items()
            if job_id in exhausted and job_id.partition(".")[0] not in retried
        )
        waiting_kinds = Counter(job.kind.value for job in waiting.values())
        event_id = _append_event(
            core,
            transaction,
            self.governance,
            self.scope,
            {
                "operation": self.action,
                "trigger": self.trigger,
                "finished": finished.total(),
                "failed": failed.total(),
                "waiting": waiting_kinds.total(),
            },
        )
        changed = finished.total() > 0
        summary = f"{finished.total()} finished, {failed.total()} failed, {waiting_kinds.total()} waiting"
        return MemoryRecoverReport(
            changed=changed,
            reason=RECOVERED if changed else NOTHING_TO_RECOVER,
            lifecycle_report=prepared.started.report(summary, changed=changed, trigger=self.trigger, event_id=event_id),
            finished=dict(finished),
            failed=dict(failed),
            waiting=dict(waiting_kinds),
            waiting_for_model=waiting_kinds[JobKind.MAINTAIN] if core.curator is None else 0,
        )

    def record_count(self, result: MemoryRecoverReport) -> int:
        return sum(result.finished.values())


def _pending_jobs(reader: Reader) -> dict[JobId, Job]:
    unfinished = (JobStatus.QUEUED, JobStatus.RUNNING)
    return {job.id: job for status in unfinished for job in reader.jobs.newest(status, _JOBS)}


@dataclass(frozen=True, slots=True)
class Close(Write[StartedOperation, MemoryCloseReport]):
    """Record that the runtime ends. The caller closes the store afterwards."""

    action: ClassVar[Action] = Action.CLOSE
    scope: Scope
    governance: Governance
    reason: str

    @classmethod
    def of(cls, governance: Governance, request: MemoryCloseRequest) -> Close:
        reason = checked_text(request.reason, "reason", max_chars=MAX_REASON_CHARS)
        return cls(governance.identity.scope, governance, reason)

    async def prepare(self, core: Core, grant: Grant) -> StartedOperation:
        return StartedOperation(core, self.action, core.clock.now())

    def apply(self, transaction: Transaction, prepared: StartedOperation) -> MemoryCloseReport:
        event_id = _append_event(prepared.core, transaction, self.governance, self.scope, {"operation": self.action})
        return MemoryCloseReport(self.reason, prepared.report("closed", event_id=event_id))

    def without_text(self, result: MemoryCloseReport) -> MemoryCloseReport:
        return replace(result, reason="")

    def with_text(self, reader: Reader, result: MemoryCloseReport) -> MemoryCloseReport:
        return replace(result, reason=self.reason)
