"""Run each verb while its server connection is cut at one of its calls. Runs in separate processes."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from io_cases import AFTERWARDS, VERBS, fill

import holdfast
from faults.disk import CUT, Call, Shim
from faults.zygote import Tell
from holdfast.errors import HoldfastError
from holdfast.search.embedders.fake import FakeEmbedder
from holdfast.testing import CountingIds, FixedClock

EVERY = (*VERBS, "open", "close")


def prepare(tell: Tell, location: str, space: str) -> None:
    """Create a case's initial content in a new space."""

    async def whole() -> None:
        async with _opening(location, space, 0) as memory:
            await fill(memory)
        async with _opening(location, space, 500, local=False) as memory:
            await memory.add([f"still to be indexed, {number}" for number in range(3)], subject="eve")

    asyncio.run(whole())


def _opening(location: str, space: str, start: int, *, local: bool = True) -> Any:
    embedder = FakeEmbedder(local=local)
    ids = CountingIds(int(space.removeprefix("case")) * 100_000 + start + 1)
    return holdfast.open_async(location, embedder=embedder, clock=FixedClock(), new_ids=ids, space=space, work=False)


def run(tell: Tell, location: str, space: str, control: str, verb: str, at: int, dies: bool) -> None:
    """Run the verb with its connection cut at call `at` (0: only count calls); report the outcome; continue or die."""
    asyncio.run(_run(tell, location, space, Shim(Path(control)), verb, at, dies))


async def _run(tell: Tell, location: str, space: str, shim: Shim, verb: str, at: int, dies: bool) -> None:
    async def cutting(work: Awaitable[Any]) -> Any:
        if at:
            shim.fail("/", CUT, at)
        else:
            shim.count("/", Call.NETWORK)
        outcome, result = "done", None
        try:
            result = await work
        except HoldfastError as error:
            outcome = error.code
        finally:
            calls, _ = shim.disarm()
        tell(outcome=outcome, calls=calls)
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    opening = _opening(location, space, 1_000)
    memory = await (cutting(opening.open_memory()) if verb == "open" else opening.open_memory())
    if memory is None:
        memory = await _opening(location, space, 1_000).open_memory()
    # Open the connections beforehand, as is usual.
    await memory.add("warm", subject="ana", conversation="warm")
    await memory.list(subject="ana")
    if verb in VERBS:
        await cutting(VERBS[verb](memory))
    await memory.add(AFTERWARDS, subject="zoe")
    assert [hit.text for hit in await memory.search(AFTERWARDS, subject="zoe")] == [AFTERWARDS]
    await (cutting(memory.close()) if verb == "close" else memory.close())
