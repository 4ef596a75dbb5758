"""The workers of one process: several jobs at once, woken, drained and stopped together."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta

from holdfast.domain.jobs import LEASE, JobKind
from holdfast.runtime import nearest
from holdfast.runtime.perform import Core
from holdfast.runtime.worker import Handlers, Worker


class Crew:
    """`jobs` is how many are worked on at once."""

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
        # What nobody has queued need be looked for by one of them.
        self._workers = [Worker(core, handlers, lease=lease, kinds=kinds, looks=number == 0) for number in range(jobs)]

    @property
    def kinds(self) -> frozenset[JobKind]:
        return self._workers[0].kinds

    @property
    def failures(self) -> int:
        """How many attempts failed."""
        return sum(worker.failures for worker in self._workers)

    @property
    def ended_badly(self) -> Counter[tuple[str, JobKind]]:
        """How many of those were the last, and are not tried again, by space and kind."""
        return sum((worker.ended_badly for worker in self._workers), Counter())

    def wake(self) -> None:
        for worker in self._workers:
            worker.wake()

    def stop(self) -> None:
        for worker in self._workers:
            worker.stop()

    async def run(self) -> None:
        """Work until stopped; cancelled, all of them are."""
        await asyncio.gather(*(worker.run() for worker in self._workers))

    async def drain(self) -> int:
        """Do what is due, also what nobody has queued yet because it was not looked for; how many jobs that were."""
        done = await self._drained()
        if JobKind.NEAREST in self.kinds and await nearest.queue_due(self._core):
            done += await self._drained()
        return done

    async def _drained(self) -> int:
        return sum(await asyncio.gather(*(worker.drain() for worker in self._workers)))

    async def release(self) -> None:
        """What they were at when they were cancelled goes back at once."""
        await asyncio.gather(*(worker.release() for worker in self._workers))
