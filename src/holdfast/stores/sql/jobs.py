"""The job queue: jobs are claimed with a lease, and finished under a fencing token."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from holdfast.domain.contract import LookupKeys, lookup_keys
from holdfast.domain.ids import JobId
from holdfast.domain.jobs import Cause, Job, JobKind, JobStatus, NewJob
from holdfast.domain.times import to_micros
from holdfast.errors import LeaseLost
from holdfast.stores.sql import rows
from holdfast.stores.sql.control_rows import cause_json
from holdfast.stores.sql.reader import DUE, SqlReader

# Idempotent kinds: one queued job is enough.
_ONE_AT_A_TIME = frozenset({JobKind.REEMBED, JobKind.SCRUB})
# One job per partition is enough, queued or running.
_ONE_PER_PARTITION = frozenset({JobKind.NEAREST})


def _cause_columns(cause: Cause | None) -> tuple[str | None, str | None, str | None]:
    """Return the columns `binding`, `hook` and `cause`."""
    if cause is None:
        return None, None, None
    return cause.binding, None if cause.hook is None else cause.hook.kind, cause_json(cause)


def _filter_columns(job: NewJob | Job) -> LookupKeys:
    cause = job.cause or Cause()
    return lookup_keys(job.scope, cause.source, cause.hook)


class JobWriter(SqlReader):
    """The part of `ports.Transaction` that is about jobs."""

    def enqueue(self, job_id: JobId, job: NewJob, at: datetime) -> JobId:
        if job.kind in _ONE_AT_A_TIME:
            waiting = self._db.execute(
                "SELECT id FROM jobs WHERE status IN ('queued', 'running') AND status = 'queued'"
                " AND kind = ? AND space = ?",
                (job.kind, job.scope.space),
            ).fetchone()
            if waiting:
                return JobId(waiting[0])
        if job.kind in _ONE_PER_PARTITION:
            there = self._db.execute(
                "SELECT id FROM jobs WHERE status IN ('queued', 'running') AND kind = ? AND partition_id = ?",
                (job.kind, self._number_of(job.scope.partition)),
            ).fetchone()
            if there:
                return JobId(there[0])
        self._queue(job_id, job, 1, at, at, None)
        return job_id

    def _queue(
        self, job_id: JobId, job: NewJob | Job, attempt: int, created_at: datetime, due: datetime, retry_of: str | None
    ) -> None:
        total = len(job.record_ids)
        self._db.execute(
            "INSERT INTO jobs (id, kind, space, partition_id, scope, record_ids, status, attempt, retry_of, created_at,"
            " run_after, total, agent, project, issue, run, binding, hook, cause)"
            " VALUES (?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                job_id, job.kind, job.scope.space, self._number_of(job.scope.partition),
                rows.scope_json(job.scope), json.dumps(job.record_ids), attempt, retry_of, to_micros(created_at),
                to_micros(due), total, *_filter_columns(job), *_cause_columns(job.cause),
            ),
        )  # fmt: skip

    def claim(self, kinds: frozenset[JobKind], now: datetime, lease: timedelta) -> Job | None:
        at = to_micros(now)
        of_kind, named = self.dialect.among("kind", sorted(kinds))
        row = self._db.execute(
            f"SELECT id FROM jobs WHERE {of_kind} AND ({DUE}) ORDER BY run_after, id LIMIT 1{self.dialect.skip_locked}",
            [*named, at, at, at, at],
        ).fetchone()
        if row is None:
            return None
        claimed = self._db.execute(
            "UPDATE jobs SET status = 'running', token = token + 1, lease_until = ?,"
            f" started_at = coalesce(started_at, ?) WHERE id = ? RETURNING {rows.JOB_COLUMNS}",
            (to_micros(now + lease), at, row[0]),
        ).fetchone()
        return rows.job(claimed)

    def extend(self, job: Job, now: datetime, lease: timedelta, done: int, total: int) -> None:
        self._held(job, "lease_until = ?, done = ?, total = ?", to_micros(now + lease), done, total)

    def finish(self, job: Job, status: JobStatus, now: datetime, error: str | None = None) -> None:
        # Not every database can store NUL characters, which an error from outside may contain.
        message = None if error is None else error.replace("\x00", "")
        # Most kinds report no progress: a job that succeeded has done everything.
        progress = ", done = total" if status is JobStatus.SUCCEEDED else ""
        changes = f"status = ?, finished_at = ?, lease_until = NULL, error = ?{progress}"
        self._held(job, changes, status, to_micros(now), message)

    def release(self, job: Job) -> None:
        self._db.execute(
            "UPDATE jobs SET status = 'queued', lease_until = NULL WHERE id = ? AND token = ? AND status = 'running'",
            (job.id, job.token),
        )

    def retry(self, job: Job, now: datetime, run_after: datetime, error: str) -> None:
        self.finish(job, JobStatus.FAILED, now, error)
        self._queue_again(job, now, run_after)

    def _queue_again(self, job: Job, now: datetime, run_after: datetime) -> JobId:
        # Padded, so that ids sort by attempt.
        again = JobId(f"{job.id.split('.')[0]}.{job.attempt + 1:02}")
        self._queue(again, job, job.attempt + 1, now, run_after, job.id)
        return again

    def retry_job(self, job_id: JobId, now: datetime) -> Job | None:
        job = self.job(job_id)
        if job is None or job.status not in (JobStatus.FAILED, JobStatus.CANCELLED):
            return None
        if self._db.execute("SELECT 1 FROM jobs WHERE retry_of = ?", (job_id,)).fetchone() is not None:
            return None
        # Skip records that were forgotten since.
        gone = self.buried(job.scope.partition, job.record_ids)
        remaining = tuple(record_id for record_id in job.record_ids if record_id not in gone)
        return self.job(self._queue_again(replace(job, record_ids=remaining), now, now))

    def cancel_job(self, job_id: JobId, now: datetime) -> Job | None:
        within, values = self._of_jobs()
        cancelled = self._db.execute(
            "UPDATE jobs AS x SET status = 'cancelled', finished_at = ?, lease_until = NULL"
            f" WHERE {within} AND x.id = ? AND x.status IN ('queued', 'running')",
            [to_micros(now), *values, job_id],
        )
        return self.job(job_id) if cancelled.rowcount == 1 else None

    def _held(self, job: Job, changes: str, *values: object) -> None:
        updated = self._db.execute(
            f"UPDATE jobs SET {changes} WHERE id = ? AND token = ? AND status = 'running'",
            [*values, job.id, job.token],
        )
        if updated.rowcount != 1:
            raise LeaseLost(f"{job.id} was taken over by another worker, or cancelled")

    def _forget_in_jobs(self, record_ids: Iterable[str]) -> None:
        """Remove forgotten records from queued and running jobs."""
        doomed = set(record_ids)
        waiting = self._db.execute("SELECT id, record_ids FROM jobs WHERE status IN ('queued', 'running')").fetchall()
        for job_id, listed in waiting:
            ids = json.loads(listed)
            remaining = [record_id for record_id in ids if record_id not in doomed]
            if len(remaining) < len(ids):
                self._db.execute("UPDATE jobs SET record_ids = ? WHERE id = ?", (json.dumps(remaining), job_id))
