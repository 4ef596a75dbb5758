"""Threads that work for as long as anybody may want them to: until the process ends."""

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
except RuntimeError as error:  # it has something done when the main thread ends, and that has ended
    raise StoreClosed(
        "the program is ending: open a memory before the main thread ends, or join the thread that needs one"
    ) from error

P = ParamSpec("P")
R = TypeVar("R")
_Task = tuple[Future[Any], Callable[[], Any]]


@dataclass(frozen=True, slots=True)
class _Bench:
    """What a pool and its threads share. The threads hold nothing else of it: it may go, and they with it."""

    tasks: queue.SimpleQueue[_Task | None] = field(default_factory=queue.SimpleQueue)
    started: list[threading.Thread] = field(default_factory=list)
    # A place for each task that was not ended, in a list since both sides change how many.
    unended: list[None] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def send_home(self) -> None:
        for _ in self.started:
            self.tasks.put(None)

    def cancel_all(self) -> None:
        with contextlib.suppress(queue.Empty):
            while task := self.tasks.get_nowait():
                task[0].cancel()
                task[0].set_running_or_notify_cancel()

    def work_off(self) -> None:
        while (task := self.tasks.get()) is not None:
            future, work = task
            tell: Callable[[], None] = _nothing
            if future.set_running_or_notify_cancel():
                try:
                    result = work()
                except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
                    tell = functools.partial(future.set_exception, error)
                else:
                    tell = functools.partial(future.set_result, result)
                    del result
            # First: whoever is told may have the next task, and this thread is free for it.
            with self.lock:
                self.unended.pop()
            tell()
            # Nothing of it is held while the next is waited for.
            del task, future, work, tell


def _nothing() -> None:
    """Nobody waits for what was cancelled."""


class Pool(ThreadPoolExecutor):
    """A pool that takes work until it is shut down.

    Python's own takes none from the moment the main thread has ended, though other threads may go on for long, and
    then want to read what they have written. It is one of those in name only, since an event loop takes no other.
    """

    def __init__(self, most: int, name: str) -> None:
        super().__init__(most, name)
        self._most, self._name = most, name
        self._bench = _Bench()
        self._ended = False
        # Whoever lets go of it without a word leaves no threads behind.
        weakref.finalize(self, self._bench.send_home).atexit = False

    def submit(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        future: Future[R] = Future()
        bench = self._bench
        with bench.lock:
            if self._ended:
                raise RuntimeError("these threads were shut down")
            if len(bench.started) < min(self._most, len(bench.unended) + 1):
                self._start()
            bench.unended.append(None)
            bench.tasks.put((future, functools.partial(work, *args, **kwargs)))
        return future

    def _start(self) -> None:
        started = self._bench.started
        # A daemon: Python would else wait for it before it lets anybody say that it is not needed any more.
        name = f"{self._name}_{len(started)}"
        thread = threading.Thread(target=self._bench.work_off, name=name, daemon=True)
        # At the very end no thread can be started: then those who are there do it.
        with contextlib.suppress(RuntimeError) if started else contextlib.nullcontext():
            thread.start()
            started.append(thread)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """What was submitted is still done, unless it is cancelled."""
        with self._bench.lock:
            if not self._ended:
                self._ended = True
                if cancel_futures:
                    self._bench.cancel_all()
                self._bench.send_home()
        if wait:
            self.join()

    def join(self, seconds: float | None = None) -> None:
        """Wait for threads that were sent home, so long at most."""
        deadline = None if seconds is None else time.monotonic() + seconds
        for thread in self._bench.started:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
