"""Background jobs: they are claimed with a lease, and finished under a fencing token."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from holdfast.domain.contract import LookupKeys, lookup_keys
from holdfast.domain.ids import JOB, JobId
from holdfast.domain.jobs import Cause, Job, JobFilter, JobKind, JobState, JobStatus, NewJob
from holdfast.domain.times import to_micros
from holdfast.errors import LeaseLost
from holdfast.stores.sql import rows
from holdfast.stores.sql.grant_scope import SqlRepository
from holdfast.stores.sql.pagination import LeadingIndex, PageQuery, bound_times, read_newest
from holdfast.stores.sql.records.reader import SqlRecordReader
from holdfast.stores.sql.rows import as_json, builder_of

_COLUMNS = (
    "id, kind, scope, record_ids, status, attempt, token, created_at, run_after, lease_until, started_at,"
    " finished_at, done, total, error, retry_of, cause"
)
_job = builder_of(Job, _COLUMNS)
# Idempotent kinds: one queued job is enough.
_ONE_AT_A_TIME = frozenset({JobKind.REEMBED, JobKind.SCRUB, JobKind.CHECKSUM})
# One job per partition is enough, queued or running.
_ONE_PER_PARTITION = frozenset({JobKind.NEAREST})
_ENDED = " AND x.status IN ('failed', 'cancelled')"
_OPEN = " AND x.status IN ('queued', 'running')"
_LEADS = (
    LeadingIndex("jobs_run", ("run",)),
    LeadingIndex("jobs_issue", ("issue",)),
    LeadingIndex("jobs_agent", ("agent",)),
    LeadingIndex("jobs_hook", ("hook",)),
    LeadingIndex("jobs_project", ("project",)),
    LeadingIndex("jobs_binding", ("binding",)),
)
# The index for each status. Succeeded jobs need none: nearly all jobs succeed.
_BY_STATUS = {
    JobState.FAILED: LeadingIndex("jobs_ended", ("status",), _ENDED),
    JobState.CANCELLED: LeadingIndex("jobs_ended", ("status",), _ENDED),
    JobState.QUEUED: LeadingIndex("jobs_due", ("status",), _OPEN),
    JobState.RUNNING: LeadingIndex("jobs_due", ("status",), _OPEN),
    JobState.STUCK: LeadingIndex("jobs_due", ("status",), _OPEN),
}
# A job created in the future was queued before the clock went back: it must not wait for the clock to catch up.
# A lease that ends later than this was granted before the clock went back: it is void.
_LONGEST_LEASE_MICROS = 3_600_000_000
_DUE = (
    "status IN ('queued', 'running')"
    " AND CASE status WHEN 'queued' THEN run_after <= ? OR created_at > ? "
    f" ELSE lease_until <= ? OR lease_until > ? + {_LONGEST_LEASE_MICROS} END"
)


def _cause_columns(cause: Cause | None) -> tuple[str | None, str | None, str | None]:
    """Return the columns `binding`, `hook` and `cause`."""
    if cause is None:
        return None, None, None
    return cause.binding, None if cause.hook is None else cause.hook.kind, as_json(cause)


def _filter_columns(job: NewJob | Job) -> LookupKeys:
    cause = job.cause or Cause()
    return lookup_keys(job.scope, cause.source, cause.hook)


class SqlJobReader(SqlRepository):
    """Implements `JobReader`."""

    def find(self, job_id: str) -> Job | None:
        return self._find_one("x.id = ?", job_id)

    def find_for_delivery(self, delivery_id: str) -> Job | None:
        return self._find_one(f"x.kind = 'deliver' AND x.record_ids = ?{_OPEN}", json.dumps([delivery_id]))

    def _find_one(self, condition: str, value: str) -> Job | None:
        within, values = self._scope.within_space()
        row = self._db.execute(
            f"SELECT {_COLUMNS} FROM jobs x WHERE {within} AND {condition}", [*values, value]
        ).fetchone()
        return _job(row) if row else None

    def retried_ids(self, job_ids: Collection[str]) -> frozenset[str]:
        within, values = self._scope.within_space()
        statement = f"SELECT x.retry_of FROM jobs x WHERE {within} AND {{}}"
        found = self._scope.rows_among("x.retry_of", list(job_ids), statement, before=values)
        return frozenset(job_id for (job_id,) in found)

    def page(self, wanted: JobFilter, now: datetime, before: str | None, limit: int) -> Sequence[Job]:
        if self._scope.grant.partitions is not None and not self._scope.partitions():
            return []  # nothing was ever stored there
        query = PageQuery(self._scope.within_space())
        for part in ("agent", "project", "issue", "run", "binding", "hook"):
            query.require(**{part: getattr(wanted, part)})
        if wanted.kinds is not None:
            query.equal["kind"] = sorted(wanted.kinds)
        if wanted.state is JobState.STUCK:
            query.require(status="running")
            query.where("x.lease_until <= ?", to_micros(now))
        elif wanted.state is not None:
            query.require(status=wanted.state)
        bound_times(self._scope, "jobs", JOB, query, "created_at", wanted.since, wanted.until)
        leads = [*_LEADS, *([_BY_STATUS[wanted.state]] if wanted.state in _BY_STATUS else [])]
        found = read_newest(self._scope, "jobs", _COLUMNS, query, leads, before, limit)
        return [_job(row) for row in found]

    def newest(self, status: JobStatus | None = None, limit: int = 100) -> Sequence[Job]:
        within, values = self._scope.within_scope_of("j")
        condition = "" if status is None else "AND j.status = ?"
        found = self._db.execute(
            f"SELECT {_COLUMNS} FROM jobs j WHERE {within} {condition} ORDER BY j.id DESC LIMIT ?",
            [*values, *([] if status is None else [status]), limit],
        )
        return [_job(row) for row in found]

    def counts(self) -> dict[str, int]:
        within, values = self._scope.within_scope_of("j")
        found = self._db.execute(f"SELECT j.status, count(*) FROM jobs j WHERE {within} GROUP BY j.status", values)
        return dict(found.fetchall())

    def has_due(self, now: datetime, kinds: frozenset[JobKind] | None = None) -> bool:
        at = to_micros(now)
        of_kind, named = ("TRUE", []) if kinds is None else self._scope.dialect.among("kind", sorted(kinds))
        row = self._db.execute(
            f"SELECT 1 FROM jobs WHERE {of_kind} AND ({_DUE}) LIMIT 1", [*named, at, at, at, at]
        ).fetchone()
        return row is not None


class SqlJobWriter(SqlJobReader):
    """Implements `JobWriter`."""

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
                (job.kind, self._scope.number_of(job.scope.partition)),
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
                job_id, job.kind, job.scope.space, self._scope.number_of(job.scope.partition),
                rows.scope_json(job.scope), json.dumps(job.record_ids), attempt, retry_of, to_micros(created_at),
                to_micros(due), total, *_filter_columns(job), *_cause_columns(job.cause),
            ),
        )  # fmt: skip

    def claim(self, kinds: frozenset[JobKind], now: datetime, lease: timedelta) -> Job | None:
        at = to_micros(now)
        dialect = self._scope.dialect
        of_kind, named = dialect.among("kind", sorted(kinds))
        row = self._db.execute(
            f"SELECT id FROM jobs WHERE {of_kind} AND ({_DUE}) ORDER BY run_after, id LIMIT 1{dialect.skip_locked}",
            [*named, at, at, at, at],
        ).fetchone()
        if row is None:
            return None
        claimed = self._db.execute(
            "UPDATE jobs SET status = 'running', token = token + 1, lease_until = ?,"
            f" started_at = coalesce(started_at, ?) WHERE id = ? RETURNING {_COLUMNS}",
            (to_micros(now + lease), at, row[0]),
        ).fetchone()
        return _job(claimed)

    def extend(self, job: Job, now: datetime, lease: timedelta, done: int, total: int) -> None:
        self._update_claimed(job, "lease_until = ?, done = ?, total = ?", to_micros(now + lease), done, total)

    def finish(self, job: Job, status: JobStatus, now: datetime, error: str | None = None) -> None:
        # Not every database can store NUL characters, which an error from outside may contain.
        message = None if error is None else error.replace("\x00", "")
        # Most kinds report no progress: a job that succeeded has done everything.
        progress = ", done = total" if status is JobStatus.SUCCEEDED else ""
        changes = f"status = ?, finished_at = ?, lease_until = NULL, error = ?{progress}"
        self._update_claimed(job, changes, status, to_micros(now), message)

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

    def restart(self, job_id: JobId, now: datetime) -> Job | None:
        job = self.find(job_id)
        if job is None or job.status not in (JobStatus.FAILED, JobStatus.CANCELLED):
            return None
        if self._db.execute("SELECT 1 FROM jobs WHERE retry_of = ?", (job_id,)).fetchone() is not None:
            return None
        # Skip records that were forgotten since.
        gone = SqlRecordReader(self._scope).tombstones(job.scope.partition, job.record_ids)
        remaining = tuple(record_id for record_id in job.record_ids if record_id not in gone)
        return self.find(self._queue_again(replace(job, record_ids=remaining), now, now))

    def cancel(self, job_id: JobId, now: datetime) -> Job | None:
        within, values = self._scope.within_space()
        cancelled = self._db.execute(
            "UPDATE jobs AS x SET status = 'cancelled', finished_at = ?, lease_until = NULL"
            f" WHERE {within} AND x.id = ? AND x.status IN ('queued', 'running')",
            [to_micros(now), *values, job_id],
        )
        return self.find(job_id) if cancelled.rowcount == 1 else None

    def _update_claimed(self, job: Job, changes: str, *values: object) -> None:
        updated = self._db.execute(
            f"UPDATE jobs SET {changes} WHERE id = ? AND token = ? AND status = 'running'",
            [*values, job.id, job.token],
        )
        if updated.rowcount != 1:
            raise LeaseLost(f"{job.id} was taken over by another worker, or cancelled")

    def forget_records(self, record_ids: Iterable[str]) -> None:
        """Remove forgotten records from queued and running jobs."""
        forgotten = set(record_ids)
        waiting = self._db.execute("SELECT id, record_ids FROM jobs WHERE status IN ('queued', 'running')").fetchall()
        for job_id, listed in waiting:
            ids = json.loads(listed)
            remaining = [record_id for record_id in ids if record_id not in forgotten]
            if len(remaining) < len(ids):
                self._db.execute("UPDATE jobs SET record_ids = ? WHERE id = ?", (json.dumps(remaining), job_id))
