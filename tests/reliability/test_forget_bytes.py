"""After a forget, no byte of the forgotten content is in any file, whatever the file's layout and whatever crashes.

SQLite moves rows between pages when their neighbours grow, shrink or go, and may leave copies of them in the unused
parts of pages. So these workloads make rows move: many partitions at once, texts from one byte to many pages,
corrections, and forgetting the neighbours first.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import signal
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import processes
import pytest
from canaries import Canaries, assert_gone
from processes import Plain

import holdfast
from holdfast.domain.access import SYSTEM, Action, authorize
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.errors import DuplicateId
from holdfast.library import AsyncMemory
from holdfast.ports import Reader
from holdfast.stores.sqlite import SqliteStore

LAYOUTS = int(os.environ.get("HOLDFAST_LAYOUTS", "7"))
EVERYTHING = authorize(SYSTEM, Action.WORK, Scope(space=EVERYWHERE))


class Hoard:
    """A memory that is filled and emptied at random; everything in it is a canary."""

    def __init__(self, memory: AsyncMemory, seed: int, subjects: int) -> None:
        self._memory = memory
        self._chance = random.Random(seed)
        self._canaries = Canaries(seed)
        self._subjects = subjects
        self.live: dict[str, tuple[str, list[str]]] = {}
        self.gone: list[str] = []

    @property
    def kept(self) -> list[str]:
        return [value for _, said in self.live.values() for value in said]

    async def step(self) -> None:
        choice = self._chance.random()
        if choice < 0.45 or not self.live:
            await self._add()
        elif choice < 0.57:
            await self._remember()
        elif choice < 0.70:
            await self._correct()
        elif choice < 0.75:
            await self._add_resource()
        else:
            await self._forget(self._chance.choice((1, 1, 2, 5, 20)))

    async def _add(self) -> None:
        subject = f"s{self._chance.randrange(self._subjects)}"
        make, source = self._canaries.make, self._canaries.make()
        messages: list[dict[str, Any]] = [
            {
                "text": self._canaries.text(),
                "sender": make(),
                "id": make(),
                "metadata": {make(): make(self._chance.choice((10, 200, 3_000)))},
            }
            for _ in range(self._chance.choice((1, 1, 2, 5, 15)))
        ]
        added = await self._memory.add(messages, subject=subject, conversation=f"c{subject}", source=source)
        for message_id, message in zip(added.message_ids, messages, strict=True):
            said = [message["text"], message["sender"], message["id"], *message["metadata"].popitem()]
            # Messages share a source, which goes with the last of them; so search for it only then.
            self.live[str(message_id)] = (subject, said + ([source] if len(messages) == 1 else []))

    async def _remember(self) -> None:
        subject, text, note, source = (
            self._subject(),
            self._canaries.text(),
            self._canaries.make(),
            self._canaries.make(),
        )
        memory = await self._memory.remember(text, subject=subject, metadata={"note": note}, source=source)
        self.live[memory.id] = (subject, [text, note, source])

    async def _add_resource(self) -> None:
        subject, text = self._subject(), self._canaries.make(self._chance.choice((1_500, 5_000)))
        name, uri = self._canaries.make(self._chance.choice((10, 200))), self._canaries.make(60)
        added = await self._memory.add_resource(text, name=name, external_uri=uri, subject=subject)
        self.live[added.resource.id] = (subject, [text, name, uri])

    def _subject(self) -> str:
        return f"s{self._chance.randrange(self._subjects)}"

    async def _correct(self) -> None:
        memories = [record_id for record_id in self.live if record_id.startswith("mem")]
        if memories:
            memory_id = self._chance.choice(memories)
            subject, said = self.live[memory_id]
            text, reason = self._canaries.text(), self._canaries.make()
            await self._memory.correct(memory_id, text, subject=subject, reason=reason)
            said += [text, reason]

    async def _forget(self, count: int) -> None:
        for record_id in self._chance.sample(sorted(self.live), min(count, len(self.live))):
            subject, said = self.live.pop(record_id)
            remove = self._memory.delete_resource if record_id.startswith("r_") else self._memory.forget
            receipt = await remove(record_id, subject=subject)
            assert receipt.scrubbed
            self.gone += said


@pytest.mark.parametrize("seed", range(LAYOUTS))
def test_no_byte_is_left_whatever_the_layout(tmp_path: Path, seed: int) -> None:
    async def whole() -> Hoard:
        async with holdfast.open_async(tmp_path / "memory.db", embedder=Plain(), work=False) as memory:
            hoard = Hoard(memory, seed, subjects=1 + seed % 7)
            for _ in range(100):
                await hoard.step()
            # Check while the store is open: the log is still in use.
            assert_gone(tmp_path, hoard.gone, hoard.kept)
            return hoard

    hoard = asyncio.run(whole())
    assert hoard.gone
    assert_gone(tmp_path, hoard.gone, hoard.kept)


@pytest.mark.parametrize("size", [40, 250, 700, 1_300])
def test_no_byte_is_left_when_the_neighbours_went_first(tmp_path: Path, size: int) -> None:
    """SQLite merges pages that become almost empty, so the remaining rows move repeatedly."""
    chance, canaries = random.Random(size), Canaries(1_000 + size)
    texts = [canaries.make(chance.randint(size // 2, size)) for _ in range(400)]
    with holdfast.open(tmp_path / "memory.db", embedder=Plain(), work=False) as memory:
        ids = []
        for at in range(0, 400, 20):
            messages = [{"text": text, "metadata": {"k": text[:16]}} for text in texts[at : at + 20]]
            ids += memory.add(messages, subject=f"s{at % 3}").message_ids
        order = list(range(400))
        chance.shuffle(order)
        for at in range(0, 380, 10):
            memory.forget([str(ids[each]) for each in order[at : at + 10]])
        assert_gone(tmp_path, [texts[each] for each in order[:380]], [texts[each] for each in order[380:]])
        assert memory.verify().ok


def test_the_search_for_bytes_finds_what_is_there(tmp_path: Path) -> None:
    canary = Canaries(1).make(5_000)
    with holdfast.open(tmp_path / "memory.db", embedder=Plain(), work=False) as memory:
        memory.add(canary, subject="ana")
        with pytest.raises(AssertionError, match="pieces"):
            assert_gone(tmp_path, [canary])


def test_forgetting_a_whole_subject_leaves_its_neighbours(tmp_path: Path) -> None:
    canaries = Canaries(2)
    with holdfast.open(tmp_path / "memory.db", embedder=Plain(), work=False) as memory:
        said: dict[str, list[str]] = {"ana": [], "bob": []}
        for _ in range(40):
            for subject, texts in said.items():
                texts.append(canaries.text())
                memory.add(texts[-1], subject=subject)
        memory.forget(subject="ana")
        assert_gone(tmp_path, said["ana"])
        assert sorted(record.text for record in memory.list(subject="bob", limit=100).items) == sorted(said["bob"])
        assert memory.verify().ok


def test_what_was_extracted_from_a_message_goes_with_it(tmp_path: Path) -> None:
    place = "Qx" + "".join(letter for letter in Canaries(3).make(60) if letter.isalpha()).lower()
    with holdfast.open(tmp_path / "memory.db", embedder=Plain(), work=False) as memory:
        memory.add(f"I live in {place}.", subject="ana")
        memory.flush(subject="ana")
        memory.drain()
        assert memory.list(subject="ana", kind="memory").items, "nothing was extracted: the test tests nothing"
        memory.forget(subject="ana", conversation="default")
        assert memory.list(subject="ana").items == ()
        assert_gone(tmp_path, [place, place.casefold()])


def test_a_message_of_one_byte_is_forgotten_as_well(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "memory.db", embedder=Plain(), work=False) as memory:
        added = memory.add("\x07", subject="ana")
        memory.forget(str(added.message_ids[0]), subject="ana")
        assert memory.stats(subject="ana").messages == 0
    # A single byte occurs everywhere in a file, so check where it was stored.
    with closing(sqlite3.connect(tmp_path / "memory.db")) as raw:
        assert raw.execute("SELECT hex(text) FROM texts").fetchall() == [("00",)]


def test_nothing_is_left_in_failed_and_repeated_calls(tmp_path: Path) -> None:
    canaries = Canaries(4)
    text, other, key = canaries.make(3_000), canaries.make(3_000), canaries.make()
    with holdfast.open(tmp_path / "memory.db", embedder=Plain(), work=False) as memory:
        added = memory.add({"text": text, "id": "m1"}, subject="ana", idempotency_key="k")
        memory.add({"text": text, "id": "m1"}, subject="ana", idempotency_key="k")
        with pytest.raises(DuplicateId):
            memory.add([{"text": key, "id": "m2"}, {"text": other, "id": "m1"}], subject="ana")
        memory.forget(str(added.message_ids[0]), subject="ana")
        assert_gone(tmp_path, [text, other, key])


# --- blocking readers -------------------------------------------------------------------------------------------------


def test_a_reader_in_the_way_delays_the_bytes_and_the_receipt_says_so(tmp_path: Path) -> None:
    canary = Canaries(5).make(6_000)

    async def whole() -> None:
        path = tmp_path / "memory.db"
        other = SqliteStore(str(path))
        reading, done = threading.Event(), threading.Event()

        def look(reader: Reader) -> None:
            reader.maintenance.counts("plain:2:1", 1)
            reading.set()
            done.wait(30)

        async with holdfast.open_async(path, embedder=Plain(), work=False) as memory:
            added = await memory.add(canary, subject="ana")
            busy = asyncio.create_task(other.read(EVERYTHING, look))
            await asyncio.to_thread(reading.wait, 30)
            receipt = await memory.forget(str(added.message_ids[0]), subject="ana")
            assert not receipt.scrubbed
            # Meanwhile no caller waits for it.
            await memory.add("hello", subject="bob")
            done.set()
            await busy
            # The job was queued with the forget; it runs as soon as it can.
            assert await memory.drain() == 1
            assert_gone(tmp_path, [canary])
        await other.close()

    asyncio.run(whole())


def test_readers_that_come_and_go_do_not_keep_bytes(tmp_path: Path) -> None:
    async def whole() -> None:
        path = tmp_path / "memory.db"
        async with holdfast.open_async(path, embedder=Plain(), work=False) as memory:
            hoard, running = Hoard(memory, 6, subjects=3), True

            async def read() -> None:
                while running:
                    await memory.search("something", subject="s1")
                    await memory.list(subject="s2")

            readers = [asyncio.create_task(read()) for _ in range(3)]
            for _ in range(60):
                await hoard.step()
            running = False
            await asyncio.gather(*readers)
            assert_gone(tmp_path, hoard.gone, hoard.kept)

    asyncio.run(whole())


# --- crashes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_crash_before_the_bytes_are_gone_does_not_keep_them(tmp_path: Path, seed: int) -> None:
    path, canaries = tmp_path / "memory.db", Canaries(100 + seed)
    texts = [canaries.text() for _ in range(20)]
    with holdfast.open(path, embedder=Plain(), work=False) as memory:
        added = memory.add(texts, subject="ana")
    process = multiprocessing.get_context("spawn").Process(
        target=processes.forget_and_die, args=(str(path), [str(added.message_ids[at]) for at in range(10)])
    )
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    with holdfast.open(path, embedder=Plain(), work=False) as memory:
        assert memory.stats(subject="ana").messages == 10
        assert memory.drain() == 1
        assert_gone(tmp_path, texts[:10])
        assert memory.verify().ok
