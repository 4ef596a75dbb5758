"""The queue of a writer thread: requests whose callers wait, errands, and audit rows with a deadline.

A commit wakes each event loop once, however many callers wait there. `SqlStore` is the part of a store that hands its
writes and audit rows to the writer.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable
from enum import Enum, auto
from typing import Any, Generic, TypeVar, cast

from holdfast.domain.access import Grant, storewide_grant
from holdfast.domain.operations import Operation
from holdfast.errors import StoreBusy, StoreClosed
from holdfast.loops import run_in_thread, running_loop
from holdfast.ports import Transaction

T = TypeVar("T")

AUDIT_SECONDS = 0.1
MAX_AUDITS = 20_000
# Number of times to yield to other threads before a batch is closed.
_WAITS = 2


class PendingResult:
    """A future result. Created and awaited in the caller's thread, completed in another.

    A coroutine waits on its event loop, a thread without one on a lock.
    """

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


class AuditBuffer:
    """Audit rows of reads and refusals until the next commit, bounded in size and in time.

    Many threads add, one thread drains.
    """

    def __init__(self, place: str, wait_seconds: float) -> None:
        self._place = place
        self._wait_seconds = wait_seconds
        self._waiting: deque[Operation] = deque()
        self._lock = threading.Lock()
        self._room = threading.Event()
        self._room.set()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def full(self) -> bool:
        return len(self._waiting) >= MAX_AUDITS

    def add(self, operation: Operation) -> bool:
        """Append a row; return True if the draining thread must wake: first row, or buffer full."""
        with self._lock:
            self._waiting.append(operation)
            if self.full:
                self._room.clear()
            return self.full or len(self._waiting) == 1

    def waiting(self) -> list[Operation]:
        with self._lock:
            return list(self._waiting)

    def drop_committed(self, count: int) -> None:
        """Drop the first `count` rows, which are now committed."""
        with self._lock:
            for _ in range(count):
                self._waiting.popleft()
            self._room.set()

    def wait_for_room(self) -> None:
        """Wait for room, since a call that cannot be audited gets no answer. `StoreBusy` if nothing can be written."""
        if not self._room.wait(self._wait_seconds):
            raise StoreBusy(f"{self._place} cannot record audit rows; find out why it cannot be written, and try again")


Request = TypeVar("Request", bound=PendingResult)


class WriterTask:
    """A task to run between two commits."""


class _Signal(Enum):
    WAKE = auto()  # the thread checks its deadline
    STOP = auto()  # the thread finishes the queue, and ends


class WriterQueue(Generic[Request]):
    """A queue that many threads fill and one drains, at most `most` requests at a time.

    Callers of one batch usually submit again, one after the other. A batch that is smaller than the last waits briefly
    for them, so they share the next commit: else the first would get its own, while all others wait for it.
    """

    def __init__(self, audits: AuditBuffer | None, most: int) -> None:
        self._last = 0
        self._audits = audits
        self._most = most
        self._due: float | None = None
        self._queue: queue.SimpleQueue[Request | WriterTask | _Signal] = queue.SimpleQueue()

    @property
    def empty(self) -> bool:
        return self._queue.empty()

    def put(self, item: Request | WriterTask) -> None:
        self._queue.put(item)

    def wake(self) -> None:
        self._queue.put(_Signal.WAKE)

    def stop(self) -> None:
        self._queue.put(_Signal.STOP)

    def gather(self) -> tuple[list[Request], list[WriterTask], bool]:
        """Wait for the first item; return the queued requests and errands, and whether to stop after them."""
        batch: list[Request] = []
        errands: list[WriterTask] = []
        item = self._next()
        while item is not None:
            if item is _Signal.STOP:
                return batch, errands, True
            if isinstance(item, WriterTask):
                errands.append(item)
            elif isinstance(item, PendingResult) and not item.is_abandoned:
                batch.append(item)
            if len(batch) >= self._most or errands:
                break
            item = self._next_nowait(len(batch))
        self._last = len(batch) or self._last
        return batch, errands, False

    def _next(self) -> Request | WriterTask | _Signal | None:
        due = self._due
        if self._audits and due is None:
            due = self._due = time.monotonic() + AUDIT_SECONDS
        timeout = None if due is None else max(0.0, due - time.monotonic())
        try:
            return self._queue.get(timeout=timeout)
        except queue.Empty:
            return None

    def _next_nowait(self, batched: int) -> Request | WriterTask | _Signal | None:
        for _ in range(_WAITS):
            if batched >= self._last or not self._queue.empty():
                break
            time.sleep(0)  # does not wait, but lets other threads take the GIL
        try:
            return self._queue.get_nowait()
        except queue.Empty:
            return None

    def audits_due(self, stopping: bool) -> bool:
        """Return whether audit rows must be written now, with no request to share the commit."""
        if not self._audits:
            self._due = None
            return False
        due = self._due
        return stopping or self._audits.full or (due is not None and time.monotonic() >= due)

    def reset_audit_deadline(self) -> None:
        """Reset the deadline of audit rows, after an attempt to write them."""
        self._due = None


class AuditingWriter(ABC):
    """A writer that takes requests of a store, and audit rows of its reads, until it is closed."""

    def __init__(self, place: str, wait_seconds: float) -> None:
        self._audits = AuditBuffer(place, wait_seconds)
        self._lock = threading.Lock()
        self._closed = False

    @abstractmethod
    def submit(self, grant: Grant, work: Callable[[Any], Any]) -> PendingResult:
        """Queue a write, or do it at once."""

    @abstractmethod
    def _audit_queue(self) -> WriterQueue[Any]:
        """Return the queue whose thread writes the audit rows."""

    def audit(self, operation: Operation) -> bool:
        """Queue an audit row. Return False if the buffer is full and the caller should wait for room."""
        with self._lock:
            self._check_open()
            if self._audits.add(operation):
                self._audit_queue().wake()
        return not self._audits.full

    @property
    def owes_audits(self) -> bool:
        """True if audit rows wait for a commit. They stay here until then, so none is in flight elsewhere."""
        with self._lock:
            self._check_open()
        return bool(self._audits)

    def wait_for_room(self) -> None:
        self._audits.wait_for_room()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("this memory was closed; open it again")


class SqlStore:
    """Implements what is shared of `ports.Store`.

    Reading, writing and auditing suspend on an event loop, and block without one.
    """

    sync_safe = True
    _writer: AuditingWriter

    def __init__(self, location: str) -> None:
        self.location = location

    async def write(self, grant: Grant, work: Callable[[Transaction], T]) -> T:
        return cast(T, await self._writer.submit(grant, work))

    async def audit(self, operation: Operation) -> None:
        if not self._writer.audit(operation):
            await run_in_thread(self._writer.wait_for_room)

    async def wait_for_audits(self) -> None:
        if self._writer.owes_audits:
            await self._writer.submit(storewide_grant(), lambda transaction: None)
