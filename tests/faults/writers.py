"""Concurrent random work that reports each call before it and each acknowledgement after it.

A writer runs in a separate process (`zygote`), opens the store, and works from several tasks at once. It reports a line
before each call and another when the call has returned. After any crash, acknowledged calls must be in the store;
calls that were only announced must be there completely or not at all (`ledger`).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

import holdfast
from faults import points
from faults.zygote import Child, Line, Tell, Zygote
from holdfast.errors import StoreError
from holdfast.library import AsyncMemory
from holdfast.search.embedders.fake import FakeEmbedder
from postgres import Server

TASKS = 4
BATCH = 5
MAX_CALLS = 150  # per task; then the writer ends by itself
MAX_ACKNOWLEDGED = 60
_PLACES = ("Lisbon", "Porto", "Oslo", "Kyoto", "Quito")
_REST_SECONDS = 0.05


class _Writer:
    """One task: random work on its own records; each call is announced before and acknowledged after."""

    def __init__(self, memory: AsyncMemory, tell: Tell, name: str, chance: random.Random) -> None:
        self._memory = memory
        self._tell = tell
        self._name = name
        self._chance = chance
        self._messages: list[list[str]] = []
        self._memories: dict[str, int] = {}
        self._subject = f"s{chance.randrange(3)}"

    async def work(self, *, patient: bool) -> None:
        """Make random calls. A `patient` writer tolerates store errors and goes on with another call."""
        choices: list[Callable[[str], Any]] = [self._add] * 5 + [self._remember] * 3 + [self._correct] * 4
        choices += [self._forget_messages, self._forget_memory, self._flush, self._search, self._list]
        choices += [self._rebuild] * self._chance.randint(0, 1)
        for count in range(MAX_CALLS):
            key = f"{self._name}n{count}"
            try:
                await self._chance.choice(choices)(key)
            except StoreError as error:
                if not patient:
                    raise
                self._tell(failed=key, error=error.code)
                await asyncio.sleep(_REST_SECONDS)

    async def _add(self, key: str) -> None:
        texts = [f"I live in {self._chance.choice(_PLACES)} now, {key}x{line}." for line in range(BATCH)]
        self._tell(do="add", key=key, subject=self._subject, texts=texts)
        messages = [{"text": text, "id": f"{key}x{line}", "metadata": {"k": key}} for line, text in enumerate(texts)]
        added = await self._memory.add(messages, subject=self._subject, conversation=self._name, idempotency_key=key)
        self._tell(done=key, ids=added.message_ids)
        self._messages.append([str(message_id) for message_id in added.message_ids])

    async def _remember(self, key: str) -> None:
        text = f"A fact called {key}."
        self._tell(do="remember", key=key, subject=self._subject, text=text)
        memory = await self._memory.remember(text, subject=self._subject, metadata={"k": key})
        self._tell(done=key, ids=[memory.id])
        self._memories[memory.id] = 1

    async def _correct(self, key: str) -> None:
        if not self._memories:
            return
        memory_id = self._chance.choice(list(self._memories))
        # Removed until the outcome is known.
        text, revision = f"A better fact called {key}.", self._memories.pop(memory_id)
        self._tell(do="correct", key=key, subject=self._subject, id=memory_id, text=text)
        memory = await self._memory.correct(memory_id, text, subject=self._subject, expected_revision=revision)
        self._tell(done=key, ids=[memory.id])
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
        self._tell(do="forget", key=key, subject=self._subject, ids=ids)
        receipt = await self._memory.forget(ids, subject=self._subject)
        assert receipt.remaining == 0
        self._tell(done=key, ids=[])

    async def _flush(self, key: str) -> None:
        await self._announced("flush", key, self._memory.flush(subject=self._subject, conversation=self._name))

    async def _rebuild(self, key: str) -> None:
        await self._announced("rebuild", key, self._memory.rebuild())

    async def _announced(self, verb: str, key: str, call: Any) -> None:
        self._tell(do=verb, key=key)
        await call
        self._tell(done=key, ids=[])

    async def _search(self, key: str) -> None:
        await self._memory.search(f"{key} {self._chance.choice(_PLACES)}", subject=self._subject)

    async def _list(self, key: str) -> None:
        await self._memory.list(subject=self._subject, limit=5)


async def _write(
    tell: Tell, location: str, run: str, seed: int, patient: bool, local: bool, point: str | None, passage: int
) -> None:
    chance = random.Random(seed)
    if point is not None:
        points.die_at(point, passage)
    async with holdfast.open_async(location, embedder=FakeEmbedder(local=local)) as memory:
        writers = [_Writer(memory, tell, f"r{run}w{task}", random.Random(chance.random())) for task in range(TASKS)]
        async with asyncio.TaskGroup() as tasks:
            for writer in writers:
                tasks.create_task(writer.work(patient=patient))


def write(
    tell: Tell,
    location: str,
    run: str,
    seed: int,
    *,
    patient: bool = False,
    local: bool = True,
    point: str | None = None,
    passage: int = 1,
) -> None:
    """Work until everything is done, or until killed: at the named point, if one is given."""
    asyncio.run(_write(tell, location, run, seed, patient, local, point, passage))


# --- killing writers --------------------------------------------------------------------------------------------------


def start_writer(zygote: Zygote, location: str, run: str, chance: random.Random, **how: Any) -> Child:
    return zygote.start("faults.writers:write", location=location, run=run, seed=chance.randrange(2**32), **how)


def killed_at_random(zygote: Zygote, location: str, run: str, chance: random.Random) -> list[Line]:
    """Let a writer work on the store, kill it at a random time, and return the lines it reported."""
    # Some die while they open the store, the others between or within their calls.
    enough = chance.choice((0, chance.randint(1, MAX_ACKNOWLEDGED)))
    child = start_writer(zygote, location, run, chance, local=chance.random() < 0.7)
    told: list[Line] = []
    if enough == 0:
        time.sleep(chance.uniform(0, 0.08))
        child.kill()
    acknowledged = 0
    for line in child.lines():
        told.append(line)
        acknowledged += "done" in line
        if acknowledged == enough and "done" in line:
            time.sleep(chance.uniform(0, 0.006))
            child.kill()
    assert child.killed, "the writer ended by itself: see its traceback above"
    return told


def killed_after_its_server(
    zygote: Zygote, location: str, run: str, chance: random.Random, server: Server
) -> list[Line]:
    """Let a writer work, kill and restart its server, check that the writer goes on, and kill it too."""
    child = start_writer(zygote, location, run, chance, local=chance.random() < 0.7, patient=True)
    server_dies = chance.randint(1, MAX_ACKNOWLEDGED)
    dies = server_dies + chance.randint(1, MAX_ACKNOWLEDGED // 2)
    told: list[Line] = []
    acknowledged = 0
    for line in child.lines():
        told.append(line)
        acknowledged += "done" in line
        if acknowledged == server_dies and "done" in line:
            time.sleep(chance.uniform(0, 0.02))
            server.kill()
            server.start()
        if acknowledged == dies and "done" in line:
            child.kill()
    assert child.killed, "the writer ended by itself: see its traceback above"
    return told


def killed_at(zygote: Zygote, location: str, run: str, chance: random.Random, point: str, passage: int) -> list[Line]:
    """Let a writer work until it dies at the point; return the lines it reported."""
    child = start_writer(zygote, location, run, chance, local=False, point=point, passage=passage)
    told = child.wait()
    assert child.killed, f"{point} was not reached {passage} times, or the writer failed: see its traceback above"
    return told
