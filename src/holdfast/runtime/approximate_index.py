"""Approximate nearest-neighbour indexes of large partitions: find the due ones and build them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from holdfast.domain.access import storewide_grant
from holdfast.domain.jobs import LEASE, Job, JobKind, NewJob
from holdfast.domain.scope import Partition, PartitionKind, Scope
from holdfast.ports import Transaction
from holdfast.runtime.gate import Core
from holdfast.runtime.job_queue import enqueue, enqueue_for_store


async def queue_due(core: Core) -> int:
    """Queue a build for every index that is missing or far behind. Return their number."""
    least = core.approximate_from
    if not least or core.store.exact_because is not None:
        return 0
    fingerprint = core.embedder.fingerprint
    due = await core.store.read(storewide_grant(), lambda reader: reader.index.nearest_due(fingerprint, least))

    def enqueue_builds(transaction: Transaction) -> None:
        for partition in due:
            enqueue(transaction, core, NewJob(JobKind.NEAREST, _scope_of(partition)))

    if due:
        await core.store.write(storewide_grant(), enqueue_builds)
    return len(due)


def _scope_of(partition: Partition) -> Scope:
    subject = partition.owner if partition.kind is PartitionKind.SUBJECT else None
    agent = partition.owner if partition.kind is PartitionKind.AGENT else None
    return Scope(space=partition.space, subject=subject, agent=agent)


async def build_index(core: Core, job: Job, reached: Callable[[int, int], None]) -> Callable[[Transaction], None]:
    """Build the index of the job's partition. The returned effect publishes it."""
    stopped = threading.Event()
    whole = 0

    def go_on(done: int, total: int) -> bool:
        nonlocal whole
        whole = total
        reached(done, total)
        return not stopped.is_set()

    try:
        publish = await core.store.build_nearest(
            job.scope.partition, core.embedder.fingerprint, core.clock.now(), go_on
        )
    finally:
        # If the caller was cancelled, stop the build.
        stopped.set()
    return partial(_publish, core, job, publish, whole)


def _publish(
    core: Core, job: Job, publish: Callable[[Transaction], None] | None, total: int, transaction: Transaction
) -> None:
    if publish is not None:
        publish(transaction)
        transaction.jobs.extend(job, core.clock.now(), LEASE, total, total)
        # The scrub removes the replaced index, and blanks records in the new one that were forgotten meanwhile.
        enqueue_for_store(transaction, core, JobKind.SCRUB)
