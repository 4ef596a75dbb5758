"""Holdfast alone, at sizes beyond those of its peers here: filling, searching, growth, memory.

Subjects of a hundred records each, and one large one. Searches use the async API, adds both.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict

import holdfast
from bench.engine import clock, machine
from bench.engine.child import Json
from bench.engine.corpus import Corpus
from bench.engine.systems.protocol import TOP_K
from bench.engine.vectors import RunEmbedder
from holdfast.opening import Opening
from holdfast.settings import Settings, read_settings

EACH = 100
LARGE = "large"
EVERYTHING = ""
AT_ONCE = 8
_LARGE_BATCH = 1_000
# The setting for the partition size from which search is approximate; 0 means never.
_FROM = "approximate_from"
_SEARCHED = 10


def _opening(location: str, embedder: RunEmbedder, approximate_from: int = 0, work: bool = False) -> Opening:
    """Open with exact search and without background work, unless requested."""
    known = _FROM in Settings.model_fields
    settings = read_settings().model_copy(update={_FROM: approximate_from} if known else {})
    return holdfast.open_async(location, embedder=embedder, settings=settings, work=work)


def fill(location: str, first: int, subjects: int, large: int) -> Json:
    """Add `subjects` subjects from number `first` on, and `large` records to the large one. Return the rate."""
    return asyncio.run(_fill(location, first, subjects, large))


async def _fill(location: str, first: int, subjects: int, large: int) -> Json:
    # A different seed for each step, so that no text repeats.
    corpus = Corpus(seed=1_000_000 + first)
    async with _opening(location, RunEmbedder()) as memory:
        waiting = [(f"subject-{number}", EACH) for number in range(first, first + subjects)]
        waiting += [(LARGE, _LARGE_BATCH)] * (large // _LARGE_BATCH)
        seconds = 0.0
        while waiting:
            now, waiting = waiting[:AT_ONCE], waiting[AT_ONCE:]
            texts = [(subject, corpus.texts(count)) for subject, count in now]
            started = time.perf_counter()
            await asyncio.gather(*(memory.add(given, subject=subject) for subject, given in texts))
            seconds += time.perf_counter() - started
    records = subjects * EACH + large
    return {"records": records, "seconds": seconds, "per_second": records / seconds if seconds else 0.0}


def warm(location: str, subjects: int, rounds: dict[str, int], limit_seconds: float) -> Json:
    """Searches in partitions that were searched before, and the memory of the process."""
    return asyncio.run(_warm(location, subjects, rounds, limit_seconds))


async def _warm(location: str, subjects: int, rounds: dict[str, int], limit_seconds: float) -> Json:
    embedder = RunEmbedder()
    resident = {"started": machine.resident_bytes()}
    found: Json = {}
    async with _opening(location, embedder) as memory:
        resident["opened"] = machine.resident_bytes()
        some = random.Random(3).sample(range(subjects), min(_SEARCHED, subjects))
        places = {"small": [f"subject-{number}" for number in some], LARGE: [LARGE], "everything": [EVERYTHING]}
        for place, count in rounds.items():
            found[place] = asdict(await _searched(memory, embedder, places[place], count, limit_seconds))
            resident[place] = machine.resident_bytes()
    return {**found, "resident": resident, "surprises": embedder.surprises}


async def _searched(
    memory: holdfast.AsyncMemory, embedder: RunEmbedder, subjects: list[str], rounds: int, limit_seconds: float
) -> clock.Spread:
    queries = Corpus(seed=5).queries(rounds)
    embedder.prepare(queries)
    for subject in subjects:
        await _search(memory, subject, queries[0])
    asked = [(subjects[number % len(subjects)], query) for number, query in enumerate(queries)]
    return await clock.async_times(lambda ask: _search(memory, *ask), asked, limit_seconds)


async def _search(memory: holdfast.AsyncMemory, subject: str, query: str) -> int:
    """Search a subject's partition, or everything."""
    if subject == EVERYTHING:
        return len(await memory.search(query, top_k=TOP_K))
    return len(await memory.search(query, subject=subject, top_k=TOP_K))


def cold(location: str, places: list[str]) -> Json:
    """The first search of each place, in a process that has just opened the store."""
    return asyncio.run(_cold(location, places))


