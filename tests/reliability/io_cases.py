"""Run each verb while one of its disk calls fails. Runs in separate processes."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import holdfast
from faults.disk import FAULTS, Shim
from faults.zygote import Tell
from holdfast.errors import HoldfastError, StoreReadOnly
from holdfast.library import AsyncMemory
from holdfast.search.embedders.fake import FakeEmbedder
from holdfast.testing import CountingIds, FixedClock

CANARY = "zanzibarquux"
AFTERWARDS = "said afterwards"
_MESSAGES = [{"text": f"message {number} of the first batch", "id": f"a{number}"} for number in range(3)]

Work = Callable[[AsyncMemory], Awaitable[Any]]


async def _memory_id(memory: AsyncMemory) -> str:
    return str((await memory.list(subject="ana", kind="memory", limit=1)).items[0].id)


async def _correct(memory: AsyncMemory) -> None:
    await memory.correct(await _memory_id(memory), "Ana likes coffee.", subject="ana", expected_revision=1)


async def _flush(memory: AsyncMemory) -> None:
    await memory.flush(subject="ana", conversation="home")
    await memory.drain()


async def _look(memory: AsyncMemory) -> None:
    assert await memory.search("Lisbon", subject="ana")
    assert (await memory.list(subject="ana")).items
    await memory.get(await _memory_id(memory), subject="ana")


VERBS: dict[str, Work] = {
    "add": lambda memory: memory.add(_MESSAGES, subject="ana", conversation="new", idempotency_key="k"),
    "remember": lambda memory: memory.remember("Ana plays chess.", subject="ana", idempotency_key="k"),
    "correct": _correct,
    "forget": lambda memory: memory.forget(subject="ana", conversation="secret"),
    "flush": _flush,
    "index": lambda memory: memory.drain(),
    "rebuild": lambda memory: memory.rebuild(),
    "read": _look,
}
# Several commits, each atomic; the next drain does the remaining work.
IN_STEPS = frozenset({"flush", "index", "rebuild"})
LEAVES_WORK = IN_STEPS | {"forget"}
OPENING = ("create", "open", "recover")
EVERY = (*VERBS, *OPENING, "close")


def _opening(location: str, start: int, *, local: bool = True) -> Any:
    embedder = FakeEmbedder(local=local)
    return holdfast.open_async(location, embedder=embedder, clock=FixedClock(), new_ids=CountingIds(start), work=False)


async def fill(memory: AsyncMemory) -> None:
    """Write the content that every case starts from."""
    await memory.add(["I live in Lisbon.", "I work as a nurse."], subject="ana", conversation="home")
    await memory.add([f"{CANARY} one", f"{CANARY} two " * 900], subject="ana", conversation="secret")
    await memory.add("Something that bob said.", subject="bob")
    await memory.remember("Ana likes tea.", subject="ana")


def prepare(tell: Tell, folder: str) -> None:
    """Create the initial store of every case, once closed and once as a crash leaves it."""

    async def whole() -> None:
        async with _opening(f"{folder}/closed.db", 1) as memory:
            await fill(memory)
        async with _opening(f"{folder}/closed.db", 200, local=False) as memory:
            await memory.add([f"still to be indexed, {number}" for number in range(5)], subject="eve")
        shutil.copy(f"{folder}/closed.db", f"{folder}/crashed.db")
        async with _opening(f"{folder}/crashed.db", 500) as memory:
            await memory.remember("Learned before the crash.", subject="ana")
            tell(prepared=True)
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(whole())


def run(tell: Tell, location: str, control: str, verb: str, fault: str, at: int, dies: bool) -> None:
    """Run the verb with call number `at` failing (0: only count calls); report the outcome; continue or die."""
    asyncio.run(_run(tell, location, Shim(Path(control)), verb, fault, at, dies))


async def _run(tell: Tell, location: str, shim: Shim, verb: str, fault: str, at: int, dies: bool) -> None:
    folder = os.path.dirname(location)

    async def failing(work: Awaitable[Any]) -> Any:
        if at:
            shim.fail(folder, FAULTS[fault], at)
        else:
            shim.count(folder, FAULTS[fault].calls)
        outcome, result = "done", None
        try:
            result = await work
        except HoldfastError as error:
            outcome = error.code
        finally:
            calls, failed = shim.disarm()
        tell(outcome=outcome, calls=calls, failed=failed)
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    opening = _opening(location, 1_000)
    memory = await (failing(opening.open_memory()) if verb in OPENING else opening.open_memory())
    if memory is None:
        memory = await _opening(location, 1_000).open_memory()
    if verb in VERBS:
        await failing(VERBS[verb](memory))
    # The fault is over: everything works again without reopening.
    try:
        await memory.add(AFTERWARDS, subject="zoe")
    except StoreReadOnly:
        # The exception: SQLite opens an unwritable file read-only, and the first write reports that.
        assert verb in OPENING
        await memory.close()
        memory = await _opening(location, 2_000).open_memory()
        await memory.add(AFTERWARDS, subject="zoe")
    assert [hit.text for hit in await memory.search(AFTERWARDS, subject="zoe")] == [AFTERWARDS]
    await (failing(memory.close()) if verb == "close" else memory.close())
