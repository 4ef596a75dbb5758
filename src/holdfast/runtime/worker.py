"""The worker: claims jobs, does them, and commits their effects together with their end.

A job is held by a lease that heartbeats extend. Its token fences it: whoever lost the lease commits nothing. A failed
attempt is queued again, later each time; after the last it stays failed, and visible.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial

from holdfast.domain import ids
from holdfast.domain.access import SYSTEM, Action, Grant, authorize
from holdfast.domain.ids import JobId
from holdfast.domain.jobs import (
    HEARTBEAT,
    LEASE,
    MAX_CLAIMS,
    Job,
    JobKind,
    JobStatus,
    NewJob,
    gives_up,
    retry_delay,
)
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.errors import HoldfastError, LeaseLost, StoreClosed, StoreError
from holdfast.failpoints import reach
from holdfast.ports import Transaction, Unindexed
from holdfast.runtime import indexing, nearest
from holdfast.runtime.extract import extracted
from holdfast.runtime.governed.learning import maintained
from holdfast.runtime.perform import Core

POLL_SECONDS = 2.0
LOOK_SECONDS = 30.0
INDEXED_BY = "indexed_by"
log = logging.getLogger("holdfast.worker")

_Effect = Callable[[Transaction], None]


def storewide() -> Grant:
    return authorize(SYSTEM, Action.WORK, Scope(space=EVERYWHERE))


def index_identity(core: Core) -> str:
    """What the indexes of a store were made by."""
    return f"{core.embedder.fingerprint}/{core.analyzer.version}"


class Worker:
    """One loop. Many may run, in many processes, on one store."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._wake = asyncio.Event()
        self._at_work = asyncio.Lock()
        self._current: Job | None = None
        self._claiming = False
        self._stopping = False
        self._look_at = 0.0
        self._reached = (0, 0)  # how far the current job has come, of how much
        self._handlers: dict[JobKind, Callable[[Job], Awaitable[_Effect]]] = {
            JobKind.INDEX: self._index,
            JobKind.REEMBED: self._reembed,
            JobKind.EXTRACT: self._extract,
            JobKind.SCRUB: self._scrub,
            JobKind.NEAREST: self._nearest,
        }
        if core.curator is not None:  # else it is left to a worker that has one
            self._handlers[JobKind.MAINTAIN] = self._maintain

    def wake(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        """Take on nothing more. Whoever calls this cancels `run`, and then calls `release`."""
        self._stopping = True

    async def run(self) -> None:
        """Work until stopped."""
        await self._look_for_unindexed()
        while not self._stopping:
            self._wake.clear()
            try:
                await self._look_for_large()
                await self.drain()
            except StoreClosed:
                return
            except HoldfastError as error:
                log.warning("the worker rests after %s: %s", error.code, error)
            # Not `wait_for`: before Python 3.12 it swallows a cancellation that comes together with the event.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._wake.wait()

    async def _look_for_unindexed(self) -> None:
        """Another process with another embedder or version may have added records since the indexes were complete."""
        with contextlib.suppress(StoreError):  # it is looked for again at the next start
            if await self._next_batch(0, 1):
                job_id = JobId(self._core.ids.new(ids.JOB))
                job = NewJob(JobKind.REEMBED, Scope(space=EVERYWHERE))
                now = self._core.clock.now()
                await self._core.store.write(storewide(), lambda transaction: transaction.enqueue(job_id, job, now))

    async def _look_for_large(self) -> None:
        """Now and then: it takes longer the more there is, and never more than a hundredth of the time."""
        if time.monotonic() < self._look_at:
            return
        started = time.monotonic()
        await nearest.queue_due(self._core)
        now = time.monotonic()
        self._look_at = now + max(LOOK_SECONDS, 100 * (now - started))

    async def drain_all(self) -> int:
        """Do what is due, also what nobody has queued yet because it was not looked for."""
        done = await self.drain()
        if await nearest.queue_due(self._core):
            done += await self.drain()
        return done

    async def drain(self) -> int:
        """Do what is due, after whatever this worker is at already; how many jobs that were."""
        done = 0
        async with self._at_work:
            while not self._stopping and (job := await self._claim()) is not None:
                await self._do(job)
                done += 1
        return done

    async def _claim(self) -> Job | None:
        # Looking costs no write: an idle worker leaves the store alone.
        now, kinds = self._core.clock.now(), frozenset(self._handlers)
        if not await self._core.store.read(storewide(), lambda reader: reader.due(now, kinds)):
            return None

        def take(transaction: Transaction) -> Job | None:
            # Noted here, not after the answer: who is cancelled in between must still give it back.
            reach("job.claim.before")
            self._current = transaction.claim(kinds, now, LEASE)
            reach("job.claim.after")
            return self._current

        self._claiming = True
        claimed = await self._core.store.write(storewide(), take)
        self._claiming = False
        return claimed

    async def release(self) -> None:
        """Give back what this worker was at when it was stopped, so that nobody has to wait for its lease."""

        def give_back(transaction: Transaction) -> None:
            # Read here, after a claim that was under way: nobody awaits its answer any more.
            if self._current is not None:
                transaction.release(self._current)

        if self._current is not None or self._claiming:
            await self._core.store.write(storewide(), give_back)

    async def _do(self, job: Job) -> None:
        self._reached = (job.done, job.total)
        await self._attempt(job)
        self._current = None

    async def _attempt(self, job: Job) -> None:
        if job.token > MAX_CLAIMS:
            await self._abandoned(job)
            return
        heart = asyncio.create_task(self._heartbeat(job))
        try:
            effect = await self._handlers[job.kind](job)
            await self._core.store.write(storewide(), lambda transaction: self._ended(transaction, job, effect))
        except LeaseLost as error:
            log.warning("%s", error)
        except HoldfastError as error:
            await self._failed(job, f"{error.code}: {error}")
        except Exception as error:
            log.exception("job %s of kind %s failed", job.id, job.kind)
            await self._failed(job, f"internal_error: {type(error).__name__}")
        finally:
            heart.cancel()
            # Gathered, not awaited: its cancellation must not be taken for ours, nor ours for its.
            await asyncio.gather(heart, return_exceptions=True)

    async def _abandoned(self, job: Job) -> None:
        """Whoever takes this on does not live to end it."""
        now, error = self._core.clock.now(), f"its worker was lost {job.token - 1} times"
        await self._core.store.write(
            storewide(), lambda transaction: transaction.finish(job, JobStatus.FAILED, now, error)
        )

    def _ended(self, transaction: Transaction, job: Job, effect: _Effect) -> None:
        reach("job.finish.before")
        effect(transaction)
        transaction.finish(job, JobStatus.SUCCEEDED, self._core.clock.now())
        reach("job.finish.after")

    async def _failed(self, job: Job, error: str) -> None:
        now = self._core.clock.now()

        def end(transaction: Transaction) -> None:
            if gives_up(job):
                transaction.finish(job, JobStatus.FAILED, now, error)
            else:
                transaction.retry(job, now, now + retry_delay(job.attempt), error)

        try:
            await self._core.store.write(storewide(), end)
        except LeaseLost as lost:
            log.warning("%s", lost)

    async def _heartbeat(self, job: Job) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT.total_seconds())
            try:
                await self._progress(job, *self._reached)
            except LeaseLost:
                # Said when the job ends: its effect will not commit.
                return
            except StoreError as error:
                log.warning("the heartbeat of %s was missed: %s", job.id, error)

    async def _progress(self, job: Job, done: int, total: int, effect: _Effect | None = None) -> None:
        def extend(transaction: Transaction) -> None:
            transaction.extend(job, self._core.clock.now(), LEASE, done, total)
            if effect is not None:
                effect(transaction)

        self._reached = (done, total)
        await self._core.store.write(storewide(), extend)

    # --- what each kind does: slow work first, then an effect that commits with the job's end ---

    async def _index(self, job: Job) -> _Effect:
        core = self._core
        fingerprint, version = core.embedder.fingerprint, core.analyzer.version
        grant = authorize(SYSTEM, Action.WORK, job.scope)
        waiting = await core.store.read(grant, lambda reader: reader.waiting(job.record_ids, fingerprint, version))
        made = await indexing.catch_up(core, waiting)
        return partial(indexing.put, made, fingerprint, version)

    async def _reembed(self, job: Job) -> _Effect:
        """Batch by batch, each committed with its progress: whoever takes over goes on where this one stopped."""
        core = self._core
        fingerprint, version = core.embedder.fingerprint, core.analyzer.version
        counts = await core.store.read(storewide(), lambda reader: reader.counts(fingerprint, version))
        total = counts["messages"] + counts["memories"]
        done = after = 0
        while batch := await self._next_batch(after):
            made = await indexing.catch_up(core, batch)
            done, after = done + len(batch), batch[-1].number
            effect = partial(indexing.put, made, fingerprint, version)
            await self._progress(job, done, max(total, done), effect)
        return partial(_note_index, index_identity(core))

    async def _next_batch(self, after: int, limit: int = indexing.BATCH) -> list[Unindexed]:
        core = self._core
        return list(
            await core.store.read(
                storewide(),
                lambda reader: reader.unindexed(core.embedder.fingerprint, core.analyzer.version, after, limit),
            )
        )

    async def _extract(self, job: Job) -> _Effect:
        return await extracted(self._core, job)

    async def _maintain(self, job: Job) -> _Effect:
        return await maintained(self._core, job)

    async def _nearest(self, job: Job) -> _Effect:
        return await nearest.built(self._core, job, self._note_reached)

    def _note_reached(self, done: int, total: int) -> None:
        """The next heartbeat says so."""
        self._reached = (done, total)

    async def _scrub(self, job: Job) -> _Effect:
        if not await self._core.store.scrub():
            raise HoldfastError("a reader keeps the log in use; the deleted bytes are still in it")
        return lambda transaction: None


def _note_index(made_by: str, transaction: Transaction) -> None:
    transaction.put_fact(INDEXED_BY, made_by)
