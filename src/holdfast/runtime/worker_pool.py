"""The worker pool of one process: runs several jobs concurrently; woken, drained and stopped together."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta

from holdfast.domain.jobs import LEASE, JobKind
from holdfast.runtime import approximate_index
from holdfast.runtime.gate import Core
from holdfast.runtime.worker import Handlers, Worker


class WorkerPool:
    """A pool of workers. `jobs` is the number of jobs that run concurrently."""

    def __init__(
        self,
        core: Core,
        handlers: Handlers | None = None,
        *,
        jobs: int = 1,
        lease: timedelta = LEASE,
        kinds: frozenset[JobKind] | None = None,
    ) -> None:
        self._core = core
        # One worker is enough to look for work that is not queued.
        self._workers = [Worker(core, handlers, lease=lease, kinds=kinds, looks=number == 0) for number in range(jobs)]

    @property
    def kinds(self) -> frozenset[JobKind]:
        return self._workers[0].kinds

    @property
    def failures(self) -> int:
        """The number of failed attempts."""
        return sum(worker.failures for worker in self._workers)

    @property
    def ended_badly(self) -> Counter[tuple[str, JobKind]]:
        """The number of jobs that failed for good, by space and kind."""
        return sum((worker.ended_badly for worker in self._workers), Counter())

    def wake(self) -> None:
        for worker in self._workers:
            worker.wake()

    def stop(self) -> None:
        for worker in self._workers:
            worker.stop()

    async def run(self) -> None:
        """Work until stopped. Cancelling this cancels all workers."""
        await asyncio.gather(*(worker.run() for worker in self._workers))

    async def drain(self) -> int:
        """Run all due jobs, including index builds that were not queued yet. Return the number of jobs."""
        done = await self._drain_workers()
        if JobKind.NEAREST in self.kinds and await approximate_index.queue_due(self._core):
            done += await self._drain_workers()
        return done

    async def _drain_workers(self) -> int:
        return sum(await asyncio.gather(*(worker.drain() for worker in self._workers)))

    async def release(self) -> None:
        """Return the jobs of cancelled workers to the queue at once."""
        await asyncio.gather(*(worker.release() for worker in self._workers))
