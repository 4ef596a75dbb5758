"""The one writer: a thread with group commit.

A request is answered only after its commit has reached the disk. A request that fails is rolled back alone and does not
affect others: once one of several has failed, all start over, with a savepoint each. Audit rows of reads and refusals
share the next commit, or are committed on their own within `AUDIT_SECONDS`.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, cast

from holdfast.domain.access import Grant
from holdfast.domain.operations import Operation
from holdfast.failpoints import reach
from holdfast.stores.sql.operations import record_operation
from holdfast.stores.sql.transaction import SqlTransaction
from holdfast.stores.sql.write_scope import RowIdCache, WriteScope
from holdfast.stores.sqlite.busy_retry import begin_immediate, roll_back
from holdfast.stores.sqlite.dialect import SQLITE
from holdfast.stores.sqlite.errors import is_busy, translate_error
from holdfast.stores.writer_queue import AuditingWriter, PendingResult, WriterQueue, WriterTask

MAX_BATCH = 1_000
log = logging.getLogger("holdfast.store")

# Errors that the row itself causes: another attempt would fail the same way.
_UNWRITABLE = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.DataError, ValueError)


class SqliteTransaction(SqlTransaction):
    """Implements `ports.Transaction` on the writing connection."""

    def __init__(self, connection: sqlite3.Connection, grant: Grant, known: RowIdCache | None = None) -> None:
        self.scope = WriteScope(connection, grant, SQLITE, known)
        self.connection = connection


class _WriterRequest(PendingResult):
    __slots__ = ("grant", "work")

    def __init__(self, grant: Grant, work: Callable[[SqliteTransaction], Any]) -> None:
        super().__init__()
        self.grant = grant
        self.work = work


class SqliteWriter(AuditingWriter):
    """Owns the writing connection. Only the holder of `_turn` may use it: its thread, or a lone caller."""

    def __init__(self, connection: sqlite3.Connection, location: str, busy_seconds: float) -> None:
        super().__init__(location, busy_seconds)
        self._db = connection
        self._known = RowIdCache()
        self._location = location
        self._busy_seconds = busy_seconds
        self._inbox: WriterQueue[_WriterRequest] = WriterQueue(self._audits, MAX_BATCH)
        self._turn = threading.Lock()
        self._shared = False  # whether the last commit was of several requests
        self._spoiled = False  # whether one of them failed
        self._ended: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="holdfast-writer", daemon=True)
        self._thread.start()

    def submit(self, grant: Grant, work: Callable[[SqliteTransaction], Any]) -> PendingResult:
        request = _WriterRequest(grant, work)
        if request.is_blocking and self._is_free():
            self._commit_inline(request)
        else:
            self._put(request)
        return request

    def _is_free(self) -> bool:
        return not self._shared and not self._turn.locked() and self._inbox.empty

    def _commit_inline(self, request: _WriterRequest) -> None:
        """Commit in the calling thread, which would only wait: a switch to the writer thread costs a tenth of an add.

        When several callers write at once, the thread groups them into one commit, which saves more.
        """
        # Not `acquire`: an interrupt could come before the block that releases.
        with self._turn:
            self._check_open()
            self._commit([request])

    def call(self, work: Callable[[sqlite3.Connection], Any]) -> Future[Any]:
        """Run a task on the connection between two commits."""
        future: Future[Any] = Future()
        self._put(_ConnectionTask(work, future))
        return future

    def _audit_queue(self) -> WriterQueue[_WriterRequest]:
        return self._inbox

    def close(self) -> Future[None]:
        """Finish the queue, then end; the future is done when it has ended."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._inbox.stop()
        return self._ended

    def join(self) -> None:
        """Wait for the thread, which has nothing left to do once `close` is done."""
        self._thread.join()

    def _put(self, item: _WriterRequest | _ConnectionTask) -> None:
        with self._lock:
            self._check_open()
            self._inbox.put(item)

    # --- the thread ---

    def _run(self) -> None:
        stopping = False
        while not stopping:
            batch, errands, stopping = self._inbox.gather()
            with self._turn:
                # Callers may have given up while others had the turn.
                active = [request for request in batch if not request.is_abandoned]
                if active or self._inbox.audits_due(stopping):
                    self._commit(active)
                for errand in errands:
                    cast(_ConnectionTask, errand).run(self._db, self._location)
        with self._turn:
            if self._audits:
                log.error("%d audit rows could not be written before closing", len(self._audits))
            self._db.close()
        self._ended.set_result(None)

    def _commit(self, batch: Sequence[_WriterRequest]) -> None:
        try:
            complete = self._attempt(batch)
        except BaseException as error:  # noqa: BLE001 - handed to the callers, whatever it is
            # Nothing of it is in the file. A lock timeout affects the whole batch; one request may be the cause of any
            # other error, so each is retried alone.
            if len(batch) < 2 or (isinstance(error, sqlite3.Error) and is_busy(error)):
                self._fail(batch, error)
                return
            complete = False
        if not complete:
            for request in batch:
                self._commit([request])
            return
        PendingResult.wake_callers(batch)

    def _attempt(self, batch: Sequence[_WriterRequest]) -> bool:
        """Run one transaction. Return False if SQLite aborted all of it because of one request among several."""
        audits = self._audits.waiting() if self._audits else []
        self._shared = len(batch) > 1
        # Ctrl-C may have left a transaction open while a caller was rolling it back.
        self._roll_back()
        try:
            begin_immediate(self._db, self._busy_seconds)
            if len(batch) == 1:
                self._serve_alone(batch[0])
            elif not self._serve_together(batch):
                return False
            if not self._db.in_transaction:
                if not audits:
                    return True
                begin_immediate(self._db, self._busy_seconds)
            self._record(audits)
            reach("commit.before")
            self._db.execute("COMMIT")
            reach("commit.after")
        except BaseException:
            self._inbox.reset_audit_deadline()
            self._roll_back()
            raise
        self._known.commit()
        if audits:
            self._audits.drop_committed(len(audits))
        self._inbox.reset_audit_deadline()
        return True

    def _roll_back(self) -> None:
        """Roll back the transaction, if one is open, with the row numbers cached in it."""
        self._known.rollback()
        roll_back(self._db)

    def _record(self, audits: Sequence[Operation]) -> None:
        if not audits:
            return
        reach("audit.before")
        for operation in audits:
            try:
                # A cancelled call may have been carried out nevertheless; then its own row stands.
                home = self._known.get(operation.scope.partition)
                record_operation(self._db, SQLITE, operation, unless_there=True, partition=home)
            except _UNWRITABLE:
                # It must not block the commit of other writes.
                log.exception("the audit row %s cannot be written", operation.id)
        reach("audit.after")

    def _serve_alone(self, request: _WriterRequest) -> None:
        """Run a request without a savepoint: if it fails, the transaction ends, since it holds nothing else."""
        request.error = None
        try:
            request.outcome = request.work(SqliteTransaction(self._db, request.grant, self._known))
        except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
            request.error = _translate(error, self._location)
            self._roll_back()

    def _serve_together(self, batch: Sequence[_WriterRequest]) -> bool:
        """Return False if SQLite aborted the whole transaction; then `_serve` has dropped its cached row numbers."""
        # After one failure, others are likely: several compare-and-set the same row.
        if not self._spoiled and self._serve_at_once(batch):
            return True
        if not self._db.in_transaction:
            begin_immediate(self._db, self._busy_seconds)
        for request in batch:
            self._serve(request)
            if not self._db.in_transaction:
                return False
        self._spoiled = any(request.error is not None for request in batch)
        return True

    def _serve_at_once(self, batch: Sequence[_WriterRequest]) -> bool:
        """Run all of them or none: failures are rare, and savepoints cost a twentieth of an add."""
        try:
            for request in batch:
                request.error = None
                request.outcome = request.work(SqliteTransaction(self._db, request.grant, self._known))
        except BaseException:  # noqa: BLE001 - all are run again, and the error is reported then
            self._roll_back()
            return False
        return True

    def _serve(self, request: _WriterRequest) -> None:
        request.error = None
        self._db.execute("SAVEPOINT request")
        try:
            request.outcome = request.work(SqliteTransaction(self._db, request.grant, self._known))
        except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
            request.error = _translate(error, self._location)
            self._known.rollback()
            # A full disk or an I/O error aborts the whole transaction.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK TO request")
        if self._db.in_transaction:
            self._db.execute("RELEASE request")

    def _fail(self, batch: Sequence[_WriterRequest], error: BaseException) -> None:
        for request in batch:
            # The error of a lone request says more than a later error of other calls' audit rows. Among several, it may
            # have failed because of changes that are now undone.
            if request.error is None or len(batch) > 1:
                request.error = _translate(error, self._location)
        PendingResult.wake_callers(batch)


def _translate(error: BaseException, location: str) -> BaseException:
    if not isinstance(error, sqlite3.Error):
        return error
    ours = translate_error(error, location)
    ours.__cause__ = error
    return ours


class _ConnectionTask(WriterTask):
    """A task for the connection, outside any transaction."""

    def __init__(self, work: Callable[[sqlite3.Connection], Any], future: Future[Any]) -> None:
        self._work = work
        self._future = future

    def run(self, connection: sqlite3.Connection, location: str) -> None:
        if not self._future.set_running_or_notify_cancel():
            return
        try:
            self._future.set_result(self._work(connection))
        except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
            self._future.set_exception(_translate(error, location))
