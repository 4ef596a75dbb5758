"""How long others wait while one call adds a very large batch: all or nothing, in one transaction.

    python -m bench.engine.stall [--messages 100000] [--seconds 5] [--store DIR|URL]

One thread calls `add` with the whole batch. Meanwhile another user adds one message at a time, a third searches, and an
event loop ticks each 5 ms. Each is measured before the batch and during it, in one run; the ratios count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles
from typing import Any

import holdfast
from bench.control.gate import sentence
from holdfast import Memory

_TICK_SECONDS = 0.005
_SEARCHED = 500


class Sampler:
    """Repeats a call in a thread of its own and notes how long each took, with the time at which it began."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self._taken: list[tuple[float, float]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            started = time.perf_counter()
            self._call()
            self._taken.append((started, time.perf_counter() - started))

    def end(self) -> None:
        self._stop.set()
        self._thread.join()

    def between(self, first: float, last: float) -> dict[str, float]:
        """Return the calls that were under way between two times: p50, p95 and the longest, in milliseconds."""
        taken = [seconds for at, seconds in self._taken if at < last and at + seconds > first]
        cuts = quantiles(taken, n=20, method="inclusive") if len(taken) > 1 else taken * 20
        found = {"p50_ms": cuts[9], "p95_ms": cuts[18], "max_ms": max(taken)}
        return {"calls": len(taken), **{name: round(seconds * 1e3, 2) for name, seconds in found.items()}}


def tick() -> None:
    """Run an event loop for one tick: it is late if another thread holds the interpreter."""
    asyncio.run(asyncio.sleep(_TICK_SECONDS))


def measure(memory: Memory, messages: int, seconds: float) -> dict[str, Any]:
    chance = random.Random(1)
    batch = [sentence(chance) for _ in range(messages)]
    memory.add([sentence(chance) for _ in range(_SEARCHED)], subject="searcher")
    samplers = {
        "add": Sampler(lambda: memory.add(sentence(chance), subject="writer", conversation="c")),
        "search": Sampler(lambda: memory.search(sentence(chance), subject="searcher")),
        "tick": Sampler(tick),
    }
    time.sleep(seconds)
    started = time.perf_counter()
    memory.add(batch, subject="importer", conversation="import")
    ended = time.perf_counter()
    time.sleep(0.2)
    for each in samplers.values():
        each.end()
    found: dict[str, Any] = {"messages": messages, "batch_seconds": round(ended - started, 2)}
    for name, each in samplers.items():
        before, during = each.between(started - seconds, started), each.between(started, ended)
        ratio = round(during["p95_ms"] / before["p95_ms"], 1)
        found[name] = {"before": before, "during": during, "p95_ratio": ratio}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--store")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with holdfast.open(given.store or Path(folder) / "memory.db") as memory:
            print(json.dumps(measure(memory, given.messages, given.seconds), indent=1))


if __name__ == "__main__":
    main()
