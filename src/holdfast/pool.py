"""A thread pool that accepts work until the process ends, not only until its main thread ends."""

from __future__ import annotations

import contextlib
import functools
import queue
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from holdfast.errors import StoreClosed

try:
    from concurrent.futures import ThreadPoolExecutor
except RuntimeError as error:  # it registers an exit handler, which fails once the main thread has ended
    raise StoreClosed(
        "the program is ending: open a memory before the main thread ends, or join the thread that needs one"
    ) from error

P = ParamSpec("P")
R = TypeVar("R")
_Task = tuple[Future[Any], Callable[[], Any]]


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
