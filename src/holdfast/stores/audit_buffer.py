"""Buffer of audit rows (reads and refusals) until the next commit; bounded in size and in time."""

from __future__ import annotations

import threading
from collections import deque

from holdfast.domain.operations import Operation
from holdfast.errors import StoreBusy

AUDIT_SECONDS = 0.1
MAX_AUDITS = 20_000


class AuditBuffer:
    """Thread-safe buffer: many threads add, one thread drains."""

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
