"""Event loops: run the same coroutines with or without one, and blocking facades over asynchronous classes.

On a loop, slow work moves to a thread and waiting suspends. A blocking call needs no loop: its own thread does the work
and blocks. A coroutine that uses only `run_in_thread`, and awaitables that respect `running_loop`, then completes
without ever suspending. What needs a loop runs on one in a thread, the `Portal`. Its `ThreadPool` accepts work
until the process ends, not only until its main thread ends.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import inspect
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Generic, NoReturn, ParamSpec, Protocol, Self, TypeVar

from holdfast.domain.call_errors import ExplainAttributes, call_again
from holdfast.errors import InvalidCall, StoreClosed

try:
    from concurrent.futures import ThreadPoolExecutor
except RuntimeError as error:  # it registers an exit handler, which fails once the main thread has ended
    raise StoreClosed(
        "the program is ending: open a memory before the main thread ends, or join the thread that needs one"
    ) from error

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A", bound="Closeable")
B = TypeVar("B")  # the class behind a facade, or one of its bases
_Task = tuple[Future[Any], Callable[[], Any]]
_ASIDE = min(32, (os.cpu_count() or 1) + 4)  # Python's own default
_NOTICE_SECONDS = 5.0  # only a blocked loop takes this long


@dataclass(frozen=True, slots=True)
class _PoolState:
    """The state shared by a pool and its threads. Threads hold no other reference, so the pool can be collected."""

    tasks: queue.SimpleQueue[_Task | None] = field(default_factory=queue.SimpleQueue)
    started: list[threading.Thread] = field(default_factory=list)
    # One item per unfinished task: a list serves as a counter that both sides can change.
    unended: list[None] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def stop_threads(self) -> None:
        for _ in self.started:
            self.tasks.put(None)

    def cancel_all(self) -> None:
        with contextlib.suppress(queue.Empty):
            while task := self.tasks.get_nowait():
                task[0].cancel()
                task[0].set_running_or_notify_cancel()

    def run_tasks(self) -> None:
        while (task := self.tasks.get()) is not None:
            future, work = task
            tell: Callable[[], None] = _do_nothing
            if future.set_running_or_notify_cancel():
                try:
                    result = work()
                except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
                    tell = functools.partial(future.set_exception, error)
                else:
                    tell = functools.partial(future.set_result, result)
                    del result
            # Before the result is set: the caller may submit its next task at once, and this thread is free for it.
            with self.lock:
                self.unended.pop()
            tell()
            # Release all references before waiting for the next task.
            del task, future, work, tell


def _do_nothing() -> None:
    """Do nothing: no caller waits for a cancelled task."""


class ThreadPool(ThreadPoolExecutor):
    """A thread pool that accepts work until it is shut down.

    Python's own refuses work once the main thread has ended, although other threads may run much longer and read what
    they have written. It subclasses `ThreadPoolExecutor` only because an event loop accepts nothing else.
    """

    def __init__(self, most: int, name: str) -> None:
        super().__init__(most, name)
        self._most, self._name = most, name
        self._bench = _PoolState()
        self._ended = False
        # A pool that is dropped without a shutdown leaves no threads behind.
        weakref.finalize(self, self._bench.stop_threads).atexit = False

    def submit(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        future: Future[R] = Future()
        bench = self._bench
        with bench.lock:
            if self._ended:
                raise RuntimeError("this thread pool was shut down")
            if len(bench.started) < min(self._most, len(bench.unended) + 1):
                self._start()
            bench.unended.append(None)
            bench.tasks.put((future, functools.partial(work, *args, **kwargs)))
        return future

    def _start(self) -> None:
        started = self._bench.started
        # A daemon: otherwise Python would join it at exit before any handler could shut the pool down.
        name = f"{self._name}_{len(started)}"
        thread = threading.Thread(target=self._bench.run_tasks, name=name, daemon=True)
        # During interpreter exit no thread can be started; the running ones then do the work.
        with contextlib.suppress(RuntimeError) if started else contextlib.nullcontext():
            thread.start()
            started.append(thread)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Refuse new work and end the threads once submitted work is done or cancelled."""
        with self._bench.lock:
            if not self._ended:
                self._ended = True
                if cancel_futures:
                    self._bench.cancel_all()
                self._bench.stop_threads()
        if wait:
            self.join()

    def join(self, seconds: float | None = None) -> None:
        """Wait for the threads of a pool that was shut down, at most `seconds`."""
        deadline = None if seconds is None else time.monotonic() + seconds
        for thread in self._bench.started:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))


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


