"""Query background jobs by state and by cause."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from holdfast.domain.ids import JOB
from holdfast.domain.jobs import Job, JobFilter, JobState
from holdfast.domain.times import to_micros
from holdfast.stores.sql import rows
from holdfast.stores.sql.pagination import LeadingIndex, PageQuery, PageReader

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


class JobReader(PageReader):
    """The part of `ports.Reader` that is about jobs, except the queries of workers."""

    def _of_jobs(self) -> tuple[str, list[Any]]:
        """Match by space first: jobs without a partition still belong to the space."""
        space, values = self._in_any_space()
        if self._grant.partitions is not None:
            reach, numbers = self._reach("x")
            space, values = f"{space} AND {reach}", [*values, *numbers]
        return self._within_scope_of("x", (space, values))

    def job(self, job_id: str) -> Job | None:
        within, values = self._of_jobs()
        row = self._db.execute(
            f"SELECT {rows.JOB_COLUMNS} FROM jobs x WHERE {within} AND x.id = ?", [*values, job_id]
        ).fetchone()
        return rows.job(row) if row else None

    def delivering(self, delivery_id: str) -> Job | None:
        within, values = self._of_jobs()
        row = self._db.execute(
            f"SELECT {rows.JOB_COLUMNS} FROM jobs x WHERE {within} AND x.kind = 'deliver' AND x.record_ids = ?{_OPEN}",
            [*values, json.dumps([delivery_id])],
        ).fetchone()
        return rows.job(row) if row else None

    def tried_again(self, job_ids: Collection[str]) -> frozenset[str]:
        within, values = self._of_jobs()
        return frozenset(
            row[0]
            for condition, named in self._among("x.retry_of", list(job_ids))
            for row in self._db.execute(
                f"SELECT x.retry_of FROM jobs x WHERE {within} AND {condition}", [*values, *named]
            )
        )

    def jobs_page(self, wanted: JobFilter, now: datetime, before: str | None, limit: int) -> Sequence[Job]:
        if self._grant.partitions is not None and not self._partitions():
            return []  # nothing was ever stored there
        query = PageQuery(self._of_jobs())
        for part in ("agent", "project", "issue", "run", "binding", "hook"):
            query.require(**{part: getattr(wanted, part)})
        if wanted.kinds is not None:
            query.equal["kind"] = sorted(wanted.kinds)
        if wanted.state is JobState.STUCK:
            query.require(status="running")
            query.where("x.lease_until <= ?", to_micros(now))
        elif wanted.state is not None:
            query.require(status=wanted.state)
        self._since_and_until("jobs", JOB, query, "created_at", wanted.since, wanted.until)
        leads = [*_LEADS, *([_BY_STATUS[wanted.state]] if wanted.state in _BY_STATUS else [])]
        found = self._newest("jobs", rows.JOB_COLUMNS, query, leads, before, limit)
        return [rows.job(row) for row in found]
