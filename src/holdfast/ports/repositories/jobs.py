"""Port of background jobs: claimed with a lease, finished under a fencing token. A narrower grant reaches its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from holdfast.domain.ids import JobId
from holdfast.domain.jobs import Job, JobFilter, JobKind, JobStatus, NewJob


class JobReader(Protocol):
    def find(self, job_id: str) -> Job | None: ...

    def find_for_delivery(self, delivery_id: str) -> Job | None:
        """Return the queued or running job of a delivery, if any."""

    def page(self, wanted: JobFilter, now: datetime, before: str | None, limit: int) -> Sequence[Job]:
        """Return jobs with ids below `before`, newest first; `now` decides which are stuck."""

    def newest(self, status: JobStatus | None = None, limit: int = 100) -> Sequence[Job]:
        """Return the newest jobs of the partitions that the grant reaches."""

    def counts(self) -> dict[str, int]:
        """Count jobs by status."""

    def has_due(self, now: datetime, kinds: frozenset[JobKind] | None = None) -> bool:
        """True if a worker of these kinds, by default all, would find a job to claim."""

    def retried_ids(self, job_ids: Collection[str]) -> frozenset[str]:
        """Return those of these jobs that have a later attempt."""


class JobWriter(JobReader, Protocol):
    def enqueue(self, job_id: JobId, job: NewJob, at: datetime) -> JobId:
        """Queue a job. An idempotent kind that is queued already is not queued twice."""

    def claim(self, kinds: frozenset[JobKind], now: datetime, lease: timedelta) -> Job | None:
        """Claim the oldest due job, or one whose lease expired."""

    def extend(self, job: Job, now: datetime, lease: timedelta, done: int, total: int) -> None:
        """Extend the lease; raises `LeaseLost` if another worker holds the job now."""

    def finish(self, job: Job, status: JobStatus, now: datetime, error: str | None = None) -> None:
        """End an attempt; raises `LeaseLost` if another worker holds the job now: then this transaction does not
        commit. A job that succeeded counts as fully done, whatever progress was reported.
        """

    def retry(self, job: Job, now: datetime, run_after: datetime, error: str) -> None:
        """End this attempt as failed and queue the next."""

    def release(self, job: Job) -> None:
        """Give a claimed job back, to be claimed again at once; no effect if another worker holds it."""

    def restart(self, job_id: JobId, now: datetime) -> Job | None:
        """Queue a new attempt, due now, after one that failed or was cancelled; None if it did not end so, or has been
        retried."""

    def cancel(self, job_id: JobId, now: datetime) -> Job | None:
        """Cancel a job; a running worker can no longer commit. None if it had ended."""
