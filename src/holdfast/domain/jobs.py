"""Background work: one row per attempt, held by a lease, its effects fenced by a token."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from holdfast.domain.contract import HookContext, HookKind, SourceRef
from holdfast.domain.ids import JobId, OperationId
from holdfast.domain.scope import Scope

LEASE = timedelta(seconds=60)  # unless a setting says otherwise
HEARTBEATS_PER_LEASE = 3
MAX_ATTEMPTS = 12
MAX_CLAIMS = 100  # of one attempt, by workers that were lost or stopped
FIRST_RETRY = timedelta(seconds=2)
LONGEST_RETRY = timedelta(minutes=10)


class JobKind(StrEnum):
    INDEX = "index"
    REEMBED = "reembed"
    EXTRACT = "extract"
    SCRUB = "scrub"
    NEAREST = "nearest"
    MAINTAIN = "maintain"
    DELIVER = "deliver"


class JobStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Cause:
    """What a job goes back to: the call, and the hook and source that the call was for."""

    operation_id: OperationId | None = None
    binding: str | None = None
    hook: HookContext | None = None
    source: SourceRef | None = None


@dataclass(frozen=True, slots=True)
class NewJob:
    """Work to be done. `record_ids` name what it works on; text never stands in a job."""

    kind: JobKind
    scope: Scope
    record_ids: tuple[str, ...] = ()
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One attempt. `token` grows with each claim of the work; effects commit only under the newest."""

    id: JobId
    kind: JobKind
    scope: Scope
    record_ids: tuple[str, ...]
    status: JobStatus
    attempt: int
    token: int
    created_at: datetime
    run_after: datetime
    lease_until: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    done: int
    total: int
    error: str | None
    retry_of: JobId | None = None
    cause: Cause | None = None

    def stuck(self, now: datetime) -> bool:
        """Running, but its worker has not been heard of since its lease ran out."""
        return self.status is JobStatus.RUNNING and self.lease_until is not None and self.lease_until <= now


class JobState(StrEnum):
    """What is asked for: a status, or running without anybody at work on it."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlJob(Job):
    """An attempt as a company sees it.

    `state` says `stuck` where the status says running and nobody is at work on it. `retry_available` is whether it
    would be tried again if an operator asked: it ended badly, there is no attempt after it, and whatever it was to
    deliver is dead.
    """

    state: JobState
    retry_available: bool


@dataclass(frozen=True, slots=True)
class JobFilter:
    """`since` is the first moment of queueing that counts, `until` the first that does not."""

    state: JobState | None = None
    kinds: frozenset[JobKind] | None = None
    binding: str | None = None
    agent: str | None = None
    project: str | None = None
    issue: str | None = None
    run: str | None = None
    hook: HookKind | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class JobPage:
    items: tuple[Job, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class ControlJobPage:
    items: tuple[ControlJob, ...]
    next_cursor: str | None


def gives_up(job: Job) -> bool:
    """Whether a failed attempt is the last. Forgotten bytes are cut from the log however long it takes."""
    return job.attempt >= MAX_ATTEMPTS and job.kind is not JobKind.SCRUB


def retry_delay(attempt: int) -> timedelta:
    """How long to wait after a failed attempt: doubling, up to a bound. All attempts together span an hour."""
    return min(FIRST_RETRY * float(2 ** min(attempt - 1, 20)), LONGEST_RETRY)
