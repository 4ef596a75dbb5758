"""The worker: claims jobs, runs them, and commits their effects together with their completion.

A job is held by a lease that heartbeats extend. Its fencing token stops a worker that lost the lease, or whose job was
cancelled, from committing. A failed attempt is retried with growing delay; after the last, the job stays failed and
visible.

Each kind of job has a handler: the engine's own, or one passed in.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from holdfast.domain.access import SYSTEM, Action, authorize, storewide_grant
from holdfast.domain.jobs import (
    HEARTBEATS_PER_LEASE,
    LEASE,
    MAX_CLAIMS,
    Job,
    JobKind,
    JobStatus,
    is_last_attempt,
    retry_delay,
)
from holdfast.errors import HoldfastError, LeaseLost, StoreClosed, StoreError
from holdfast.failpoints import reach
from holdfast.ports import Transaction, UnindexedRecord
from holdfast.ports.repositories.maintenance import UNFILLED, RowPosition
from holdfast.runtime import approximate_index, indexing
from holdfast.runtime.attempts import AttemptFailed, Effect, Failure
from holdfast.runtime.extract import learn_by_rules_instead, run_extraction
from holdfast.runtime.gate import Core
from holdfast.runtime.job_queue import enqueue_for_store
from holdfast.runtime.metering import report_costs, with_costs
from holdfast.runtime.model_verbs import record_model_verbs

POLL_SECONDS = 2.0
LOOK_SECONDS = 30.0
CHECKSUM_ROWS = 500
INDEXED_BY = "indexed_by"
log = logging.getLogger("holdfast.worker")


def _ignore_failure(transaction: Transaction, job: Job, failure: Failure) -> None:
    """The default: write nothing, because the job row says enough."""


@dataclass(frozen=True, slots=True)
class Handler:
    """Runs jobs of one kind: slow work first, then an effect that commits with the job's completion. An effect that
    writes cost events lists them in its `costs`.

    If `do` returns no effect, it has completed the job itself. `failed` records a failure in the commit that ends the
    attempt.
    """

    do: Callable[[Core, Job], Awaitable[Effect | None]]
    failed: Callable[[Transaction, Job, Failure], None] = _ignore_failure


Handlers = Mapping[JobKind, Handler]


def index_identity(core: Core) -> str:
    """The embedder and analyzer version that a store's indexes are built with."""
    return f"{core.embedder.fingerprint}/{core.analyzer.version}"


async def queue_upkeep(core: Core) -> None:
    """Queue re-embedding if another embedder or analyzer built the store's indexes, and checksums if rows have none.

    In a new store, record the facts about it.
    """
    made_by, unfilled = await core.store.read(
        storewide_grant(), lambda reader: [reader.maintenance.fact(name) for name in (INDEXED_BY, UNFILLED)]
    )
    if unfilled is not None:
        await core.store.write(
            storewide_grant(), lambda transaction: enqueue_for_store(transaction, core, JobKind.CHECKSUM)
        )
    if made_by == index_identity(core):
        return

    def queue(transaction: Transaction) -> None:
        if made_by is None:
            transaction.maintenance.put_fact(INDEXED_BY, index_identity(core))
            record_model_verbs(transaction)
        else:
            enqueue_for_store(transaction, core, JobKind.REEMBED)

    await core.store.write(storewide_grant(), queue)


