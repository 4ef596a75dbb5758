"""Runs the same coroutines with or without an event loop.

On a loop, slow work moves to a thread and waiting suspends. A blocking call needs no loop: its own thread does the work
and blocks. A coroutine that uses only `aside`, and awaitables that respect `running`, then completes without ever
suspending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return this thread's running event loop, or None."""
    # On the hot path of every call: `get_running_loop` would raise an exception each time.
    return asyncio._get_running_loop()


async def run_in_thread(work: Callable[[], R]) -> R:
    """Run blocking work without blocking a loop: in a thread if one is running, else inline."""
    if running_loop() is None:
        return work()
    return await asyncio.to_thread(work)


def run_sync(work: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine that never suspends, without an event loop."""
    try:
        work.send(None)
    except StopIteration as done:
        result: R = done.value
        return result
    work.close()
    raise RuntimeError("this call suspended, and there is no event loop to resume it")
