"""Killing writers at random moments, and proving that nothing they were promised is lost.

A `Nursery` is a process that has everything imported and no threads; it forks a writer per run, so that a kill costs
little. A writer opens the store and does random work from several tasks at once. It writes a line into a pipe before
each call and another after the call has returned: what the second line says must be there after any crash, and what
only the first says must be there as a whole or not at all. The `Ledger` keeps these lines over all runs on one store,
and `Ledger.check` holds the store to them.

Nothing here knows which store it is: a location is whatever `holdfast.open_async` takes.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import holdfast
from holdfast.domain.access import SYSTEM, Action, authorize
from holdfast.domain.memory import Memory, Plane
from holdfast.domain.operations import Outcome
from holdfast.domain.results import Record
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.library import AsyncMemory
from holdfast.ports import ListFilter, Store

WORKERS = 4
BATCH = 5
MAX_ACKNOWLEDGED = 60
_PATIENCE_SECONDS = 60.0
_EVERYTHING = authorize(SYSTEM, Action.WORK, Scope(space=EVERYWHERE))
_PLACES = ("Lisbon", "Porto", "Oslo", "Kyoto", "Quito")


# --- the writer, in a process of its own ------------------------------------------------------------------------------


class _Pipe:
    def __init__(self, run: int) -> None:
        self._run = run

    def tell(self, **line: Any) -> None:
        # One write of less than PIPE_BUF bytes is never torn.
        os.write(1, (json.dumps({"run": self._run, **line}) + "\n").encode())


class _Writer:
    """One task: random work on records of its own, each call announced before and acknowledged after."""

    def __init__(self, memory: AsyncMemory, pipe: _Pipe, name: str, chance: random.Random) -> None:
        self._memory = memory
        self._pipe = pipe
        self._name = name
        self._chance = chance
        self._count = 0
        self._messages: list[list[str]] = []
        self._memories: dict[str, int] = {}
        self._subject = f"s{chance.randrange(3)}"

    async def work(self) -> None:
        choices: list[Callable[[str], Any]] = [self._add] * 5 + [self._remember] * 3 + [self._correct] * 4
        choices += [self._forget_messages, self._forget_memory, self._flush]
        while True:
            self._count += 1
            await self._chance.choice(choices)(f"{self._name}n{self._count}")

    async def _add(self, key: str) -> None:
        texts = [f"I live in {self._chance.choice(_PLACES)} now, {key}x{line}." for line in range(BATCH)]
        self._pipe.tell(do="add", key=key, subject=self._subject, texts=texts)
        messages = [{"text": text, "id": f"{key}x{line}", "metadata": {"k": key}} for line, text in enumerate(texts)]
        added = await self._memory.add(messages, subject=self._subject, conversation=self._name, idempotency_key=key)
        self._pipe.tell(done=key, ids=added.message_ids)
        self._messages.append([str(message_id) for message_id in added.message_ids])

    async def _remember(self, key: str) -> None:
        text = f"A fact called {key}."
        self._pipe.tell(do="remember", key=key, subject=self._subject, text=text)
        memory = await self._memory.remember(text, subject=self._subject, metadata={"k": key})
        self._pipe.tell(done=key, ids=[memory.id])
        self._memories[memory.id] = 1

    async def _correct(self, key: str) -> None:
        if not self._memories:
            return
        memory_id = self._chance.choice(list(self._memories))
        text, revision = f"A better fact called {key}.", self._memories[memory_id]
        self._pipe.tell(do="correct", key=key, subject=self._subject, id=memory_id, text=text)
        memory = await self._memory.correct(memory_id, text, subject=self._subject, expected_revision=revision)
        self._pipe.tell(done=key, ids=[memory.id])
        self._memories[memory_id] = memory.revision

    async def _forget_messages(self, key: str) -> None:
        if self._messages:
            batch = self._messages.pop(self._chance.randrange(len(self._messages)))
            await self._forget(key, batch[: self._chance.randint(1, BATCH)])

    async def _forget_memory(self, key: str) -> None:
        if self._memories:
            memory_id = self._chance.choice(list(self._memories))
            del self._memories[memory_id]
            await self._forget(key, [memory_id])

    async def _forget(self, key: str, ids: list[str]) -> None:
        self._pipe.tell(do="forget", key=key, subject=self._subject, ids=ids)
        receipt = await self._memory.forget(ids, subject=self._subject)
        assert receipt.remaining == 0
        self._pipe.tell(done=key, ids=[])

    async def _flush(self, key: str) -> None:
        self._pipe.tell(do="flush", key=key)
        await self._memory.flush(subject=self._subject, conversation=self._name)
        self._pipe.tell(done=key, ids=[])


async def _write(run: int, location: str, seed: int) -> None:
    chance, pipe = random.Random(seed), _Pipe(run)
    async with holdfast.open_async(location, embedder="fake") as memory:
        names = [f"r{run}w{worker}" for worker in range(WORKERS)]
        writers = [_Writer(memory, pipe, name, random.Random(chance.random())) for name in names]
        async with asyncio.TaskGroup() as tasks:
            for writer in writers:
                tasks.create_task(writer.work())


def _nursery() -> None:
    """Fork a writer for each line of the input, and say when it has ended."""
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _Pipe(order["run"]).tell(pid=os.getpid())
            try:
                asyncio.run(_write(order["run"], order["location"], order["seed"]))
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        # After the writer's death: behind everything that it wrote.
        _Pipe(order["run"]).tell(ended=status)


# --- the one who kills ------------------------------------------------------------------------------------------------


class Nursery:
    def __init__(self) -> None:
        # A library that starts threads when it is loaded could not be forked.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._runs = 0

    @classmethod
    @contextmanager
    def opened(cls) -> Iterator[Nursery]:
        nursery = cls()
        try:
            yield nursery
        finally:
            nursery._process.kill()
            nursery._process.communicate()

    def kill_a_writer(self, location: str, chance: random.Random) -> list[dict[str, Any]]:
        """Let a writer work on the store, and kill it at a random moment; what it said."""
        self._runs += 1
        order = {"run": self._runs, "location": location, "seed": chance.randrange(2**32)}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self._watch(chance)

    def _watch(self, chance: random.Random) -> list[dict[str, Any]]:
        # Some die while they open the store, the others between or within their calls.
        acknowledged, enough = 0, chance.choice((0, chance.randint(1, MAX_ACKNOWLEDGED)))
        said: list[dict[str, Any]] = []
        pid = int(self._line()["pid"])
        started = time.monotonic()
        killed = enough == 0
        if killed:
            self._kill(pid, chance.uniform(0, 0.08))
        while "ended" not in (line := self._line()):
            said.append(line)
            acknowledged += "done" in line
            if not killed and acknowledged >= enough:
                killed = True
                self._kill(pid, chance.uniform(0, 0.006))
            assert time.monotonic() - started < _PATIENCE_SECONDS, "the writer does not get on"
        assert os.WIFSIGNALED(line["ended"]), "the writer ended by itself: see its traceback above"
        return said

    def _kill(self, pid: int, wait_seconds: float) -> None:
        time.sleep(wait_seconds)
        os.kill(pid, signal.SIGKILL)

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the nursery died"
        found: dict[str, Any] = json.loads(line)
        assert found["run"] == self._runs
        return found


# --- what must be there -----------------------------------------------------------------------------------------------


@dataclass
class Ledger:
    """Everything that was promised about one store, and everything that was under way when a writer died."""

    messages: dict[str, str] = field(default_factory=dict)  # id to text
    memories: dict[str, list[str]] = field(default_factory=dict)  # id to the texts of its revisions
    subjects: dict[str, str] = field(default_factory=dict)  # id to subject
    forgotten: list[tuple[str, str]] = field(default_factory=list)  # subject and text
    done: Counter[str] = field(default_factory=Counter)  # how often each verb has happened
    open_flushes: int = 0

    def note(self, said: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Take in what a writer said; the calls that were not acknowledged."""
        under_way: dict[str, dict[str, Any]] = {}
        for line in said:
            if "do" in line:
                under_way[line["key"]] = line
            elif "done" in line:
                self._happened(under_way.pop(line["done"]), line["ids"])
        return list(under_way.values())

    def _happened(self, call: dict[str, Any], ids: list[str]) -> None:
        verb = call["do"]
        self.done[verb] += 1
        if verb == "add":
            self.messages.update(zip(ids, call["texts"], strict=True))
        elif verb == "remember":
            self.memories[ids[0]] = [call["text"]]
        elif verb == "correct":
            self.memories[call["id"]].append(call["text"])
        elif verb == "forget":
            for record_id in call["ids"]:
                texts = [self.messages.pop(record_id)] if record_id in self.messages else self.memories.pop(record_id)
                self.forgotten += [(call["subject"], text) for text in texts]
        for record_id in ids:
            self.subjects[record_id] = call["subject"]

    def settle(self, call: dict[str, Any], kept: Kept) -> None:
        """Decide whether a call that nobody acknowledged has happened: as a whole, or not at all."""
        verb = call["do"]
        if verb == "add":
            ids = [kept.by_text.get(text) for text in call["texts"]]
            assert len({found is None for found in ids}) == 1, f"half of a batch is visible: {call} {ids}"
            if ids[0] is not None:
                self._happened(call, [str(found) for found in ids])
        elif verb == "remember":
            if found := kept.by_text.get(call["text"]):
                self._happened(call, [found])
        elif verb == "correct":
            texts = kept.histories.get(call["id"], [])
            assert texts in (before := self.memories[call["id"]], [*before, call["text"]]), f"{call} {texts}"
            if texts[-1] == call["text"]:
                self._happened(call, [call["id"]])
        elif verb == "forget":
            there = {record_id in kept.records for record_id in call["ids"]}
            assert len(there) == 1, f"half of a forget is visible: {call}"
            if there == {False}:
                self._happened(call, [])
        else:
            self.open_flushes += 1

    # --- holding a store to it ---

    async def check(self, location: str, store: Store, under_way: list[dict[str, Any]], chance: random.Random) -> None:
        kept = await Kept.of(store)
        for call in under_way:
            self.settle(call, kept)
        self._check_records(kept)
        self._check_operations(kept)
        async with holdfast.open_async(location, embedder="fake", work=False) as memory:
            verified = await memory.verify()
            assert verified.ok, verified.findings
            await self._check_search(memory, chance)
            await check_rebuild(memory, store, chance, sorted(self.messages.values()))

    def _check_records(self, kept: Kept) -> None:
        messages = {key: each.text for key, each in kept.records.items() if not isinstance(each, Memory)}
        assert messages == self.messages
        written = {key: texts for key, texts in kept.histories.items() if not kept.is_extracted(key)}
        assert written == self.memories
        for record_id, record in kept.records.items():
            if isinstance(record, Memory):
                # What was extracted rests on messages that are there.
                assert bool(record.evidence) == kept.is_extracted(record_id)
            else:
                assert dict(record.metadata) == {"k": record.external_id.rpartition("x")[0]}  # type: ignore[union-attr]

    def _check_operations(self, kept: Kept) -> None:
        """Every write that is there has its row, and every row its write."""
        for verb in ("add", "remember", "correct", "forget"):
            assert kept.succeeded[verb] == self.done[verb], f"{verb}: {kept.succeeded[verb]} {self.done[verb]}"
        assert self.done["flush"] <= kept.succeeded["flush"] <= self.done["flush"] + self.open_flushes

    async def _check_search(self, memory: AsyncMemory, chance: random.Random) -> None:
        current = [*self.messages.items(), *((key, texts[-1]) for key, texts in self.memories.items())]
        for record_id, text in chance.sample(current, min(3, len(current))):
            hits = await memory.search(text, subject=self.subjects[record_id], top_k=20)
            assert record_id in [hit.id for hit in hits]
        for subject, text in chance.sample(self.forgotten, min(3, len(self.forgotten))):
            assert text not in [hit.text for hit in await memory.search(text, subject=subject, top_k=50)]


