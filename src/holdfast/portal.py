"""Blocking faces of what is asynchronous: an event loop in a thread, and the same methods run on it."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar

from holdfast.errors import StoreClosed
from holdfast.loops import over_in_one_step, running
from holdfast.pool import Pool

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A", bound="Closing")
B = TypeVar("B")  # what is behind a face, or one of the classes that it is made of
_ASIDE = min(32, (os.cpu_count() or 1) + 4)  # as many as Python itself would have
_NOTICE_SECONDS = 5.0  # only a loop that is stuck takes so long


class Portal:
    """An event loop in a thread of its own, and a way in."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._aside = Pool(_ASIDE, "holdfast-aside")
        self._loop.set_default_executor(self._aside)
        self._thread = threading.Thread(target=self._loop.run_forever, name="holdfast-loop", daemon=True)
        self._thread.start()
        self._door = threading.Lock()
        self._closed = False
        self._process = os.getpid()

    @property
    def here(self) -> bool:
        """Whether its thread is in this process, and not in one that this was forked from."""
        return os.getpid() == self._process

    @property
    def closed(self) -> bool:
        """Whether nobody is let in any more; in a forked process nobody ever was."""
        return self._closed or not self.here

    def run_here(self, work: Coroutine[Any, Any, R]) -> R:
        """Run what needs no event loop in the calling thread; the way to the loop and back would cost more than it."""
        self._check_here(work)
        # Its own loop would be taken for ours.
        return over_in_one_step(work) if running() is None else self.run(work)

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        future = self._submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            self._await_notice()
            raise

    def _await_notice(self) -> None:
        """Until the loop knows of a cancellation: what was not begun must not be begun once the caller goes on."""
        noticed = threading.Event()
        with contextlib.suppress(RuntimeError):  # a loop that is closed has nothing left to begin
            self._loop.call_soon_threadsafe(noticed.set)
            noticed.wait(_NOTICE_SECONDS)

    def _submit(self, work: Coroutine[Any, Any, R]) -> Future[R]:
        self._check_here(work)
        with self._door:
            if not self._closed:
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        raise StoreClosed("this memory was closed; open it again")

    def _check_here(self, work: Coroutine[Any, Any, Any]) -> None:
        if not self.here:
            # Threads do not survive a fork: nobody would ever answer.
            work.close()
            raise StoreClosed("this memory was opened before the process forked; open it again in this one")

    def close(self) -> None:
        """Let nobody in any more, wait for those who are in, and end the thread."""
        with self._door:
            if self._closed:
                return
            self._closed = True
        asyncio.run_coroutine_threadsafe(_all_others(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        # Nobody waits for an answer any more; what is stuck there must not hold up the end of the program.
        self._aside.join(_NOTICE_SECONDS)


async def _all_others() -> None:
    """Whoever still waits for an answer gets one: a loop that just stops would keep them waiting for ever."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*others, return_exceptions=True)


class Closing(Protocol):
    """What can have a face. `_loopless`: its short calls need no event loop."""

    @property
    def _loopless(self) -> bool: ...

    async def close(self, *given: Any) -> Any: ...


class Face(Generic[A]):
    """Something asynchronous, for code that is not."""

    def __init__(self, opening: Callable[[], Coroutine[Any, Any, A]]) -> None:
        self._portal = Portal()
        try:
            self._behind: A = self._portal.run(opening())
        except BaseException:
            self._portal.close()
            raise
        self._run_short = self._portal.run_here if self._behind._loopless else self._portal.run
        _open[self._portal] = self._behind

    def _end(self, *given: Any) -> Any:
        """Close what is behind; what it answers, or None if it was closed before."""
        return _close(self._portal, *given)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()


def blocking(
    method: Callable[Concatenate[B, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Face[Any], P], R]:
    """A method of a face that is one of what is behind it."""

    def call(self: Face[Any], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._portal.run(method(self._behind, *args, **kwargs))

    functools.update_wrapper(call, method)
    return call


def at_once(
    method: Callable[Concatenate[B, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Face[Any], P], R]:
    """The same for what needs no event loop, if nothing that it calls needs one either."""

    def call(self: Face[Any], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._run_short(method(self._behind, *args, **kwargs))

    functools.update_wrapper(call, method)
    return call


# What is open, also if nobody holds its face any more.
_open: dict[Portal, Closing] = {}


def _close(portal: Portal, *given: Any) -> Any:
    """Whoever comes first closes; closing twice is closing once."""
    behind = _open.pop(portal, None)
    if behind is None or not portal.here:
        return None
    try:
        return portal.run(behind.close(*given))
    finally:
        portal.close()


def _close_all() -> None:
    """A program that ends without closing loses no audit row."""
    for portal in list(_open):
        _close(portal)


# When all threads that are no daemons have ended, also those that outlive the main thread. No thread can be started any
# more then, and Python's own pools take no work: closing needs neither, and a `Pool` does not mind.
atexit.register(_close_all)
