"""A caller's wait for the writer: a coroutine waits on its event loop, a thread without one on a lock.

A commit wakes each event loop once, however many callers wait there.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Iterable
from typing import Any

from holdfast.loops import running_loop


class PendingResult:
    """A future result. Created and awaited in the caller's thread, completed in another."""

    __slots__ = ("_answered", "_future", "_given_up", "_loop", "error", "outcome")

    def __init__(self) -> None:
        self.outcome: Any = None
        self.error: BaseException | None = None
        self._given_up = False
        self._loop = running_loop()
        self._future: asyncio.Future[None] | None = None
        self._answered: threading.Lock | None = None
        if self._loop is None:
            self._answered = threading.Lock()
            self._answered.acquire()
        else:
            self._future = self._loop.create_future()

    def __await__(self) -> Generator[Any, None, Any]:
        if self._future is not None:
            yield from self._future
        elif self._answered is not None:
            self._wait(self._answered)
        if self.error is None:
            return self.outcome
        error, self.error = self.error, None
        try:
            raise error
        finally:
            del error  # else error and frame would refer to each other

    def _wait(self, answered: threading.Lock) -> None:
        try:
            answered.acquire()
        except BaseException:
            # Ctrl-C: the caller has given up.
            self._given_up = True
            raise

    @property
    def is_blocking(self) -> bool:
        """True if a thread waits, which could do the work itself."""
        return self._loop is None

    @property
    def is_abandoned(self) -> bool:
        """True if the caller has given up: then the work need not begin."""
        return self._given_up or (self._future is not None and self._future.cancelled())

    @staticmethod
    def wake_callers(answered: Iterable[PendingResult]) -> None:
        """Wake the callers of these requests, whose outcome or error is set."""
        loops: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
        for pending in answered:
            if pending._loop is not None and pending._future is not None:
                loops.setdefault(pending._loop, []).append(pending._future)
            elif pending._answered is not None:
                pending._answered.release()
        for loop, futures in loops.items():
            try:
                loop.call_soon_threadsafe(_resolve, futures)
            except RuntimeError:
                # No caller waits on a closed loop.
                if not loop.is_closed():
                    raise


def _resolve(futures: Iterable[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)
