"""The queue of a writer thread: requests, errands, and audit rows with a deadline."""

from __future__ import annotations

import queue
import time
from typing import Generic, TypeVar

from holdfast.stores.audit_buffer import AUDIT_SECONDS, AuditBuffer
from holdfast.stores.pending_result import PendingResult

Request = TypeVar("Request", bound=PendingResult)

# Number of times to yield to other threads before a batch is closed.
_WAITS = 2


class WriterTask:
    """A task to run between two commits."""


class _Wake:
    """Makes the thread check its deadline."""


class _Stop:
    """Makes the thread finish the queue, and end."""


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
        self._queue: queue.SimpleQueue[Request | WriterTask | _Wake | _Stop] = queue.SimpleQueue()

    @property
    def empty(self) -> bool:
        return self._queue.empty()

    def put(self, item: Request | WriterTask) -> None:
        self._queue.put(item)

    def wake(self) -> None:
        self._queue.put(_Wake())

    def stop(self) -> None:
        self._queue.put(_Stop())

    def gather(self) -> tuple[list[Request], list[WriterTask], bool]:
        """Wait for the first item; return the queued requests and errands, and whether to stop after them."""
        batch: list[Request] = []
        errands: list[WriterTask] = []
        item = self._next()
        while item is not None:
            if isinstance(item, _Stop):
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

    def _next(self) -> Request | WriterTask | _Wake | _Stop | None:
        due = self._due
        if self._audits and due is None:
            due = self._due = time.monotonic() + AUDIT_SECONDS
        timeout = None if due is None else max(0.0, due - time.monotonic())
        try:
            return self._queue.get(timeout=timeout)
        except queue.Empty:
            return None

    def _next_nowait(self, batched: int) -> Request | WriterTask | _Wake | _Stop | None:
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
