"""A store on a server, shared by several processes: reader threads on snapshots, and writer lanes."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Callable
from datetime import datetime
from enum import Enum, auto
from typing import Any, TypeVar, cast

import psycopg

from holdfast.domain.access import Grant
from holdfast.domain.scope import Partition
from holdfast.errors import StoreClosed
from holdfast.loops import ThreadPool, run_in_thread
from holdfast.ports import Reader, Transaction
from holdfast.stores.postgres import nearest
from holdfast.stores.postgres.connection import CONNECT_SECONDS, Connector, RetryDeadline
from holdfast.stores.postgres.errors import FailureKind, classify_error, translate_error
from holdfast.stores.postgres.location import parse_location
from holdfast.stores.postgres.reader import PostgresReadScope
from holdfast.stores.postgres.session import PostgresSession
from holdfast.stores.postgres.transaction import PostgresTransaction
from holdfast.stores.postgres.writer import Writers
from holdfast.stores.sql.reader import SqlReader
from holdfast.stores.writer_queue import PendingResult, SqlStore

T = TypeVar("T")
log = logging.getLogger("holdfast.store")
BUSY_SECONDS = 15.0
CONNECTIONS = 8
SCRUB_SECONDS = 10.0
_SCRUB_STEP = 0.05
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_VACUUM = b"VACUUM (VERBOSE) texts, vectors, evidence, records, resources"
_REMAINING = re.compile(r"(\d+) (?:are )?dead but not yet removable|(\d+) dead row versions cannot be removed yet")


class PostgresStore(SqlStore):
    """Implements `ports.Store`."""

    _writer: Writers

    def __init__(self, location: str, *, busy_seconds: float = BUSY_SECONDS, connections: int = CONNECTIONS) -> None:
        place = parse_location(location, min(CONNECT_SECONDS, busy_seconds))
        super().__init__(place.shown)
        connector = Connector(place, busy_seconds)
        first = connector.prepare()
        self._connector = connector
        lanes = max(1, connections // 3)
        self._writer = Writers(connector, lanes)
        self._readers = _Readers(connector, max(1, connections - lanes), first)

    async def read(self, grant: Grant, work: Callable[[Reader], T]) -> T:
        return cast(T, await self._readers.submit(_Read(grant, work)))

    async def scrub(self) -> bool:
        """Vacuum the tables that a forget deletes from. False while an older snapshot still sees deleted rows.

        Also False if this user may not vacuum: then the server's own vacuum does it.
        """
        deadline = asyncio.get_running_loop().time() + SCRUB_SECONDS
        while (done := await self._readers.submit(_Vacuum())) is _VacuumResult.NOT_YET:
            if asyncio.get_running_loop().time() >= deadline:
                return False
            await asyncio.sleep(_SCRUB_STEP)
        return bool(done is _VacuumResult.WHOLLY)

    @property
    def exact_because(self) -> str | None:
        return None

    async def build_nearest(
        self, partition: Partition, embedder: str, at: datetime, go_on: Callable[[int, int], bool]
    ) -> Callable[[Transaction], None] | None:
        built = await run_in_thread(lambda: self._build_index(partition, embedder, go_on))
        if built is None:
            return None
        return lambda transaction: nearest.publish(cast(PostgresTransaction, transaction).session, built, at)

    def _build_index(
        self, partition: Partition, embedder: str, go_on: Callable[[int, int], bool]
    ) -> nearest.ServerIndexBuild | None:
        # On its own connection and thread: it may take very long.
        session = self._connector.session()
        try:
            return nearest.build(session, self._connector.session, partition, embedder, go_on)
        except psycopg.Error as error:
            raise translate_error(error, self._connector.place) from error
        finally:
            session.close()

    async def close(self) -> None:
        """Finish what was accepted, then close every connection."""
        self._readers.close()
        # Not in a thread of the pool: at interpreter exit there are none left.
        for ended in self._writer.close():
            await asyncio.wrap_future(ended)
        self._writer.join()


class _Readers:
    """Threads with a connection each, opened on first use."""

    def __init__(self, connector: Connector, threads: int, first: PostgresSession) -> None:
        self._connector = connector
        self._own = threading.local()
        self._lock = threading.Lock()
        self._opened = {first}
        self._unused: list[PostgresSession] = [first]
        self._closed = False
        self._threads = ThreadPool(threads, "holdfast-reader")

    def submit(self, errand: _ReaderTask) -> PendingResult:
        with self._lock:
            if self._closed:
                raise StoreClosed("this memory was closed; open it again")
            self._threads.submit(self._run_task, errand)
        return errand

    def _run_task(self, errand: _ReaderTask) -> None:
        """Run an errand; after a lost connection, retry it on another, since a read changes nothing."""
        patience = RetryDeadline(self._connector.busy_seconds)
        while not errand.is_abandoned:
            try:
                session = self._session(patience)
                try:
                    errand.run(session)
                except psycopg.Error as error:
                    if not self._should_retry(session, error, patience):
                        raise translate_error(error, self._connector.place) from error
            except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
                errand.fail(error)
            if errand.told:
                return

    def _should_retry(self, session: PostgresSession, error: psycopg.Error, patience: RetryDeadline) -> bool:
        kind = classify_error(error, session.connection)
        if kind is FailureKind.LOST:
            self._discard(session)
        return kind is not FailureKind.REFUSED and patience.wait()

    def _session(self, patience: RetryDeadline) -> PostgresSession:
        session: PostgresSession | None = getattr(self._own, "session", None)
        if session is None or session.is_lost:
            with self._lock:
                session = self._unused.pop() if self._unused else None
            session = self._own.session = session or self._connector.session(patience)
            with self._lock:
                self._opened.add(session)
        return session

    def _discard(self, session: PostgresSession) -> None:
        self._own.session = None
        with self._lock:
            self._opened.discard(session)
        session.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self._threads.shutdown(wait=True)
        for session in self._opened:
            session.close()


class _ReaderTask(PendingResult):
    """A task for a reader's connection, and its result."""

    __slots__ = ("told",)

    def __init__(self) -> None:
        super().__init__()
        self.told = False

    def run(self, session: PostgresSession) -> None:
        raise NotImplementedError

    def wake_caller(self) -> None:
        self.told = True
        PendingResult.wake_callers((self,))

    def fail(self, error: BaseException) -> None:
        # An error after the answer affects only the connection, not the caller.
        if not self.told:
            self.error = error
            self.wake_caller()