class Portal:
    """An event loop in its own thread, on which other threads run coroutines."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._aside = ThreadPool(_ASIDE, "holdfast-aside")
        self._loop.set_default_executor(self._aside)
        self._thread = threading.Thread(target=self._loop.run_forever, name="holdfast-loop", daemon=True)
        self._thread.start()
        self._door = threading.Lock()
        self._closed = False
        self._process = os.getpid()

    @property
    def in_this_process(self) -> bool:
        """True if its thread runs in this process, not in the parent of a fork."""
        return os.getpid() == self._process

    @property
    def is_closed(self) -> bool:
        """True if it accepts no more work, which is always so in a forked child."""
        return self._closed or not self.in_this_process

    def run_here(self, work: Coroutine[Any, Any, R]) -> R:
        """Run work that needs no event loop in the calling thread, which is faster than a switch to the loop."""
        self._check_here(work)
        # If the calling thread runs a loop, the work would take that for ours.
        return run_sync(work) if running_loop() is None else self.run(work)

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        future = self._submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            self._await_notice()
            raise

    def _await_notice(self) -> None:
        """Wait until the loop has seen the cancellation: unstarted work must not start after the caller has left."""
        noticed = threading.Event()
        with contextlib.suppress(RuntimeError):  # a closed loop has nothing left to start
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
        if not self.in_this_process:
            # Threads do not survive a fork, so the call would never return.
            work.close()
            raise StoreClosed("this memory was opened before the process forked; open it again in this one")

    def close(self) -> None:
        """Refuse new work, wait for running work, and end the thread."""
        with self._door:
            if self._closed:
                return
            self._closed = True
        asyncio.run_coroutine_threadsafe(_wait_for_others(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        # No caller waits any more; a hung task must not delay the end of the program.
        self._aside.join(_NOTICE_SECONDS)


async def _wait_for_others() -> None:
    """Wait for all other tasks: callers of a loop that just stopped would wait forever."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*others, return_exceptions=True)


class Closeable(Protocol):
    """An asynchronous class that can have a facade. `_sync_safe`: its short calls need no event loop."""

    @property
    def _sync_safe(self) -> bool: ...

    async def close(self, *given: Any) -> Any: ...


class BlockingFacade(ExplainAttributes, Generic[A]):
    """The base class of blocking facades over an asynchronous object.

    `_opened_by` is the call that makes one, and `_opened_async_by` the call that makes the asynchronous object.
    """

    _opened_by: ClassVar[str]
    _opened_async_by: ClassVar[str]

    if not TYPE_CHECKING:  # uses that cannot work

        def __new__(cls, *args: Any, **kwargs: Any) -> Self:
            if len(args) != 1 or kwargs or not callable(args[0]):
                raise InvalidCall(cls.__name__, f"is opened by another call; write: memory = {cls._opened_by}")
            return super().__new__(cls)

        async def __aenter__(self) -> NoReturn:
            self._close_behind()
            name = type(self).__name__
            raise InvalidCall(
                name, f"is blocking; write: with {self._opened_by}, or open an Async{name}: {self._opened_async_by}"
            )

        async def __aexit__(self, *error: object) -> None:
            """Do nothing: it was never entered."""

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.startswith("_")]

    def __init__(self, opening: Callable[[], Coroutine[Any, Any, A]]) -> None:
        self._portal = Portal()
        try:
            self._behind: A = self._portal.run(opening())
        except BaseException:
            self._portal.close()
            raise
        self._run_short = self._portal.run_here if self._behind._sync_safe else self._portal.run
        _open[self._portal] = self._behind

    def _close_behind(self, *given: Any) -> Any:
        """Close the object behind; return its result, or None if it was already closed."""
        return _close(self._portal, *given)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_behind()


def blocking(
    method: Callable[Concatenate[B, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[BlockingFacade[Any], P], R]:
    """Make a blocking facade method from a method of the object behind."""

    make: Callable[..., Coroutine[Any, Any, R]] = inspect.unwrap(method)

    def call(self: BlockingFacade[Any], /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            work = make(self._behind, *args, **kwargs)
        except TypeError as error:
            work = call_again(make, (self._behind, *args), kwargs, error)
        return self._portal.run(work)

    functools.update_wrapper(call, make)
    return call


def inline(
    method: Callable[Concatenate[B, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[BlockingFacade[Any], P], R]:
    """Make a facade method that runs in the calling thread if the object behind needs no event loop."""

    make: Callable[..., Coroutine[Any, Any, R]] = inspect.unwrap(method)

    def call(self: BlockingFacade[Any], /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            work = make(self._behind, *args, **kwargs)
        except TypeError as error:
            work = call_again(make, (self._behind, *args), kwargs, error)
        return self._run_short(work)

    functools.update_wrapper(call, make)
    return call


# Open objects by portal. This keeps them alive when their facade is gone, so that they are closed at exit.
_open: dict[Portal, Closeable] = {}


def _close(portal: Portal, *given: Any) -> Any:
    """Close the object behind a portal. Idempotent: only the first call closes."""
    behind = _open.pop(portal, None)
    if behind is None or not portal.in_this_process:
        return None
    try:
        return portal.run(behind.close(*given))
    finally:
        portal.close()


def _close_all() -> None:
    """Close everything at exit, so that a program that never closes loses no audit row."""
    for portal in list(_open):
        _close(portal)


# Runs when all non-daemon threads have ended, also those that outlive the main thread. By then no thread can be started
# and Python's own pools refuse work; closing needs neither, and a `ThreadPool` still works.
atexit.register(_close_all)
