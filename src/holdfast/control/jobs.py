"""A space's background jobs: list, read, retry and cancel them, with their state, error and cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Annotated, ClassVar

from holdfast.control.company_requests import CompanyPage, CompanyRead, CompanyWrite, WakesWorker, log_change
from holdfast.control.deliveries import revive_dead_delivery
from holdfast.domain.access import Action, Grant
from holdfast.domain.arguments import GROUP
from holdfast.domain.contract import DEFAULT_PAGE, Cursor, PageLimit
from holdfast.domain.events import EventKind
from holdfast.domain.hooks import HookDeliveryStatus
from holdfast.domain.ids import DeliveryId, Id
from holdfast.domain.jobs import ControlJob, ControlJobPage, Job, JobFilter, JobKind, JobState, JobStatus
from holdfast.errors import Conflict, NotFound
from holdfast.ports import Reader, Transaction
from holdfast.runtime.gate import Core

_CANCELLED = "cancelled"
_ENDED_BADLY = (JobStatus.FAILED, JobStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class ListControlJobs(CompanyPage[ControlJobPage]):
    """List background jobs, one row per attempt, newest first. All given filters must match."""

    action: ClassVar[Action] = Action.JOBS
    filter: Annotated[JobFilter, GROUP] = field(default_factory=JobFilter)
    cursor: Cursor | None = None
    limit: PageLimit = DEFAULT_PAGE

    def apply(self, reader: Reader, prepared: Core) -> ControlJobPage:
        now = prepared.clock.now()
        found, cursor = self._page(reader.jobs.page(self.filter, now, self._before(), self.limit + 1))
        return ControlJobPage(_to_control_jobs(reader, found, now), cursor)


@dataclass(frozen=True, slots=True)
class GetJob(CompanyRead[ControlJob]):
    """Get one job attempt, with its cause and progress. `retry_of` is the previous attempt."""

    action: ClassVar[Action] = Action.JOBS
    job_id: Id

    def apply(self, reader: Reader, prepared: Core) -> ControlJob:
        return _require_job(reader, self.job_id, prepared.clock.now())


@dataclass(frozen=True, slots=True)
class RetryJob(WakesWorker, CompanyWrite[ControlJob]):
    """Queue a new attempt of a failed or cancelled job, due at once. Its delivery, if any, is pending again."""

    action: ClassVar[Action] = Action.MANAGE_JOBS
    job_id: Id

    def apply(self, transaction: Transaction, prepared: tuple[Core, Grant]) -> ControlJob:
        now = prepared[0].clock.now()
        found = _require_job(transaction, self.job_id, now)
        again = transaction.jobs.restart(found.id, now) if found.retry_available else None
        if again is None:
            raise Conflict(_retry_refusal(found))
        for delivery_id in _delivery_ids(found):
            delivery = transaction.deliveries.find(delivery_id)
            if delivery is None or not revive_dead_delivery(transaction, prepared, delivery):  # a concurrent retry won
                raise Conflict(_retry_refusal(found))
        log_change(transaction, prepared, EventKind.JOB_RETRIED, again.id, {"kind": again.kind})
        return _require_job(transaction, again.id, now)


@dataclass(frozen=True, slots=True)
class CancelJob(CompanyWrite[ControlJob]):
    """Cancel a job; a running worker can no longer commit it. Its delivery, if any, is dead and can be retried."""

    action: ClassVar[Action] = Action.MANAGE_JOBS
    job_id: Id

    def apply(self, transaction: Transaction, prepared: tuple[Core, Grant]) -> ControlJob:
        now = prepared[0].clock.now()
        found = _require_job(transaction, self.job_id, now)
        cancelled = transaction.jobs.cancel(found.id, now)
        if cancelled is None:
            raise Conflict(f"the job {found.id} is {found.status}; only a queued or running job can be cancelled")
        # A job that a worker has claimed counts as an attempt, whatever its outcome.
        tried = cancelled.started_at is not None
        for each in _delivery_ids(found):
            transaction.deliveries.end(each, HookDeliveryStatus.DEAD, now, _CANCELLED, None, tried=tried)
        log_change(transaction, prepared, EventKind.JOB_CANCELLED, found.id, {"kind": found.kind})
        return _require_job(transaction, found.id, now)


def _require_job(reader: Reader, job_id: str, now: datetime) -> ControlJob:
    found = reader.jobs.find(job_id)
    if found is None:
        raise NotFound(f"there is no job {job_id!r:.80} in this scope; list the jobs")
    return _to_control_jobs(reader, (found,), now)[0]


def _to_control_jobs(reader: Reader, found: Sequence[Job], now: datetime) -> tuple[ControlJob, ...]:
    """Add each job's state and whether it can be retried. Nothing else decides that."""
    ended = [each for each in found if each.status in _ENDED_BADLY]
    tried_again = reader.jobs.retried_ids([each.id for each in ended])
    last = [each for each in ended if each.id not in tried_again]
    dead = reader.deliveries.dead_letters([carried for each in last for carried in _delivery_ids(each)])
    retryable = {each.id for each in last if dead.issuperset(_delivery_ids(each))}
    return tuple(
        ControlJob(
            **{part.name: getattr(each, part.name) for part in fields(Job)},
            state=JobState.STUCK if each.is_stuck(now) else JobState(each.status),
            retry_available=each.id in retryable,
        )
        for each in found
    )


def _delivery_ids(job: Job) -> tuple[DeliveryId, ...]:
    return tuple(map(DeliveryId, job.record_ids)) if job.kind is JobKind.DELIVER else ()


def _retry_refusal(job: Job) -> str:
    """Say why a job cannot be retried."""
    if job.status not in _ENDED_BADLY:
        return f"the job {job.id} is {job.status}; only a failed or cancelled job can be retried"
    if job.kind is not JobKind.DELIVER:
        return f"the job {job.id} was already retried; look at its later attempts"
    return f"the job {job.id} was already retried, or its delivery is not dead; look at the delivery"
