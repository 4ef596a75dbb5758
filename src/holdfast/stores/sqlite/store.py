"""A store in one SQLite file: WAL, full sync, one writer with group commit, many readers.

`:memory:` is the same store on one connection, where reads queue with the writes.
"""

from __future__ import annotations

import asyncio
import functools
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar, cast

from holdfast.domain.access import Grant
from holdfast.domain.results import Finding
from holdfast.domain.scope import Partition
from holdfast.errors import StoreClosed
from holdfast.loops import ThreadPool, run_in_thread
from holdfast.ports import NearestIndex, Reader, Transaction
from holdfast.stores.sql.grant_scope import GrantScope
from holdfast.stores.sql.reader import SqlReader
from holdfast.stores.sqlite.connection import MEMORY, connect, open_store
from holdfast.stores.sqlite.dialect import SQLITE
from holdfast.stores.sqlite.errors import translating
from holdfast.stores.sqlite.nearest import GraphBuild, GraphFolder
from holdfast.stores.sqlite.writer import SqliteTransaction, SqliteWriter
from holdfast.stores.writer_queue import PendingResult, SqlStore

T = TypeVar("T")
BUSY_SECONDS = 15.0
READERS = min(8, (os.cpu_count() or 1) + 2)
SCRUB_SECONDS = 1.0
_SCRUB_STEP = 0.01


class SqliteStore(SqlStore):
    """Implements `ports.Store`."""

    _writer: SqliteWriter

    def __init__(self, location: str, *, busy_seconds: float = BUSY_SECONDS) -> None:
        super().__init__(location)
        self._busy_seconds = busy_seconds
        self._writer = SqliteWriter(open_store(location, busy_seconds), location, busy_seconds)
        self._readers = _ReaderPool(location, busy_seconds) if location != MEMORY else None
        self._shelf = GraphFolder(location) if location != MEMORY else None

    async def read(self, grant: Grant, work: Callable[[Reader], T]) -> T:
        if self._readers is None:
            return await self.write(grant, work)
        return cast(T, await self._readers.run(functools.partial(_read, grant, work, self._shelf)))

    async def scrub(self) -> bool:
        """Blank indexes, then checkpoint and truncate the WAL: deleted bytes are overwritten in all of them."""
        if (shelf := self._shelf) is not None:
            blank = functools.partial(_scrub_indexes, shelf, self._busy_seconds)
            await asyncio.wrap_future(self._writer.call(blank))
        # In short attempts, so that a reader in the way does not block the writer.
        deadline = time.monotonic() + SCRUB_SECONDS
        while not await asyncio.wrap_future(self._writer.call(_truncate_log)):
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(_SCRUB_STEP)
        return True

    @property
    def exact_because(self) -> str | None:
        return "it is kept in memory" if self._shelf is None else self._shelf.unavailable_reason

    async def build_nearest(
        self, partition: Partition, embedder: str, at: datetime, go_on: Callable[[int, int], bool]
    ) -> Callable[[Transaction], None] | None:
        shelf = self._shelf
        if shelf is None or shelf.unavailable_reason:
            return None

        def build() -> GraphBuild | None:
            with translating(self.location):
                return shelf.build(self._connect, partition, embedder, go_on)

        built = await run_in_thread(build)
        if built is None:
            return None
        return lambda transaction: shelf.publish(cast(SqliteTransaction, transaction).connection, built, at)

    def _connect(self) -> sqlite3.Connection:
        return connect(self.location, self._busy_seconds)

    async def close(self) -> None:
        """Finish what was accepted, then close every connection."""
        if self._readers is not None:
            self._readers.close()
        # Not in a thread of the pool: at interpreter exit there are none left.
        await asyncio.wrap_future(self._writer.close())
        self._writer.join()


class _ReaderPool:
    """Threads with a connection each."""

    def __init__(self, location: str, busy_seconds: float) -> None:
        self._location = location
        self._busy_seconds = busy_seconds
        self._own = threading.local()
        self._lock = threading.Lock()
        self._opened: list[sqlite3.Connection] = []
        self._closed = False
        self._threads = ThreadPool(READERS, "holdfast-reader")

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        pending = PendingResult()
        with self._lock:
            if self._closed:
                raise StoreClosed("this memory was closed; open it again")
            self._threads.submit(self._run_task, pending, work)
        return cast(T, await pending)

    def _run_task(self, pending: PendingResult, work: Callable[[sqlite3.Connection], Any]) -> None:
        if pending.is_abandoned:
            return
        try:
            with translating(self._location):
                pending.outcome = work(self._connection())
        except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
            pending.error = error
        PendingResult.wake_callers((pending,))

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = connect(self._location, self._busy_seconds)
            connection.execute("PRAGMA query_only = ON")
            self._own.connection = connection
            with self._lock:
                self._opened.append(connection)
        return connection

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self._threads.shutdown(wait=True)
        for connection in self._opened:
            connection.close()


def _read(
    grant: Grant, work: Callable[[Reader], Any], shelf: GraphFolder | None, connection: sqlite3.Connection
) -> Any:
    connection.execute("BEGIN")
    try:
        return work(SqlReader(SqliteReadScope(connection, grant, shelf)))
    finally:
        if connection.in_transaction:  # SQLite may have rolled back already
            connection.execute("ROLLBACK")


def _scrub_indexes(shelf: GraphFolder, busy_seconds: float, connection: sqlite3.Connection) -> None:
    shelf.scrub(connection, busy_seconds)


def _truncate_log(connection: sqlite3.Connection) -> bool:
    """Return whether the WAL is empty now; a store in memory has none."""
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


class SqliteReadScope(GrantScope):
    """The scope of a reader. `shelf` holds the approximate indexes."""

    __slots__ = ("_connection", "_shelf")

    def __init__(self, connection: sqlite3.Connection, grant: Grant, shelf: GraphFolder | None) -> None:
        super().__init__(connection, grant, SQLITE)
        self._connection = connection
        self._shelf = shelf

    def nearest(self, partition: int, embedder: str) -> NearestIndex | None:
        return None if self._shelf is None else self._shelf.nearest(self._connection, partition, embedder)

    def check_nearest(self) -> tuple[dict[str, int], list[Finding]]:
        if self._shelf is None:
            return {}, []
        count, wrong = self._shelf.findings(self._connection)
        return {"nearest": count}, [Finding("approximate indexes", text) for text in wrong]
