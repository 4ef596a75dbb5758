"""Several processes on one store: no caller gets a locked database, and nothing is lost."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import processes
import pytest

import holdfast
from faults.places import Place
from holdfast.errors import StoreBusy
from holdfast.settings import Settings

OPERATIONS = int(os.environ.get("HOLDFAST_OPERATIONS", "250"))  # for each of two processes
PATIENCE_SECONDS = 300 + OPERATIONS


# --- mixed work -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 4])
def test_processes_share_a_store_without_errors_and_without_loss(place: Place, count: int) -> None:
    with holdfast.open(place.location, embedder="fake", work=False) as memory:
        counter = memory.remember("0", subject="all").id
    context = multiprocessing.get_context("spawn")
    answers: Queue[Any] = context.Queue()
    started = [
        context.Process(
            target=processes.work, args=(place.location, f"process{number}", counter, OPERATIONS * 2 // count, answers)
        )
        for number in range(count)
    ]
    for process in started:
        process.start()
    told = [answers.get(timeout=PATIENCE_SECONDS) for _ in started]
    for process in started:
        process.join(60)
    errors = [answer for answer in told if isinstance(answer, str)]
    assert errors == []
    with holdfast.open(place.location, embedder="fake", work=False) as memory:
        assert memory.verify().ok
        messages = _everything(memory, "message")
        assert sorted(message.text for message in messages) == sorted(
            text for answer in told for text in answer["said"]
        )
        shared = [message.position for message in messages if message.scope.subject == "all"]
        assert len(set(shared)) == len(shared)
        learned = {memory.text for memory in _everything(memory, "memory")}
        assert learned >= {text for answer in told for text in answer["learned"]}
        counted = sum(answer["counted"] for answer in told)
        assert memory.get(counter, subject="all").text == str(counted)
        assert len(memory.history(counter, subject="all")) == counted + 1


def _everything(memory: holdfast.Memory, kind: str) -> list[Any]:
    found: list[Any] = []
    cursor = None
    while True:
        page = memory.list(kind=kind, limit=1_000, cursor=cursor)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


def test_a_process_that_opens_a_file_twice_keeps_its_locks_on_it(tmp_path: Path) -> None:
    """Closing a file releases all POSIX locks of the process on it; another process could then remove the log."""
    path = str(tmp_path / "memory.db")
    process = multiprocessing.get_context("spawn").Process(target=processes.open_twice_and_die, args=(path,))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    with holdfast.open(path, embedder="fake", work=False) as memory:
        assert [record.text for record in memory.list(subject="ana").items] == [
            "acknowledged 1", "acknowledged 0", "said by another process", "before 1", "before 0",
        ]  # fmt: skip
        assert memory.verify().ok


# --- a lock held for long ---------------------------------------------------------------------------------------------


@contextmanager
def lock_held(path: Path) -> Iterator[None]:
    """Hold the write lock from another program."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def test_a_lock_held_for_too_long_is_a_busy_store_and_later_works_again(tmp_path: Path) -> None:
    async def whole() -> None:
        path = tmp_path / "memory.db"
        impatient = Settings(busy_seconds=0.2)
        async with holdfast.open_async(path, embedder="fake", work=False, settings=impatient) as memory:
            await memory.add("before", subject="ana")
            with lock_held(path):
                calls = [memory.add(f"never {number}", subject="ana") for number in range(8)]
                ended = await asyncio.gather(*calls, memory.remember("nor this", subject="ana"), return_exceptions=True)
                assert [type(error) for error in ended] == [StoreBusy] * 9
                assert "being written by another process; nothing was changed, try again" in str(ended[0])
                # The lock blocks no reader.
                assert [hit.text for hit in await memory.search("before", subject="ana")] == ["before"]
            await memory.add("after", subject="ana")
            assert [record.text for record in (await memory.list(subject="ana")).items] == ["after", "before"]
            assert (await memory.verify()).ok

    asyncio.run(whole())


def test_a_short_lock_is_waited_for(tmp_path: Path) -> None:
    async def whole() -> None:
        path = tmp_path / "memory.db"
        async with holdfast.open_async(path, embedder="fake", work=False) as memory:
            with lock_held(path):
                waiting = asyncio.create_task(memory.add("patient", subject="ana"))
                await memory.list(subject="ana")
                assert not waiting.done()
            await waiting
            assert len((await memory.list(subject="ana")).items) == 1

    asyncio.run(whole())


def test_opening_waits_for_a_lock_or_says_that_the_store_is_busy(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = WAL")
    with lock_held(path):
        with pytest.raises(StoreBusy, match="try again"):
            holdfast.open(path, embedder="fake", settings=Settings(busy_seconds=0.2))
    holdfast.open(path, embedder="fake").close()


def test_audit_rows_wait_out_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with holdfast.open(path, embedder="fake", work=False, settings=Settings(busy_seconds=0.2)) as memory:
        memory.add("hello", subject="ana")
        with lock_held(path):
            memory.search("hello", subject="ana")
    with closing(sqlite3.connect(path)) as database:
        actions = [action for (action,) in database.execute("SELECT action FROM operations ORDER BY id")]
    assert actions == ["add", "search"]
