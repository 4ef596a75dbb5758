"""Audit rows of reads and refusals, waiting for the next commit: bounded in number and in time."""

from __future__ import annotations

import threading
from collections import deque

from holdfast.domain.operations import Operation
from holdfast.errors import StoreBusy

AUDIT_SECONDS = 0.1
MAX_AUDITS = 20_000


class AuditBuffer:
    """Filled by callers of many threads, emptied by one."""

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
        """Whether whoever empties it should look: it is the first, or there is no room for more."""
        with self._lock:
            self._waiting.append(operation)
            if self.full:
                self._room.clear()
            return self.full or len(self._waiting) == 1

    def waiting(self) -> list[Operation]:
        with self._lock:
            return list(self._waiting)

    def written(self, count: int) -> None:
        """The first of them are committed."""
        with self._lock:
            for _ in range(count):
                self._waiting.popleft()
            self._room.set()

    def wait_for_room(self) -> None:
        """What cannot be audited is not answered: so many rows wait only while the store cannot be written at all."""
        if not self._room.wait(self._wait_seconds):
            raise StoreBusy(f"{self._place} takes no audit rows; see what keeps it from being written, and try again")