class Worker:
    """Runs one job at a time. Many workers, in one or more processes, may share a store.

    With `kinds` it claims only those. With `looks` it also looks for work that is not queued.
    """

    def __init__(
        self,
        core: Core,
        handlers: Handlers | None = None,
        *,
        lease: timedelta = LEASE,
        kinds: frozenset[JobKind] | None = None,
        looks: bool = True,
    ) -> None:
        self._core = core
        self._lease = lease
        self._looks = looks
        self._wake = asyncio.Event()
        self._at_work = asyncio.Lock()
        self._current: Job | None = None
        self._claiming = False
        self._ending = False  # True while the current job's effect is being committed
        self._stopping = asyncio.Event()
        self._look_at = 0.0
        self._reached = (0, 0)  # progress of the current job: done, total
        self.failures = 0
        self.ended_badly: Counter[tuple[str, JobKind]] = Counter()  # failed for good, by space and kind
        all_handlers = {**self._engine_handlers(), **(handlers or {})}
        self._handlers = {kind: each for kind, each in all_handlers.items() if kinds is None or kind in kinds}

    def _engine_handlers(self) -> dict[JobKind, Handler]:
        own: dict[JobKind, Callable[[Core, Job], Awaitable[Effect | None]]] = {
            JobKind.INDEX: _index,
            JobKind.REEMBED: self._reembed,
            JobKind.SCRUB: _scrub,
            JobKind.NEAREST: self._nearest,
            JobKind.CHECKSUM: self._add_checksums,
        }
        if self._core.curator is not None:  # otherwise left to a worker that has one
            # Imported here because it loads the transcript modules, which only a curator needs.
            from holdfast.runtime.transcripts.maintenance_job import run_maintenance

            own[JobKind.MAINTAIN] = run_maintenance
        handlers = {kind: Handler(do) for kind, do in own.items()}
        handlers[JobKind.EXTRACT] = Handler(self._extract, learn_by_rules_instead)
        return handlers

    @property
    def kinds(self) -> frozenset[JobKind]:
        return frozenset(self._handlers)

    def wake(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        """Claim no more jobs; `run` returns when the current one has ended. To stop sooner, cancel `run`, then call
        `release`.
        """
        self._stopping.set()
        self._wake.set()

    async def run(self) -> None:
        """Work until stopped."""
        if self._looks and JobKind.REEMBED in self._handlers:
            await self._look_for_unindexed()
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                if self._looks and JobKind.NEAREST in self._handlers:
                    await self._look_for_large()
                await self.drain()
            except StoreClosed:
                return
            except HoldfastError as error:
                log.warning("the worker pauses after %s: %s", error.code, error)
            if self._stopping.is_set():
                return
            # Not `wait_for`: before Python 3.12 it swallows a cancellation that arrives together with the event.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._wake.wait()

    async def _look_for_unindexed(self) -> None:
        """Queue indexing of records that a process with another embedder or version may have added."""
        with contextlib.suppress(StoreError):  # the next start tries again
            if await self._next_batch(0, 1):
                await self._core.store.write(
                    storewide_grant(), lambda transaction: enqueue_for_store(transaction, self._core, JobKind.REEMBED)
                )

    async def _look_for_large(self) -> None:
        """Queue due index builds, now and then. The check grows with the store; limit it to 1% of the time."""
        if time.monotonic() < self._look_at:
            return
        started = time.monotonic()
        await approximate_index.queue_due(self._core)
        now = time.monotonic()
        self._look_at = now + max(LOOK_SECONDS, 100 * (now - started))

    async def drain(self) -> int:
        """Run all due jobs, after the current one. Return their number."""
        done = 0
        async with self._at_work:
            while not self._stopping.is_set() and (job := await self._claim()) is not None:
                await self._run_job(job)
                done += 1
        return done

    async def _claim(self) -> Job | None:
        # Check with a read first, so that an idle worker causes no writes.
        now, kinds = self._core.clock.now(), self.kinds
        if not await self._core.store.read(storewide_grant(), lambda reader: reader.jobs.has_due(now, kinds)):
            return None

        def take(transaction: Transaction) -> Job | None:
            # Set here, not after the commit: if cancelled in between, the job must still be released.
            reach("job.claim.before")
            self._current = transaction.jobs.claim(kinds, now, self._lease)
            reach("job.claim.after")
            return self._current

        self._claiming = True
        claimed = await self._core.store.write(storewide_grant(), take)
        self._claiming = False
        return claimed

    async def release(self) -> None:
        """Release the job of a stopped worker, so that its lease need not expire first."""

        def give_back(transaction: Transaction) -> None:
            # Read here, after a claim in progress: its result is no longer awaited.
            if self._current is not None:
                transaction.jobs.release(self._current)

        if self._current is not None or self._claiming:
            await self._core.store.write(storewide_grant(), give_back)

    async def _run_job(self, job: Job) -> None:
        self._reached, self._ending = (job.done, job.total), False
        if job.token > MAX_CLAIMS:
            await self._fail_job(job, None, f"its worker was lost {job.token - 1} times", last=True)
        else:
            await self._attempt(job)
        self._current = None

    async def _attempt(self, job: Job) -> None:
        """Run the job with a heartbeat. If the heartbeat finds the lease lost, the work is cancelled."""
        work = asyncio.create_task(self._run_handler(job))
        heart = asyncio.create_task(self._heartbeat(job, work))
        started = time.monotonic()
        try:
            await asyncio.wait({work})
        finally:
            heart.cancel()
            work.cancel()
            # Gathered, not awaited: do not confuse their cancellation with ours.
            await asyncio.gather(heart, work, return_exceptions=True)
        if work.cancelled():
            log.warning("job %s of kind %s was abandoned: its lease was lost or it was cancelled", job.id, job.kind)
            return
        error = work.exception()
        if error is None:
            log.debug("job %s of kind %s succeeded in %.3f s", job.id, job.kind, time.monotonic() - started)
        elif isinstance(error, LeaseLost):
            log.warning("%s", error)
        elif isinstance(error, AttemptFailed):
            message = f"{error.error.code}: {error.error}"
            await self._fail_job(job, error.error.code, message, error.about, last=error.final)
        elif isinstance(error, HoldfastError):
            await self._fail_job(job, error.code, f"{error.code}: {error}")
        elif isinstance(error, Exception):
            log.error("job %s of kind %s failed", job.id, job.kind, exc_info=error)
            await self._fail_job(job, "internal_error", f"internal_error: {type(error).__name__}")
        else:
            raise error

    async def _run_handler(self, job: Job) -> None:
        effect = await self._handlers[job.kind].do(self._core, job)
        if effect is None:
            return
        self._ending = True
        await self._core.store.write(
            storewide_grant(), lambda transaction: self._complete_job(transaction, job, effect)
        )
        report_costs(self._core, effect)

    def _complete_job(self, transaction: Transaction, job: Job, effect: Effect) -> None:
        reach("job.finish.before")
        effect(transaction)
        transaction.jobs.finish(job, JobStatus.SUCCEEDED, self._core.clock.now())
        reach("job.finish.after")

    async def _fail_job(
        self, job: Job, code: str | None, told: str, about: object = None, *, last: bool = False
    ) -> None:
        now = self._core.clock.now()
        last = last or is_last_attempt(job)
        self.failures += 1
        log.info("job %s of kind %s failed, attempt %d: %s", job.id, job.kind, job.attempt, told)

        def end(transaction: Transaction) -> None:
            self._handlers[job.kind].failed(transaction, job, Failure(code, about, last, now))
            if last:
                transaction.jobs.finish(job, JobStatus.FAILED, now, told)
            else:
                transaction.jobs.retry(job, now, now + retry_delay(job.attempt), told)

        try:
            await self._core.store.write(storewide_grant(), end)
        except LeaseLost as lost:
            log.warning("%s", lost)
            return
        if last:
            self.ended_badly[job.scope.space, job.kind] += 1
        if self._core.watcher is not None:
            self._core.watcher.on_job_failed(job, last=last)

    async def _heartbeat(self, job: Job, work: asyncio.Task[None]) -> None:
        while True:
            await asyncio.sleep(self._lease.total_seconds() / HEARTBEATS_PER_LEASE)
            try:
                await self._commit_progress(job, *self._reached)
            except LeaseLost:
                # If the effect is being committed, the store decides; it may be committed already.
                if not self._ending:
                    work.cancel()
                return
            except StoreError as error:
                log.warning("the heartbeat of %s was missed: %s", job.id, error)

    async def _commit_progress(self, job: Job, done: int, total: int, effect: Effect | None = None) -> None:
        def extend(transaction: Transaction) -> None:
            transaction.jobs.extend(job, self._core.clock.now(), self._lease, done, total)
            if effect is not None:
                effect(transaction)

        self._reached = (done, total)
        await self._core.store.write(storewide_grant(), extend)

    # --- the engine's own kinds that report progress ---

    async def _reembed(self, core: Core, job: Job) -> Effect:
        """Index in batches, each committed with its progress, so that another worker can resume."""
        fingerprint, version = core.embedder.fingerprint, core.analyzer.version
        counts = await core.store.read(
            storewide_grant(), lambda reader: reader.maintenance.counts(fingerprint, version)
        )
        waiting = counts["pending_vectors"]
        # Records indexed by others count as done.
        total = max(counts["messages"] + counts["memories"], waiting)
        done, after = total - waiting, 0
        while batch := await self._next_batch(after):
            # This spans all spaces, so its usage is charged to none.
            made = (await indexing.index_records(core, batch)).result
            done, after = done + len(batch), batch[-1].number
            effect = partial(indexing.store_index, made, fingerprint, version)
            await self._commit_progress(job, done, max(total, done), effect)
        return partial(_record_index_identity, index_identity(core))

    async def _next_batch(self, after: int, limit: int = indexing.BATCH) -> list[UnindexedRecord]:
        core = self._core
        return list(
            await core.store.read(
                storewide_grant(),
                lambda reader: reader.index.backlog(core.embedder.fingerprint, core.analyzer.version, after, limit),
            )
        )

    async def _extract(self, core: Core, job: Job) -> Effect:
        return await run_extraction(core, job, self._set_progress)

    async def _nearest(self, core: Core, job: Job) -> Effect:
        return await approximate_index.build_index(core, job, self._set_progress)

    async def _add_checksums(self, core: Core, job: Job) -> Effect:
        """Add the checksums of rows from before there were any, in slices that hold up no other write."""
        done, position = 0, None
        steps: list[RowPosition | None] = []

        def add(transaction: Transaction) -> None:
            steps.append(transaction.maintenance.add_checksums(position, CHECKSUM_ROWS))

        while not steps or position is not None:
            await self._commit_progress(job, done, done, add)
            done, position = done + CHECKSUM_ROWS, steps[-1]
        return lambda transaction: None

    def _set_progress(self, done: int, total: int) -> None:
        """Set the progress for the next heartbeat to report."""
        self._reached = (done, total)


async def _index(core: Core, job: Job) -> Effect:
    fingerprint, version = core.embedder.fingerprint, core.analyzer.version
    grant = authorize(SYSTEM, Action.WORK, job.scope)
    waiting = await core.store.read(grant, lambda reader: reader.index.backlog_of(job.record_ids, fingerprint, version))
    made = await indexing.index_records(core, waiting)
    return await with_costs(
        core, grant, made.took, partial(indexing.store_index, made.result, fingerprint, version), job
    )


async def _scrub(core: Core, job: Job) -> Effect:
    if not await core.store.scrub():
        raise HoldfastError("a reader keeps the write-ahead log in use; the deleted bytes are still in it")
    return lambda transaction: None


def _record_index_identity(made_by: str, transaction: Transaction) -> None:
    transaction.maintenance.put_fact(INDEXED_BY, made_by)
