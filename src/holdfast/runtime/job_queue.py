"""Queue background jobs, in the transaction that causes them."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain import ids
from holdfast.domain.ids import JobId
from holdfast.domain.jobs import Cause, JobKind, NewJob
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.ports import Transaction
from holdfast.runtime.requests import Core

_RECORDS_PER_INDEX_JOB = 500


def enqueue(transaction: Transaction, core: Core, job: NewJob) -> JobId:
    return transaction.jobs.enqueue(JobId(core.ids.new(ids.JOB)), job, core.clock.now())


def enqueue_for_store(transaction: Transaction, core: Core, kind: JobKind) -> JobId:
    """Queue a job that works on the whole store."""
    return enqueue(transaction, core, NewJob(kind, Scope(space=EVERYWHERE)))


def enqueue_batches(
    transaction: Transaction,
    core: Core,
    kind: JobKind,
    scope: Scope,
    record_ids: Sequence[str],
    batch: int,
    cause: Cause | None = None,
) -> tuple[JobId, ...]:
    """Queue one job for each batch of records."""
    return tuple(
        enqueue(transaction, core, NewJob(kind, scope, tuple(record_ids[start : start + batch]), cause))
        for start in range(0, len(record_ids), batch)
    )


def enqueue_indexing(
    transaction: Transaction, core: Core, scope: Scope, record_ids: Sequence[str], cause: Cause | None = None
) -> tuple[JobId, ...]:
    """Queue jobs that make the missing vectors of these records."""
    return enqueue_batches(transaction, core, JobKind.INDEX, scope, record_ids, _RECORDS_PER_INDEX_JOB, cause)
