"""Test instruments: a clock that only tests move, and access to the audit trail."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from weakref import WeakKeyDictionary

from holdfast import AsyncMemory, Memory
from holdfast.app import Engine
from holdfast.domain.access import storewide_grant
from holdfast.domain.jobs import Job
from holdfast.domain.operations import Operation
from holdfast.ports import Store


class SteppingClock:
    """A clock that stands still until moved; each read adds a millisecond, so that order is visible."""

    def __init__(self, start: datetime = datetime(2026, 3, 1, 12, tzinfo=UTC)) -> None:
        self._now = start

    def now(self) -> datetime:
        self._now += timedelta(milliseconds=1)
        return self._now

    def advance(self, **by: float) -> datetime:
        self._now += timedelta(**by)
        return self._now


# The engine behind each memory that talks to a server of the test.
SERVED: WeakKeyDictionary[object, Engine] = WeakKeyDictionary()


def engine_of(memory: AsyncMemory) -> Engine:
    found: Engine = SERVED.get(memory._service, memory._service)
    return found


def store_of(memory: AsyncMemory) -> Store:
    return engine_of(memory)._core.store


async def audit_trail(memory: AsyncMemory, newest: int = 1_000_000) -> Sequence[Operation]:
    """All operation rows, or the `newest` ones, oldest first.

    Rows of reads are written with the next commit, which is made here.
    """
    store = store_of(memory)
    await store.wait_for_audits()
    rows = await store.read(storewide_grant(), lambda reader: reader.operations.page(limit=newest))
    return rows[::-1]


def trail_of(memory: Memory, newest: int = 1_000_000) -> Sequence[Operation]:
    return memory._portal.run(audit_trail(memory._behind, newest))


def jobs_of(memory: Memory) -> Sequence[Job]:
    """All attempts at background work, newest first."""
    store = store_of(memory._behind)
    return memory._portal.run(store.read(storewide_grant(), lambda reader: reader.jobs.newest(limit=10_000)))
