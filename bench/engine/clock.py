"""Timing: rates within a time limit, and the spread of a series of times."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rate:
    """Items done and the seconds they took. `planned` exceeds `count` if the time limit came first."""

    count: int
    seconds: float
    planned: int

    @property
    def per_second(self) -> float:
        return self.count / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Spread:
    """Milliseconds of single calls."""

    p50_ms: float
    p95_ms: float
    rounds: int


def spread(taken_seconds: list[float]) -> Spread:
    taken = sorted(1000 * seconds for seconds in taken_seconds)
    # With fewer than 20 times, the 95th percentile is the slowest.
    tail = statistics.quantiles(taken, n=20)[18] if len(taken) >= 20 else taken[-1]
    return Spread(statistics.median(taken), tail, len(taken))


def rate(work: Callable[[T], object], items: list[T], limit_seconds: float, each: int = 1) -> Rate:
    """Process the items in order until all are done or the time is up. An item counts for `each` records."""
    done = 0
    started = time.perf_counter()
    for item in items:
        work(item)
        done += 1
        if time.perf_counter() - started > limit_seconds:
            break
    return Rate(done * each, time.perf_counter() - started, len(items) * each)


def rate_from_threads(work: Callable[[T], object], items: list[T], limit_seconds: float, threads: int) -> Rate:
    """The same from several threads, each taking the next item."""
    waiting = _Queue(items)
    started = time.perf_counter()

    def run() -> int:
        done = 0
        for item in waiting:
            work(item)
            done += 1
            if time.perf_counter() - started > limit_seconds:
                break
        return done

    with ThreadPoolExecutor(threads) as pool:
        done = sum(future.result() for future in [pool.submit(run) for _ in range(threads)])
    return Rate(done, time.perf_counter() - started, len(items))


def times(work: Callable[[T], object], items: Iterable[T], limit_seconds: float) -> Spread:
    taken: list[float] = []
    for item in items:
        started = time.perf_counter()
        work(item)
        taken.append(time.perf_counter() - started)
        if sum(taken) > limit_seconds:
            break
    return spread(taken)


async def async_times(work: Callable[[T], Awaitable[object]], items: Iterable[T], limit_seconds: float) -> Spread:
    taken: list[float] = []
    for item in items:
        started = time.perf_counter()
        await work(item)
        taken.append(time.perf_counter() - started)
        if sum(taken) > limit_seconds:
            break
    return spread(taken)


class _Queue(Generic[T]):
    """An iterator that threads can share."""

    def __init__(self, items: list[T]) -> None:
        self._items = iter(items)
        self._door = threading.Lock()

    def __iter__(self) -> Iterator[T]:
        while True:
            with self._door:
                try:
                    item = next(self._items)
                except StopIteration:
                    return
            yield item