class _Read(_ReaderTask):
    __slots__ = ("_grant", "_work")

    def __init__(self, grant: Grant, work: Callable[[Reader], Any]) -> None:
        super().__init__()
        self._grant = grant
        self._work = work

    def run(self, session: PostgresSession) -> None:
        with session.transaction(_BEGIN):
            self.outcome = self._work(SqlReader(PostgresReadScope(session, self._grant)))
            # The caller need not wait for the end of the snapshot.
            self.wake_caller()
            session.execute("ROLLBACK")


class _VacuumResult(Enum):
    WHOLLY = auto()
    NOT_YET = auto()
    REFUSED = auto()


class _Vacuum(_ReaderTask):
    """Vacuums; the outcome says whether deleted rows are left in the tables."""

    __slots__ = ()

    def run(self, session: PostgresSession) -> None:
        notices: list[str] = []
        warnings: list[str] = []

        def note(diagnostic: psycopg.errors.Diagnostic) -> None:
            notices.append(f"{diagnostic.message_primary or ''} {diagnostic.message_detail or ''}")
            if diagnostic.severity_nonlocalized == "WARNING":
                warnings.append(notices[-1])

        session.connection.add_notice_handler(note)
        try:
            session.connection.execute(_VACUUM)
        finally:
            session.connection.remove_notice_handler(note)
        remaining = [int(found) for text in notices for match in _REMAINING.findall(text) for found in match if found]
        if warnings:
            log.warning("forgotten rows are left for the server to vacuum: %s", warnings[0].strip())
            self.outcome = _VacuumResult.REFUSED
        else:
            self.outcome = _VacuumResult.NOT_YET if any(remaining) else _VacuumResult.WHOLLY
        self.wake_caller()
