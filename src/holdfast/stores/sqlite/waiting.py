"""Waiting for another process's lock: a bounded time, in short and even steps.

SQLite's own waiting backs off to a tenth of a second, which starves a process beside a busy one.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable

from holdfast.stores.sqlite.errors import is_busy

_FIRST_SECONDS = 0.0005
_SLOWEST_SECONDS = 0.02


def patiently(work: Callable[[], object], busy_seconds: float) -> None:
    """Do it as soon as the lock is free; the last busy error if it is not by then."""
    deadline = time.monotonic() + busy_seconds
    wait = _FIRST_SECONDS
    while True:
        try:
            work()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
            time.sleep(wait * random.uniform(0.5, 1.5))  # noqa: S311 - spreads the waiters, guards nothing
            wait = min(wait * 1.5, _SLOWEST_SECONDS)
        else:
            return


def begin_immediate(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Take the write lock."""
    patiently(lambda: connection.execute("BEGIN IMMEDIATE"), busy_seconds)
