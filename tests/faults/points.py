"""Actions at a failpoint: die, fail, wait or count. Arm them in the process that is to perform them."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable

from holdfast import failpoints


class Tally:
    """Counts how often each point is reached."""

    def __init__(self) -> None:
        self.reached: Counter[str] = Counter()
        self._lock = threading.Lock()
        failpoints.arm(self._act)

    def _act(self, point: str) -> None:
        with self._lock:
            self.reached[point] += 1


def at(point: str, passage: int, act: Callable[[], None]) -> None:
    """Act once: at the n-th passage of the point from now on, counted from one."""
    assert point in failpoints.POINTS, f"there is no failpoint {point}"
    lock, seen = threading.Lock(), 0

    def reached(name: str) -> None:
        nonlocal seen
        if name == point:
            with lock:
                seen += 1
                due = seen == passage
            if due:
                act()

    failpoints.arm(reached)


def die_at(point: str, passage: int = 1) -> None:
    at(point, passage, lambda: os.kill(os.getpid(), signal.SIGKILL))


def fail_at(point: str, error: BaseException, passage: int = 1) -> None:
    def fail() -> None:
        raise error

    at(point, passage, fail)
