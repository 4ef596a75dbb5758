"""What waits for a thread that writes: requests, errands, and audit rows with a deadline."""

from __future__ import annotations

import queue
import time
from typing import Generic, TypeVar

from holdfast.stores.audits import AUDIT_SECONDS, AuditBuffer
from holdfast.stores.pending import Pending

Request = TypeVar("Request", bound=Pending)

# How often others are let in for nothing before a batch is closed.
_WAITS = 2


class Errand:
    """Something to do between two commits."""


class _Wake:
    """Makes the thread look at its deadline."""


class _Stop:
    """Makes the thread finish what is queued, and end."""


class Inbox(Generic[Request]):
    """Filled by callers of many threads, emptied by one. `most` is how many requests are taken at once. `settle` may be
    called by whoever has written audit rows.

    Those who were answered together are about to ask again, one after the other. Before a batch is closed that holds
    fewer than the last, they are let in: else the first would have a commit for itself, while all others wait for it.
    """

    def __init__(self, audits: AuditBuffer | None, most: int) -> None:
        self._last = 0
        self._audits = audits
        self._most = most
        self._due: float | None = None
        self._queue: queue.SimpleQueue[Request | Errand | _Wake | _Stop] = queue.SimpleQueue()

    @property
    def empty(self) -> bool:
        return self._queue.empty()

    def put(self, item: Request | Errand) -> None:
        self._queue.put(item)

    def wake(self) -> None:
        self._queue.put(_Wake())

    def stop(self) -> None:
        self._queue.put(_Stop())

    def gather(self) -> tuple[list[Request], list[Errand], bool]:
        """What is queued now, and whether to stop after it; waits for the first."""
        batch: list[Request] = []
        errands: list[Errand] = []
        item = self._next()
        while item is not None:
            if isinstance(item, _Stop):
                return batch, errands, True
            if isinstance(item, Errand):
                errands.append(item)
            elif isinstance(item, Pending) and not item.unwanted:
                batch.append(item)
            if len(batch) >= self._most or errands:
                break
            item = self._another(len(batch))
        self._last = len(batch) or self._last
        return batch, errands, False

    def _next(self) -> Request | Errand | _Wake | _Stop | None:
        due = self._due
        if self._audits and due is None:
            due = self._due = time.monotonic() + AUDIT_SECONDS
        timeout = None if due is None else max(0.0, due - time.monotonic())
        try:
            return self._queue.get(timeout=timeout)
        except queue.Empty:
            return None

    def _another(self, there: int) -> Request | Errand | _Wake | _Stop | None:
        for _ in range(_WAITS):
            if there >= self._last or not self._queue.empty():
                break
            time.sleep(0)  # no time passes: other threads get the interpreter's lock
        try:
            return self._queue.get_nowait()
        except queue.Empty:
            return None

    def audits_due(self, stopping: bool) -> bool:
        """Whether audit rows must be written now, with no request to ride along with."""
        if not self._audits:
            self._due = None
            return False
        due = self._due
        return stopping or self._audits.full or (due is not None and time.monotonic() >= due)

    def settle(self) -> None:
        """An attempt to write them was made: their time begins anew."""
        self._due = None
