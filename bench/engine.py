"""Measures the engine itself: adding, opening a large store, and the first and later searches in it.

    python -m bench.engine [--subjects 1000] [--each 100] [--large 50000]

Ratios within one run are what counts: machines differ, and are shared. A probe of raw durable commits comes first, to
read the numbers against.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import holdfast

_WORDS = (
    "garden violin harbour lantern meadow pepper quarry saddle thunder velvet walnut anchor basket candle dragon engine"
    " falcon guitar hammer island jacket kettle ladder marble needle orange pillow rabbit silver ticket umbrella valley"
    " window yellow zipper bakery cousin doctor entrance festival grandma holiday insurance journey kitchen library"
).split()


def sentence(chance: random.Random) -> str:
    return " ".join(chance.choices(_WORDS, k=chance.randint(6, 18))).capitalize() + "."


@contextmanager
def timed(title: str, count: int = 1) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds = time.perf_counter() - started
    print(
        f"| {title} | {seconds:.3f} s | {count / seconds:,.0f}/s |" if count > 1 else f"| {title} | {seconds:.3f} s | |"
    )


def commit_probe(folder: Path, rounds: int = 300) -> None:
    """One small row, one commit, one sync: what no durable store can beat."""
    database = sqlite3.connect(folder / "probe.db", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE probe (value TEXT)")
    with timed("raw durable commits (probe)", rounds):
        for _ in range(rounds):
            database.execute("INSERT INTO probe VALUES (?)", ("x" * 200,))
    database.close()


async def fill(path: Path, subjects: int, each: int, large: int) -> None:
    chance = random.Random(7)
    async with holdfast.open_async(path, work=False) as memory:
        with timed("one message per add", 200):
            for _ in range(200):
                await memory.add(sentence(chance), subject="single")
        with timed("one message per add, 8 at once", 800):
            await asyncio.gather(*(_adds(memory, chance, 100) for _ in range(8)))
        total = subjects * each + large
        with timed(f"filling with {total:,} messages, 100 or 1,000 per add", total):
            for number in range(subjects):
                await memory.add([sentence(chance) for _ in range(each)], subject=f"subject-{number}")
            for _ in range(large // 1000):
                await memory.add([sentence(chance) for _ in range(1000)], subject="large")


async def _adds(memory: holdfast.AsyncMemory, chance: random.Random, count: int) -> None:
    for _ in range(count):
        await memory.add(sentence(chance), subject="single")


async def median_ms(work: Callable[[], Awaitable[object]], rounds: int) -> tuple[float, float]:
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        await work()
        taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken), statistics.quantiles(taken, n=20)[18]


async def ask(path: Path) -> None:
    from holdfast.search.embedders.static import StaticEmbedder

    with timed("loading the embedder"):
        embedder = StaticEmbedder()
    started = time.perf_counter()
    memory = await holdfast.open_async(path, embedder=embedder, work=False)
    await memory.search("a violin in the garden", subject="subject-17")
    print(f"| opening the store and the first scoped search | {time.perf_counter() - started:.3f} s | |")
    with timed("first search in the large partition"):
        await memory.search("a violin in the garden", subject="large")
    chance = random.Random(11)
    for subject, rounds in (("subject-18", 300), ("large", 40)):
        middle, tail = await median_ms(lambda s=subject: memory.search(sentence(chance), subject=s), rounds)
        print(f"| search in {subject}, warm | p50 {middle:.2f} ms | p95 {tail:.2f} ms |")
    await memory.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subjects", type=int, default=1000)
    parser.add_argument("--each", type=int, default=100)
    parser.add_argument("--large", type=int, default=50_000)
    parser.add_argument("--keep", type=Path, help="fill or reuse a store at this path")
    options = parser.parse_args()
    print("| what | time | rate |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        commit_probe(Path(folder))
        path = options.keep or Path(folder) / "memory.db"
        if not path.exists():
            asyncio.run(fill(path, options.subjects, options.each, options.large))
        print(f"| bytes per record | {path.stat().st_size // (options.subjects * options.each + options.large)} | |")
        asyncio.run(ask(path))


if __name__ == "__main__":
    main()
