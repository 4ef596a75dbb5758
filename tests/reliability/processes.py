"""What the tests run in processes of their own. A process finds this module by its name."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import signal
from collections.abc import Sequence
from multiprocessing.queues import Queue
from typing import Any

import numpy as np

import holdfast
from holdfast.domain.ranking import FloatArray
from holdfast.errors import RevisionConflict
from holdfast.library import AsyncMemory
from holdfast.ports import Purpose
from holdfast.stores.sqlite import SqliteStore

OPERATIONS = int(os.environ.get("HOLDFAST_OPERATIONS", "120"))


async def _mixed(path: str, name: str, counter: str) -> dict[str, Any]:
    """Add, search, read and count up a memory that all the others count up too."""
    chance, said, counted = random.Random(name), [], 0
    async with holdfast.open_async(path, embedder="fake") as memory:
        for number in range(OPERATIONS):
            choice = chance.random()
            if choice < 0.5:
                texts = [f"{name} says {number} {line}" for line in range(chance.randint(1, 3))]
                added = await memory.add(texts, subject=chance.choice((name, "all")), conversation="c")
                assert added.stored == len(texts)
                said += texts
            elif choice < 0.7:
                await memory.search(f"{name} says {number}", subject=chance.choice((name, "all")))
            elif choice < 0.8:
                await memory.list(subject="all", limit=5)
            else:
                counted += await _count_up(memory, counter)
    return {"said": said, "counted": counted}


async def _count_up(memory: AsyncMemory, counter: str) -> int:
    """Read, add one, write if nobody was faster: again until it succeeds."""
    while True:
        current = await memory.get(counter, subject="all")
        try:
            await memory.correct(
                counter,
                str(int(current.text) + 1),
                subject="all",
                expected_revision=current.revision,  # type: ignore[union-attr]
            )
        except RevisionConflict:
            continue
        return 1


def work(path: str, name: str, counter: str, answers: Queue[Any]) -> None:
    try:
        answers.put(asyncio.run(_mixed(path, name, counter)))
    except BaseException as error:  # noqa: BLE001 - told to the parent
        answers.put(f"{type(error).__name__}: {error}")


class Plain:
    """An embedder that costs nothing: here it is about bytes, not about finding."""

    fingerprint, dimensions, local = "plain:2:1", 2, True

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        return np.tile(np.array([1, 0], np.float32), (len(texts), 1))

    async def close(self) -> None:
        return None


def forget_and_die(path: str, record_ids: list[str]) -> None:
    """Forget, and be killed after the commit and before the bytes are gone."""

    async def die(self: SqliteStore) -> bool:
        os.kill(os.getpid(), signal.SIGKILL)
        return False

    SqliteStore.scrub = die  # type: ignore[method-assign]
    with holdfast.open(path, embedder=Plain(), work=False) as memory:
        memory.forget(record_ids, subject="ana")


def open_add_and_close(path: str) -> None:
    with holdfast.open(path, embedder="fake", work=False) as memory:
        memory.add("said by another process", subject="ana")


def open_twice_and_die(path: str) -> None:
    """Open the file twice, let another process come and go, write through both, and be killed."""
    opened = [holdfast.open(path, embedder="fake", work=False) for _ in range(2)]
    for number, memory in enumerate(opened):
        memory.add(f"before {number}", subject="ana")
    other = multiprocessing.get_context("spawn").Process(target=open_add_and_close, args=(path,))
    other.start()
    other.join(60)
    assert other.exitcode == 0
    for number, memory in enumerate(opened):
        memory.add(f"acknowledged {number}", subject="ana")
    os.kill(os.getpid(), signal.SIGKILL)
