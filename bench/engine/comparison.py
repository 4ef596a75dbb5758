"""Every system with the same records, one after the other: adding, searching one user's, disk and memory.

Batches come first, so that the rate of single adds is that of a store with content. A system that runs out of time is
filled up in batches, untimed, so that all are searched at the same size. Threads come last, with their own records:
not every system survives them, and a search afterwards shows it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from bench.engine import clock, machine, postgres, probe
from bench.engine.child import Json, said
from bench.engine.corpus import Corpus
from bench.engine.systems import ON_POSTGRES, SYSTEMS
from bench.engine.systems.protocol import TOP_K, Place, System
from bench.engine.vectors import RunEmbedder

BATCH = 100
THREADS = 8
# Of a hundred users, the number added in each way.
_IN_BATCHES, _ONE_BY_ONE = 90, 10
# The number of further users added from threads.
_FROM_THREADS = 20
_TURNS, _PROBE_SECONDS = 20, 0.1
_SEARCHED_USERS = 10
_SEARCHES = 300

Item = tuple[str, list[str]]


def measure(system: str, directory: str, url: str, records: int, limit_seconds: float) -> Json:
    """Add, then search, in one process."""
    embedder = RunEmbedder()
    place = Place(Path(directory), url, embedder)
    # A new PostgreSQL database is not empty: it has a catalogue.
    empty = _disk(system, place)
    opened = SYSTEMS[system](place)
    plan = _Plan(records // 100)
    adds = _adds(opened, plan, place, limit_seconds)
    started = time.perf_counter()
    opened.settle()
    settled = time.perf_counter() - started
    searches = _searches(opened, plan, embedder, limit_seconds)
    resident = machine.resident_bytes()
    disk = _disk(system, place) - empty
    threads = _threads(opened, plan, embedder, limit_seconds)
    opened.close()
    return {
        "name": opened.name,
        "note": opened.note,
        "records": records,
        **adds,
        "settle_seconds": settled,
        **searches,
        "resident_bytes": resident,
        "disk_bytes": disk,
        "threads": threads,
    }


def reopen(system: str, directory: str, url: str, records: int) -> Json:
    """The cost of a new process: opening, the first search, and memory."""
    embedder = RunEmbedder()
    plan = _Plan(records // 100)
    [query] = plan.queries(1)
    embedder.prepare([query])
    started = time.perf_counter()
    opened = SYSTEMS[system](Place(Path(directory), url, embedder))
    ready = time.perf_counter()
    found = opened.search(plan.user(0), query)
    answered = time.perf_counter()
    resident = machine.resident_bytes()
    opened.close()
    return {
        "open_ms": 1000 * (ready - started),
        "first_ms": 1000 * (answered - ready),
        "found": found,
        "resident_bytes": resident,
    }


class _Plan:
    """The assignment of texts to users."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._corpus = Corpus(seed=10)

    def user(self, number: int) -> str:
        return f"user-{number}"

    def batches(self) -> list[Item]:
        return self.in_batches(0, _IN_BATCHES)

    def one_by_one(self) -> list[Item]:
        return self._alternating(_IN_BATCHES, _ONE_BY_ONE)

    def from_threads(self) -> list[Item]:
        return self._alternating(_IN_BATCHES + _ONE_BY_ONE, _FROM_THREADS)

    def in_batches(self, first: int, users: int) -> list[Item]:
        numbers = range(first, first + users)
        return [(self.user(n), texts) for n in numbers for texts in self._corpus.batches(self._each, BATCH)]

    def queries(self, count: int) -> list[str]:
        return Corpus(seed=11).queries(count)

    def _alternating(self, first: int, users: int) -> list[Item]:
        """One text at a time, each for a different user than the one before."""
        return [(self.user(first + n % users), [self._corpus.text()]) for n in range(users * self._each)]


def _adds(system: System, plan: _Plan, place: Place, limit_seconds: float) -> Json:
    def work(item: Item) -> None:
        system.add(*item)

    batches, singles = plan.batches(), plan.one_by_one()
    # Opening ends when the first record is stored: some systems create their tables only then.
    work(batches.pop(0))
    each = len(batches[0][1])
    in_batches = clock.rate(work, batches, limit_seconds, each=each)
    for item in batches[in_batches.count // each :]:
        work(item)
    one, commits = _one_by_one(work, singles, place, limit_seconds)
    for user, texts in _merged(singles[one.count :]).items():
        work((user, texts))
    return {"batches": _rate(in_batches), "one": _rate(one), "commits": commits}


def _one_by_one(
    work: Callable[[Item], None], items: list[Item], place: Place, limit_seconds: float
) -> tuple[clock.Rate, float]:
    """Take turns with the probe: a disk's sync speed changes from one second to the next."""
    count, seconds, turn = 0, 0.0, max(1, len(items) // _TURNS)
    with probe.SqliteProbe(place.directory) as commits:
        for start in range(0, len(items), turn):
            commits.run(_PROBE_SECONDS)
            done = clock.rate(work, items[start : start + turn], limit_seconds - seconds)
            count += done.count
            seconds += done.seconds
            if seconds >= limit_seconds:
                break
        commits.run(_PROBE_SECONDS)
        return clock.Rate(count, seconds, len(items)), commits.per_second


def _threads(system: System, plan: _Plan, embedder: RunEmbedder, limit_seconds: float) -> Json:
    items = plan.from_threads()
    try:
        done = clock.rate_from_threads(lambda item: system.add(*item), items, limit_seconds, THREADS)
    except Exception as error:  # noqa: BLE001 - a peer's failure is shown as such
        return {"failed": said(error)}
    [query] = plan.queries(1)
    embedder.prepare([query])
    try:
        for user in dict(items):
            system.search(user, query)
    except Exception as error:  # noqa: BLE001 - as above
        return {**_rate(done), "broken": said(error)}
    return _rate(done)


def _merged(items: list[Item]) -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {}
    for user, given in items:
        texts.setdefault(user, []).extend(given)
    return texts


def _searches(system: System, plan: _Plan, embedder: RunEmbedder, limit_seconds: float) -> Json:
    queries = plan.queries(_SEARCHES)
    embedder.prepare(queries)
    chance = random.Random(12)
    asked = [(plan.user(chance.randrange(_SEARCHED_USERS)), query) for query in queries]
    for user in range(_SEARCHED_USERS):
        system.search(plan.user(user), queries[user])
    found: list[int] = []
    warm = clock.times(lambda ask: found.append(system.search(*ask)), asked, limit_seconds)
    return {"warm": asdict(warm), "found": sum(found) / len(found) / TOP_K, "surprises": embedder.surprises}


def _rate(done: clock.Rate) -> Json:
    return {**asdict(done), "per_second": done.per_second}


def _disk(system: str, place: Place) -> int:
    return postgres.size_bytes(place.url) if system in ON_POSTGRES else machine.disk_bytes(place.directory)


TASKS: dict[str, Callable[..., Json]] = {"measure": measure, "reopen": reopen}
