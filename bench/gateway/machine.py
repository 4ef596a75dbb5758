"""Steadiness of a core: latencies of a loop of plain arithmetic under an even load."""

from __future__ import annotations

import os
import time
from typing import Any

_STEPS = 60_000  # two to three milliseconds
_BUSY = 0.8  # the load on a core of a service at 70 % of its highest rate


def arithmetic(core: int | None, seconds: float) -> dict[str, Any]:
    """Latencies of one piece of work, due at even intervals, which loads the core to four fifths.

    A shared machine is slower now and then, and work that is due meanwhile waits. No service on it can have better
    ratios than this.
    """
    before = os.sched_getaffinity(0)
    if core is not None:
        os.sched_setaffinity(0, {core})
    try:
        took = sorted(_timed(time.perf_counter()) for _ in range(300))
        between = took[150] / _BUSY
        started = time.perf_counter()
        times = sorted(_due(started + number * between) for number in range(int(seconds / between)))
    finally:
        os.sched_setaffinity(0, before)
    return {"p50_ms": times[len(times) // 2] * 1_000, "p99_ms": times[int(len(times) * 0.99)] * 1_000}


def _due(at: float) -> float:
    wait = at - time.perf_counter()
    if wait > 0:
        time.sleep(wait)
    return _timed(at)


def _timed(since: float) -> float:
    total = 0
    for number in range(_STEPS):
        total += number * number
    return time.perf_counter() - since