@dataclass(frozen=True)
class Kept:
    """What a store holds, read through its port."""

    records: dict[str, Record]
    histories: dict[str, list[str]]
    succeeded: Counter[str]

    @property
    def by_text(self) -> dict[str, str]:
        return {record.text: record_id for record_id, record in self.records.items()}

    def is_extracted(self, record_id: str) -> bool:
        record = self.records[record_id]
        return isinstance(record, Memory) and record.author.startswith("extractor:")

    @classmethod
    async def of(cls, store: Store) -> Kept:
        wanted = ListFilter(planes=frozenset(Plane))
        records: dict[str, Record] = {
            record.id: record for record in await store.read(_EVERYTHING, lambda r: r.page(wanted, None, 1_000_000))
        }
        memories = [record_id for record_id, record in records.items() if isinstance(record, Memory)]
        histories = await store.read(
            _EVERYTHING,
            lambda r: {record_id: [each.text for each in r.revisions(record_id)] for record_id in memories},
        )
        rows = await store.read(_EVERYTHING, lambda r: r.operations(1_000_000))
        return cls(records, histories, Counter(str(row.action) for row in rows if row.outcome is Outcome.SUCCEEDED))


async def check_rebuild(memory: AsyncMemory, store: Store, chance: random.Random, queries: list[str]) -> None:
    """Indexes are derived: made anew from the texts, they are what they were, and find the same."""
    await memory.drain()
    asked = chance.sample(queries, min(3, len(queries)))
    before = await _indexes(store), [await _answers(memory, query) for query in asked]
    rebuilt = await memory.rebuild()
    assert rebuilt.pending_vectors == 0
    # The second view has grown over the rebuild, from what changed; the first was made at once.
    assert (await _indexes(store), [await _answers(memory, query) for query in asked]) == before


async def _indexes(store: Store) -> dict[str, tuple[set[object], set[object]]]:
    fingerprint = "fake:64:1"
    return await store.read(
        _EVERYTHING,
        lambda r: {
            str(partition): (set(found.rows), set(found.vectors))
            for partition in r.partitions()
            for found in [r.delta(partition, 0, fingerprint)]
        },
    )


async def _answers(memory: AsyncMemory, query: str) -> list[tuple[str, float]]:
    return [(hit.id, round(hit.score, 4)) for hit in await memory.search(query, top_k=30)]


if __name__ == "__main__":
    _nursery()
