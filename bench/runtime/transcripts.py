"""Speed of transcript commits from many writers, a check that none is lost, and the time to replay a page.

`python -m bench.runtime.transcripts [--turns 100000] [--writers 8]`: turns of two messages, with the default embedder,
into a SQLite file. First each writer has its own conversation, then all write into one. When a commit returns, it is
durable and can be found by words and by meaning. Afterwards every sequence is read back, and plain `add` does the same
work for comparison. Pages have 64 turns, of the long conversation and of one with 1,000, in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.engine.corpus import Corpus
from bench.engine.machine import described
from holdfast.app import Engine, open_engine
from holdfast.domain.access import LOCAL_OPERATOR, storewide_grant
from holdfast.domain.capabilities import catalogue
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryIdentity, MemoryScope
from holdfast.domain.profiles import DEFAULT_PROFILE, profile_of
from holdfast.domain.runtime_api.transcripts import (
    MemoryTranscriptCommitRequest,
    MemoryTranscriptReplayRequest,
    TranscriptTurnInput,
    TurnMessage,
)
from holdfast.domain.transcript import Draft, Role
from holdfast.domain.transcript_turns import View
from holdfast.library import AsyncMemory
from holdfast.sdk.transcripts import TranscriptOperations
from holdfast.settings import read_settings

RESULTS = Path(__file__).parents[1] / "results" / "runtime-transcripts.json"
SUBJECT, LONG, SHORT = "ana", "long", "short"
SHORT_TURNS = 1_000
PAGE = 64
APART_SECONDS = 8.0
_ROUNDS = 300


def runtime_on(engine: Engine) -> TranscriptOperations:
    profile = profile_of(DEFAULT_PROFILE)
    return TranscriptOperations(
        engine, LOCAL_OPERATOR, Governance(MemoryIdentity(subject_id=SUBJECT), profile, catalogue(profile))
    )


def request(texts: Sequence[str], number: int, conversation: str) -> MemoryTranscriptCommitRequest:
    """A turn of two messages. Texts repeat after a while; the number makes each message unique."""
    asked, answered = texts[2 * number % len(texts)], texts[(2 * number + 1) % len(texts)]
    messages = (TurnMessage(f"{asked} {number}"), TurnMessage(f"{answered} {number}", "assistant"))
    return MemoryTranscriptCommitRequest(
        TranscriptTurnInput(f"t{number}", messages, MemoryScope(conversation_id=conversation))
    )


async def committed_together(
    runtime: TranscriptOperations, texts: Sequence[str], turns: int, writers: int, conversation: str
) -> float:
    """Turns per second of all writers into one conversation."""
    waiting = iter(range(turns))

    async def write() -> None:
        for number in waiting:
            report = await runtime.commit_transcript(request(texts, number, conversation))
            if number % 1_000 == 0:
                print(f"\r{report.sequence:,} turns", end="", file=sys.stderr)

    started = time.perf_counter()
    await asyncio.gather(*(write() for _ in range(writers)))
    print(file=sys.stderr)
    return turns / (time.perf_counter() - started)


async def committed_apart(runtime: TranscriptOperations, texts: Sequence[str], writers: int, seconds: float) -> float:
    """Turns per second with a separate conversation per writer."""
    started = time.perf_counter()

    async def write(writer: int) -> int:
        done = 0
        while time.perf_counter() - started < seconds:
            await runtime.commit_transcript(request(texts, done, f"of-{writer}"))
            done += 1
        return done

    done = await asyncio.gather(*map(write, range(writers)))
    return sum(done) / (time.perf_counter() - started)


async def added_apart(memory: AsyncMemory, texts: Sequence[str], writers: int, seconds: float) -> float:
    """The same by plain `add`."""
    started = time.perf_counter()

    async def write(writer: int) -> int:
        done = 0
        while time.perf_counter() - started < seconds:
            asked, answered = texts[2 * done % len(texts)], texts[(2 * done + 1) % len(texts)]
            drafts = [Draft(f"{asked} {done}"), Draft(f"{answered} {done}", role=Role.ASSISTANT)]
            await memory.add(drafts, subject=SUBJECT, conversation=f"plain-{writer}")
            done += 1
        return done

    done = await asyncio.gather(*map(write, range(writers)))
    return sum(done) / (time.perf_counter() - started)


async def sequences(runtime: TranscriptOperations, conversation: str) -> list[int]:
    found: list[int] = []
    cursor = None
    while True:
        page = await runtime.replay_transcript(_page(conversation, cursor))
        found.extend(turn.sequence for turn in page.slice.turns)
        cursor = page.next_cursor
        if cursor is None:
            return found


def _page(conversation: str, cursor: str | None) -> MemoryTranscriptReplayRequest:
    return MemoryTranscriptReplayRequest(View.HOST_UI, MemoryScope(conversation_id=conversation), PAGE, cursor)


async def pages(runtime: TranscriptOperations, lengths: dict[str, int]) -> dict[str, dict[str, float]]:
    """Milliseconds per page: the first, a middle and the last whole one, in turn."""
    cursors: dict[str, dict[str, str | None]] = {}
    for conversation, length in lengths.items():
        cursors[conversation] = {"first": None}
        for place, sequence in (("middle", length // 2), ("last", length - PAGE - 1)):
            turn = await _turn_of(runtime, conversation, sequence)
            cursors[conversation][place] = f"{sequence}:{turn}"
    taken: dict[str, dict[str, list[float]]] = {name: {place: [] for place in cursors[name]} for name in lengths}
    for _ in range(_ROUNDS):
        for conversation, places in cursors.items():
            for place, cursor in places.items():
                started = time.perf_counter()
                report = await runtime.replay_transcript(_page(conversation, cursor))
                taken[conversation][place].append((time.perf_counter() - started) * 1000)
                assert len(report.slice.turns) == PAGE
    return {name: {place: statistics.median(of) for place, of in places.items()} for name, places in taken.items()}


async def _turn_of(runtime: TranscriptOperations, conversation: str, sequence: int) -> str:
    engine: Any = runtime._service
    thread = replace(MemoryIdentity(subject_id=SUBJECT).scope, conversation=conversation)
    found = await engine._core.store.read(
        storewide_grant(), lambda reader: reader.transcripts.turn_states(thread, sequence - 1, 1)
    )
    return str(found[0].id)


async def measured(location: Path, turns: int, writers: int) -> dict[str, Any]:
    corpus = Corpus(7)
    texts = corpus.texts(20_000)
    engine = await open_engine(str(location), read_settings())
    runtime = runtime_on(engine)
    try:
        await committed_apart(runtime, texts, writers, 1.0)
        plain = await added_apart(AsyncMemory(engine), texts, writers, APART_SECONDS)
        apart = await committed_apart(runtime_on(engine), texts, writers, APART_SECONDS)
        await committed_together(runtime, texts, SHORT_TURNS, writers, SHORT)
        together = await committed_together(runtime, texts, turns, writers, LONG)
        found = await sequences(runtime, LONG)
        shown = await pages(runtime, {SHORT: SHORT_TURNS, LONG: turns})
        hits = await AsyncMemory(engine).search(texts[0], subject=SUBJECT)
    finally:
        await engine.close()
    assert hits
    return {
        "turns": turns,
        "writers": writers,
        "turns_per_second_apart": apart,
        "turns_per_second_together": together,
        "adds_per_second": plain,
        "gaps_or_duplicates": sum(here != expected for here, expected in zip(found, range(1, turns + 1), strict=False))
        + abs(len(found) - turns),
        "page_ms": shown,
        "page_ratio": max(shown[LONG][place] / shown[SHORT][place] for place in shown[LONG]),
        "machine": described(),
    }


def table(found: dict[str, Any]) -> str:
    rows = [
        ("turns of two messages/s, 8 writers, a conversation each", f"{found['turns_per_second_apart']:.0f}", "≥ 500"),
        (f"… all into one, {found['turns']:,} turns", f"{found['turns_per_second_together']:.0f}", "≥ 500"),
        ("… ÷ plain `add` of the same", f"{found['turns_per_second_apart'] / found['adds_per_second']:.2f}", ""),
        ("gaps or duplicates of sequences", str(found["gaps_or_duplicates"]), "none"),
        ("a page of 64 turns ÷ the same of 1,000 turns", f"{found['page_ratio']:.2f}", "≤ 1.5"),
        ("… of the long conversation, ms", f"{max(found['page_ms'][LONG].values()):.2f}", ""),
    ]
    return "\n".join(
        ["| what | measured | asked |", "| --- | --- | --- |", *(f"| {a} | {b} | {c} |" for a, b, c in rows)]
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.runtime.transcripts", description=__doc__)
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--writers", type=int, default=8)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measured(Path(folder) / "memory.db", given.turns, given.writers))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


if __name__ == "__main__":
    main()
