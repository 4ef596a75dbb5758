"""Wait for another process's lock: a bounded time, in short and even steps.

SQLite's own wait backs off to a tenth of a second, which starves a process beside a busy one.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.stores.sqlite.errors import is_busy

_FIRST_SECONDS = 0.0005
_SLOWEST_SECONDS = 0.02


def retry_while_busy(work: Callable[[], object], busy_seconds: float) -> None:
    """Retry until the lock is free; raise the last busy error after `busy_seconds`."""
    deadline = time.monotonic() + busy_seconds
    wait = _FIRST_SECONDS
    while True:
        try:
            work()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
            time.sleep(wait * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not security
            wait = min(wait * 1.5, _SLOWEST_SECONDS)
        else:
            return


def begin_immediate(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Take the write lock."""
    retry_while_busy(lambda: connection.execute("BEGIN IMMEDIATE"), busy_seconds)


@contextmanager
def committing(connection: sqlite3.Connection, busy_seconds: float) -> Iterator[None]:
    """Run one write transaction: commit it, or roll it back after an error."""
    begin_immediate(connection, busy_seconds)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise


def roll_back(connection: sqlite3.Connection) -> None:
    """Roll back, unless SQLite has done so already."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")
