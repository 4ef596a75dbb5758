"""Functions that tests run in separate processes, which import this module by name."""

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


class _Mixed:
    """A typical program's mix of calls; none of them may raise an error."""

    def __init__(self, memory: AsyncMemory, name: str, counter: str) -> None:
        self._memory, self._name, self._counter = memory, name, counter
        self._chance = random.Random(name)
        self._number = 0
        self._added: list[tuple[str, str, str]] = []  # id, subject and text
        self.learned: list[str] = []
        self.counted = 0

    @property
    def said(self) -> list[str]:
        return [text for _, _, text in self._added]

    async def work(self, operations: int) -> None:
        verbs = [(self._add, 45), (self._search, 20), (self._list, 8), (self._count, 12)]
        verbs += [(self._remember, 6), (self._forget, 6), (self._flush, 3)]
        chosen = self._chance.choices([verb for verb, _ in verbs], [weight for _, weight in verbs], k=operations)
        for self._number, verb in enumerate(chosen):
            await verb()

    def _subject(self) -> str:
        return self._chance.choice((self._name, "all"))

    async def _add(self) -> None:
        subject = self._subject()
        texts = [f"{self._name} says {self._number} {line}" for line in range(self._chance.randint(1, 3))]
        added = await self._memory.add(texts, subject=subject, conversation="c")
        assert added.stored == len(texts)
        self._added += [(str(each), subject, text) for each, text in zip(added.message_ids, texts, strict=True)]

    async def _search(self) -> None:
        await self._memory.search(f"{self._name} says {self._number}", subject=self._subject())

    async def _list(self) -> None:
        await self._memory.list(subject="all", limit=5)

    async def _remember(self) -> None:
        text = f"{self._name} knows {self._number}"
        await self._memory.remember(text, subject=self._name)
        self.learned.append(text)

    async def _forget(self) -> None:
        if self._added:
            record_id, subject, _ = self._added.pop(self._chance.randrange(len(self._added)))
            assert (await self._memory.forget(record_id, subject=subject)).remaining == 0

    async def _flush(self) -> None:
        await self._memory.flush(subject=self._name, conversation="c")

    async def _count(self) -> None:
        self.counted += await _count_up(self._memory, self._counter)


async def _mixed(path: str, name: str, counter: str, operations: int) -> dict[str, Any]:
    """Add, search, read, forget, and increment a counter memory shared by all processes."""
    async with holdfast.open_async(path, embedder="fake") as memory:
        mixed = _Mixed(memory, name, counter)
        await mixed.work(operations)
    return {"said": mixed.said, "learned": mixed.learned, "counted": mixed.counted}


async def _count_up(memory: AsyncMemory, counter: str) -> int:
    """Read, add one, compare-and-set; retry until it succeeds."""
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


def work(path: str, name: str, counter: str, operations: int, answers: Queue[Any]) -> None:
    try:
        answers.put(asyncio.run(_mixed(path, name, counter, operations)))
    except BaseException as error:  # noqa: BLE001 - reported to the parent
        answers.put(f"{type(error).__name__}: {error}")


class Plain:
    """An embedder that costs nothing: these tests check bytes, not ranking."""

    fingerprint, dimensions, local = "plain:2:1", 2, True

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        return np.tile(np.array([1, 0], np.float32), (len(texts), 1))

    async def close(self) -> None:
        return None


def forget_and_die(path: str, record_ids: list[str]) -> None:
    """Forget, and be killed after the commit and before the bytes are erased."""

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
    """Open the file twice, let another process open and close it, write through both, and be killed."""
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
