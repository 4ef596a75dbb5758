"""The time of a projection beside that of a plain search of the same memory, in the same run.

`python -m bench.runtime.projection [--memories 50000] [--rounds 200]`: one subject with that many memories and one
conversation, in a SQLite file. A search of ten results and a projection of 8,192 characters take turns, each with its
own query. Both are timed from call to answer, embedding included. The first of each are not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bench.engine.corpus import Corpus
from holdfast.app import Engine, open_engine
from holdfast.domain.access import LOCAL_OPERATOR
from holdfast.domain.capabilities import catalogue
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryIdentity, MemoryScope
from holdfast.domain.profiles import DEFAULT_PROFILE, profile_of
from holdfast.domain.runtime_api.retrieval import MemoryProjectionRequest
from holdfast.domain.transcript import Draft
from holdfast.library import AsyncMemory
from holdfast.sdk.retrieval import RetrievalOperations
from holdfast.settings import read_settings

SUBJECT, CONVERSATION = "ana", "main"
MAX_LEN = 8_192
_AT_ONCE = 500
_WARM_UP = 20
_TURNS = 200


async def fill(memory: AsyncMemory, count: int, corpus: Corpus) -> None:
    for done in range(0, count, _AT_ONCE):
        texts = corpus.texts(min(_AT_ONCE, count - done))
        await asyncio.gather(*(memory.remember(text, subject=SUBJECT) for text in texts))
        print(f"\r{done + len(texts):,} memories", end="", file=sys.stderr)
    for text in corpus.texts(_TURNS):
        await memory.add([Draft(text)], subject=SUBJECT, conversation=CONVERSATION)
    print(file=sys.stderr)


async def timed(call: Callable[[], Awaitable[Any]], into: list[float]) -> Any:
    start = time.perf_counter()
    answer = await call()
    into.append((time.perf_counter() - start) * 1000)
    return answer


async def measured(engine: Engine, rounds: int, corpus: Corpus) -> dict[str, Any]:
    memory = AsyncMemory(engine)
    profile = profile_of(DEFAULT_PROFILE)
    runtime = RetrievalOperations(
        engine, LOCAL_OPERATOR, Governance(MemoryIdentity(subject_id=SUBJECT), profile, catalogue(profile))
    )
    where = MemoryScope(conversation_id=CONVERSATION)
    searches: list[float] = []
    projections: list[float] = []
    chars: list[int] = []
    lines: list[int] = []
    for query in corpus.queries(rounds + _WARM_UP):
        await timed(lambda query=query: memory.search(query, subject=SUBJECT), searches)  # type: ignore[misc]
        request = MemoryProjectionRequest(query, system_max_len=MAX_LEN, scope=where)
        report = await timed(lambda request=request: runtime.project(request), projections)  # type: ignore[misc]
        chars.append(report.audit.system_memory_chars)
        lines.append(report.projection_faithfulness.lines)
    searches, projections = searches[_WARM_UP:], projections[_WARM_UP:]
    return {
        "search_p50_ms": statistics.median(searches),
        "search_p95_ms": statistics.quantiles(searches, n=20)[-1],
        "projection_p50_ms": statistics.median(projections),
        "projection_p95_ms": statistics.quantiles(projections, n=20)[-1],
        "ratio_p50": statistics.median(projections) / statistics.median(searches),
        "chars_p50": statistics.median(chars),
        "longest_chars": max(chars),
        "lines_p50": statistics.median(lines),
    }


async def run(memories: int, rounds: int, folder: Path) -> dict[str, Any]:
    corpus = Corpus(6)
    engine = await open_engine(str(folder / "memory.db"), read_settings(), work=False)
    try:
        await fill(AsyncMemory(engine), memories, corpus)
        return {"memories": memories, "rounds": rounds, **await measured(engine, rounds, corpus)}
    finally:
        await engine.close()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--memories", type=int, default=50_000)
    options.add_argument("--rounds", type=int, default=200)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(run(given.memories, given.rounds, Path(folder)))
    for name, value in found.items():
        print(f"{name:20} {value:,.2f}" if isinstance(value, float) else f"{name:20} {value:,}")


if __name__ == "__main__":
    main()
