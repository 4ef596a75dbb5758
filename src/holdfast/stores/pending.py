"""How a caller waits for the writer: a coroutine on its event loop, a thread without one on a lock.

All that a commit answers on one loop is told in one wake-up of it, however many wait there.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Iterable
from typing import Any

from holdfast.loops import running


class Pending:
    """An answer that is still to come. It is made and awaited in the thread that wants it, and given in another."""

    __slots__ = ("_answered", "_future", "_given_up", "_loop", "error", "outcome")

    def __init__(self) -> None:
        self.outcome: Any = None
        self.error: BaseException | None = None
        self._given_up = False
        self._loop = running()
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
            del error  # else it would hold this frame, and this frame it

    def _wait(self, answered: threading.Lock) -> None:
        try:
            answered.acquire()
        except BaseException:
            # Whoever pressed Ctrl-C does not want it any more.
            self._given_up = True
            raise

    @property
    def blocking(self) -> bool:
        """Whether a thread waits that could as well do it itself."""
        return self._loop is None

    @property
    def unwanted(self) -> bool:
        """Whether nobody waits any more: then it need not be begun."""
        return self._given_up or (self._future is not None and self._future.cancelled())

    @staticmethod
    def tell(answered: Iterable[Pending]) -> None:
        """Let everybody go on whose outcome or error is there now."""
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
                # A loop that was closed has nobody left who waits.
                if not loop.is_closed():
                    raise


def _resolve(futures: Iterable[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)
