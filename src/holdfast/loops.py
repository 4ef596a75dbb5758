"""The same coroutines with an event loop or without one.

On a loop, whatever takes long is moved aside, and waiting suspends. A blocking call needs no loop: its thread waits for
nobody but itself, so there everything may just be done, and waiting blocks. A coroutine that keeps to `aside`, and to
awaitables that mind `running`, is then over in one step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


def running() -> asyncio.AbstractEventLoop | None:
    """The event loop of this thread, if one is running."""
    # Asked on every call; `get_running_loop` would raise and catch an error each time.
    return asyncio._get_running_loop()


async def aside(work: Callable[[], R]) -> R:
    """Do it where it holds up no event loop: in a thread if there is a loop, else here."""
    if running() is None:
        return work()
    return await asyncio.to_thread(work)


def over_in_one_step(work: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine that never suspends without a loop."""
    try:
        work.send(None)
    except StopIteration as done:
        result: R = done.value
        return result
    work.close()
    raise RuntimeError("this call waits for something that only an event loop can give")