async def _cold(location: str, places: list[str]) -> Json:
    embedder = RunEmbedder()
    queries = Corpus(seed=6).queries(len(places))
    embedder.prepare(queries)
    started = time.perf_counter()
    memory = await _opening(location, embedder)
    opened = time.perf_counter() - started
    taken = []
    for place, query in zip(places, queries, strict=True):
        started = time.perf_counter()
        await _search(memory, place, query)
        taken.append(1000 * (time.perf_counter() - started))
    await memory.close()
    return {"open_ms": 1000 * opened, "taken_ms": taken, "surprises": embedder.surprises}


def approximate(location: str, large: int, rounds: int, limit_seconds: float) -> Json:
    """Build the index of the large partition, search with it, and compare with exact search."""
    if _FROM not in Settings.model_fields:
        raise NotImplementedError("this version searches exactly, whatever the size")
    return asyncio.run(_approximate(location, large, rounds, limit_seconds))


async def _approximate(location: str, large: int, rounds: int, limit_seconds: float) -> Json:
    embedder = RunEmbedder()
    async with _opening(location, embedder, approximate_from=large // 2, work=True) as memory:
        started = time.perf_counter()
        await memory.search(Corpus(seed=5).queries(1)[0], subject=LARGE)
        await memory.drain()
        built = time.perf_counter() - started
        found = await _searched(memory, embedder, [LARGE], rounds, limit_seconds)
        about = await _best(memory, rounds)
        explained = await memory.explain(Corpus(seed=5).queries(1)[0], subject=LARGE, top_k=TOP_K)
        if not any(way.approximate for way in explained.ways):
            raise RuntimeError(f"it was searched exactly: {[way.reason for way in explained.ways]}")
    async with _opening(location, embedder) as memory:
        exact = await _best(memory, rounds)
    hits = [len(set(one) & set(other)) / len(other) for one, other in zip(about, exact, strict=True) if other]
    return {"approximate": asdict(found), "recall": sum(hits) / len(hits), "build_seconds": built}


async def _best(memory: holdfast.AsyncMemory, rounds: int) -> list[list[str]]:
    queries = Corpus(seed=5).queries(rounds)
    return [[hit.id for hit in await memory.search(query, subject=LARGE, top_k=TOP_K)] for query in queries]


def adds(location: str, subject: str, count: int, limit_seconds: float) -> Json:
    """Rates of adds to one subject: one at a time through both APIs, several at once, and in batches."""
    corpus = Corpus(seed=20)
    embedder = RunEmbedder()
    with holdfast.open(location, embedder=embedder, work=False) as memory:
        # Batches first: a fresh process still learns words, which the single adds should not measure.
        batches = list(corpus.batches(10 * count, 100))
        many = clock.rate(lambda texts: memory.add(texts, subject=subject), batches, limit_seconds, each=100)
        one = clock.rate(lambda text: memory.add(text, subject=subject), corpus.texts(count), limit_seconds)
    one_async, at_once = asyncio.run(_async_adds(location, embedder, subject, corpus.texts(count), limit_seconds))
    return {
        "one": one.per_second,
        "batches": many.per_second,
        "one_async": one_async.per_second,
        "at_once_async": at_once.per_second,
    }


async def _async_adds(
    location: str, embedder: RunEmbedder, subject: str, texts: list[str], limit_seconds: float
) -> tuple[clock.Rate, clock.Rate]:
    async with _opening(location, embedder) as memory:

        async def run(given: Iterable[str]) -> int:
            done = 0
            for text in given:
                await memory.add(text, subject=subject)
                done += 1
                if time.perf_counter() - started > limit_seconds:
                    break
            return done

        started = time.perf_counter()
        one = clock.Rate(await run(texts), time.perf_counter() - started, len(texts))
        shared = iter(texts)
        started = time.perf_counter()
        done = sum(await asyncio.gather(*(run(shared) for _ in range(AT_ONCE))))
        return one, clock.Rate(done, time.perf_counter() - started, len(texts))


TASKS: dict[str, Callable[..., Json]] = {
    "fill": fill,
    "warm": warm,
    "cold": cold,
    "approximate": approximate,
    "adds": adds,
}
