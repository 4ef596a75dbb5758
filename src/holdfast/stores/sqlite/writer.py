"""The one writer: a thread that takes whatever is queued into one commit, a savepoint per request.

A request is answered only after the commit that holds it reached the disk. A request that fails is rolled back to its
savepoint and spoils nobody else's. Audit rows of reads and refusals ride along with the next commit, or are committed
on their own within `AUDIT_SECONDS`.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from holdfast.domain.access import Grant
from holdfast.domain.operations import Operation
from holdfast.errors import StoreClosed
from holdfast.stores.sqlite.errors import translated
from holdfast.stores.sqlite.transaction import SqliteTransaction, record_operation
from holdfast.stores.sqlite.waiting import begin_immediate

AUDIT_SECONDS = 0.1
MAX_BATCH = 1_000
MAX_AUDITS = 20_000


@dataclass(slots=True)
class _Request:
    grant: Grant
    work: Callable[[SqliteTransaction], Any]
    future: Future[Any] = field(default_factory=Future)
    outcome: Any = None
    error: BaseException | None = None


class _Wake:
    """Makes the writer look at its deadline."""


class _Stop:
    """Makes the writer finish what is queued, and end."""


class Writer:
    """Owns the writing connection. Only its thread touches it."""

    def __init__(self, connection: sqlite3.Connection, location: str, busy_seconds: float) -> None:
        self._db = connection
        self._location = location
        self._busy_seconds = busy_seconds
        self._queue: queue.SimpleQueue[_Request | _Wake | _Stop] = queue.SimpleQueue()
        self._audits: deque[Operation] = deque()
        self._audit_due: float | None = None
        self._room = threading.Event()
        self._room.set()
        self._closing = threading.Lock()
        self._closed = False
        self._ended: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="holdfast-writer", daemon=True)
        self._thread.start()

    def submit(self, grant: Grant, work: Callable[[SqliteTransaction], Any]) -> Future[Any]:
        request = _Request(grant, work)
        self._put(request)
        return request.future

    def call(self, work: Callable[[sqlite3.Connection], Any]) -> Future[Any]:
        """Run something on the connection between two commits."""
        future: Future[Any] = Future()
        self._put(_Errand(work, future))
        return future

    def audit(self, operation: Operation) -> bool:
        """Queue an audit row. False if so many wait already that the caller should wait for `room`."""
        self._audits.append(operation)
        if len(self._audits) == 1:
            self._put(_Wake())
        if len(self._audits) >= MAX_AUDITS:
            self._room.clear()
            self._put(_Wake())
            return False
        return True

    def wait_for_room(self) -> None:
        self._room.wait(self._busy_seconds)

    def close(self) -> Future[None]:
        """Finish what was queued, then end; done when it has."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._queue.put(_Stop())
        return self._ended

    def _put(self, item: _Request | _Wake) -> None:
        with self._closing:
            if self._closed:
                raise StoreClosed("this memory was closed; open it again")
            self._queue.put(item)

    # --- the thread ---

    def _run(self) -> None:
        stopping = False
        while not stopping:
            batch, errands, stopping = self._gather()
            if batch or self._audits_due(stopping):
                self._commit(batch)
            for errand in errands:
                errand.run(self._db, self._location)
        self._db.close()
        self._ended.set_result(None)

    def _gather(self) -> tuple[list[_Request], list[_Errand], bool]:
        """What is queued now; waits for the first."""
        batch: list[_Request] = []
        errands: list[_Errand] = []
        item = self._next()
        while item is not None:
            if isinstance(item, _Stop):
                return batch, errands, True
            if isinstance(item, _Errand):
                errands.append(item)
            elif isinstance(item, _Request) and item.future.set_running_or_notify_cancel():
                batch.append(item)
            if len(batch) >= MAX_BATCH or errands:
                break
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                break
        return batch, errands, False

    def _next(self) -> _Request | _Wake | _Stop | None:
        if self._audits and self._audit_due is None:
            self._audit_due = time.monotonic() + AUDIT_SECONDS
        timeout = None if self._audit_due is None else max(0.0, self._audit_due - time.monotonic())
        try:
            return self._queue.get(timeout=timeout)
        except queue.Empty:
            return None

    def _audits_due(self, stopping: bool) -> bool:
        if not self._audits:
            return False
        full = len(self._audits) >= MAX_AUDITS
        return stopping or full or (self._audit_due is not None and time.monotonic() >= self._audit_due)

    def _commit(self, batch: Sequence[_Request]) -> None:
        try:
            complete = self._attempt(batch)
        except sqlite3.Error as error:
            # Nothing of it is in the file. Alone, each learns whether it was the cause.
            if len(batch) > 1:
                for request in batch:
                    self._commit([request])
            else:
                self._fail(batch, translated(error, self._location))
            return
        if not complete:
            for request in batch:
                self._commit([request])
            return
        for request in batch:
            if request.error is None:
                request.future.set_result(request.outcome)
            else:
                request.future.set_exception(request.error)

    def _attempt(self, batch: Sequence[_Request]) -> bool:
        """One transaction. False if SQLite gave up the whole of it because of one request among several."""
        audits = list(self._audits)
        try:
            begin_immediate(self._db, self._busy_seconds)
            for request in batch:
                self._serve(request)
                if not self._db.in_transaction:
                    return len(batch) == 1
            for operation in audits:
                record_operation(self._db, operation)
            self._db.execute("COMMIT")
        except sqlite3.Error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            self._audit_due = None
            raise
        self._forget_audits(len(audits))
        return True

    def _serve(self, request: _Request) -> None:
        request.error = None
        self._db.execute("SAVEPOINT request")
        try:
            request.outcome = request.work(SqliteTransaction(self._db, request.grant))
        except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
            request.error = translated(error, self._location) if isinstance(error, sqlite3.Error) else error
            if isinstance(error, sqlite3.Error):
                request.error.__cause__ = error
            # A full disk or an I/O error ends the whole transaction by itself.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK TO request")
        if self._db.in_transaction:
            self._db.execute("RELEASE request")

    def _forget_audits(self, count: int) -> None:
        for _ in range(count):
            self._audits.popleft()
        self._audit_due = None
        self._room.set()

    def _fail(self, batch: Sequence[_Request], error: BaseException) -> None:
        for request in batch:
            request.future.set_exception(error)


class _Errand(_Wake):
    """Something to run on the connection, outside any transaction."""

    def __init__(self, work: Callable[[sqlite3.Connection], Any], future: Future[Any]) -> None:
        self._work = work
        self._future = future

    def run(self, connection: sqlite3.Connection, location: str) -> None:
        if not self._future.set_running_or_notify_cancel():
            return
        try:
            self._future.set_result(self._work(connection))
        except sqlite3.Error as error:
            self._future.set_exception(translated(error, location))
        except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
            self._future.set_exception(error)
