"""Threads that serve their callers in turn, so that none of them keeps the others out."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from holdfast.errors import DocumentsBusy
from holdfast.loops import ThreadPool

R = TypeVar("R")
_Task = tuple[Future[Any], Callable[[], Any]]


@dataclass(frozen=True, slots=True)
class Shares:
    """Limits of what runs at once and of what waits, for all callers and for each."""

    at_once: int
    at_once_each: int
    waiting: int
    waiting_each: int


class FairPool:
    """Runs the work of many callers in threads, round-robin; refuses what exceeds a caller's share.

    `close` is not needed: its threads end with the process.
    """

    def __init__(self, name: str, shares: Shares) -> None:
        self._shares = shares
        self._threads = ThreadPool(shares.at_once, name)
        self._lock = threading.Lock()
        # Callers with waiting tasks; the next one's turn comes first.
        self._waiting: dict[Hashable, deque[_Task]] = {}
        self._running: Counter[Hashable] = Counter()

    def submit(self, caller: Hashable, work: Callable[[], R]) -> Future[R]:
        """Queue the work, or raise `DocumentsBusy`. Cancelling the future of waiting work frees its place."""
        future: Future[R] = Future()
        task = (future, work)
        with self._lock:
            own = len(self._waiting.get(caller, ()))
            if own >= self._shares.waiting_each or self._count_waiting() >= self._shares.waiting:
                raise DocumentsBusy("too many documents are being read; trying again is safe")
            self._waiting.setdefault(caller, deque()).append(task)
        future.add_done_callback(lambda _: self._forget(caller, task))
        self._start_next()
        return future

    def _count_waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    def _forget(self, caller: Hashable, task: _Task) -> None:
        """Remove a task that was cancelled while it waited."""
        with self._lock:
            if task in (tasks := self._waiting.get(caller, deque())):
                tasks.remove(task)
                if not tasks:
                    del self._waiting[caller]

    def _start_next(self) -> None:
        while True:
            with self._lock:
                caller = self._next_caller()
                if caller is None:
                    return
                tasks = self._waiting.pop(caller)
                future, work = tasks.popleft()
                if tasks:
                    self._waiting[caller] = tasks  # behind all others
                self._running[caller] += 1
            self._threads.submit(self._run, caller, future, work)

    def _next_caller(self) -> Hashable | None:
        if self._running.total() >= self._shares.at_once:
            return None
        return next((each for each in self._waiting if self._running[each] < self._shares.at_once_each), None)

    def _run(self, caller: Hashable, future: Future[Any], work: Callable[[], Any]) -> None:
        tell: Callable[[], None] = lambda: None  # noqa: E731 - replaced below
        if future.set_running_or_notify_cancel():
            try:
                tell = partial(future.set_result, work())
            except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
                tell = partial(future.set_exception, error)
        with self._lock:
            self._running[caller] -= 1
            if not self._running[caller]:
                del self._running[caller]
        # The caller may submit again at once: its share is free by then.
        tell()
        self._start_next()
