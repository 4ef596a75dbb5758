"""Background jobs: one row per attempt, held by a lease; a fencing token guards its effects."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated

from holdfast.domain.arguments import many
from holdfast.domain.bindings import Key
from holdfast.domain.contract import HookContext, HookKind, Since, SourceRef, Until
from holdfast.domain.ids import JobId, OperationId
from holdfast.domain.presentable import Presentable, PresentableList
from holdfast.domain.scope import Part, Scope

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
    CHECKSUM = "checksum"


class JobStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Cause(Presentable):
    """The origin of a job: the call, and the hook and source of that call."""

    operation_id: OperationId | None = None
    binding: str | None = None
    hook: HookContext | None = None
    source: SourceRef | None = None


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to enqueue. `record_ids` name the records it works on; a job never holds text."""

    kind: JobKind
    scope: Scope
    record_ids: tuple[str, ...] = ()
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class Job(Presentable):
    """One attempt of a job. `token` is a fencing token: it grows with each claim, and only the newest commits."""

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

    def is_stuck(self, now: datetime) -> bool:
        """True if it is running and its lease has expired."""
        return self.status is JobStatus.RUNNING and self.lease_until is not None and self.lease_until <= now


class JobState(StrEnum):
    """A state to filter by: a status, or `stuck`: running with an expired lease."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlJob(Job):
    """An attempt as a space sees it.

    `state` is `stuck` if the status is running and the lease expired. `retry_available` if an operator can retry it:
    it failed or was cancelled, no attempt follows it, and its delivery, if any, is dead.
    """

    state: JobState
    retry_available: bool


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Jobs queued at or after `since` and before `until`."""

    state: Annotated[JobState | None, "In this state; stuck: still running, but its lease has expired."] = None
    kinds: Annotated[
        frozenset[JobKind] | None, many(len(JobKind), noun="KIND"), "Of these kinds, such as extract or deliver."
    ] = None
    binding: Annotated[Key | None, "Through this binding."] = None
    agent: Annotated[Part | None, "Of this agent."] = None
    project: Annotated[Part | None, "In this project."] = None
    issue: Annotated[Part | None, "In this issue."] = None
    run: Annotated[Part | None, "In this run."] = None
    hook: Annotated[HookKind | None, "Triggered by this hook."] = None
    since: Since | None = None
    until: Until | None = None


@dataclass(frozen=True, slots=True)
class JobPage:
    items: tuple[Job, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class ControlJobPage(PresentableList[ControlJob]):
    items: tuple[ControlJob, ...]
    next_cursor: str | None


def is_last_attempt(job: Job) -> bool:
    """True if a failed attempt is the last. A scrub never gives up: forgotten bytes must leave the log."""
    return job.attempt >= MAX_ATTEMPTS and job.kind is not JobKind.SCRUB


def retry_delay(attempt: int) -> timedelta:
    """Return the exponential backoff after a failed attempt. All attempts together span an hour."""
    return min(FIRST_RETRY * float(2 ** min(attempt - 1, 20)), LONGEST_RETRY)
