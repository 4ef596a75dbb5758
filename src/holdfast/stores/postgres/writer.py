"""Writer lanes with group commit: each is a thread with a connection.

Writes to one partition always go to the same lane, so that concurrent writes of this process cost one sync; writes of
other processes wait for the partition's lock (`locks`). In a batch, each request has a savepoint: one that fails is
rolled back alone. A transaction that conflicted with another, or lost its connection before the commit began, is
retried; if it lost the connection during the commit, its outcome is determined first (`outcome`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import psycopg

from holdfast.domain.access import Grant
from holdfast.domain.operations import Operation
from holdfast.errors import StoreError
from holdfast.failpoints import reach
from holdfast.stores.postgres.commit_outcome import CommitProof, InDoubtTransaction, was_committed
from holdfast.stores.postgres.connection import Connector, RetryDeadline
from holdfast.stores.postgres.dialect import POSTGRES
from holdfast.stores.postgres.errors import FailureKind, classify_error, translate_error
from holdfast.stores.postgres.locks import partitions_to_lock, space_to_lock
from holdfast.stores.postgres.session import PostgresSession
from holdfast.stores.postgres.transaction import PostgresTransaction
from holdfast.stores.sql.operations import record_operation
from holdfast.stores.writer_queue import AuditBuffer, AuditingWriter, PendingResult, WriterQueue

# PostgreSQL keeps track of this many savepoints cheaply.
MAX_BATCH = 50
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE"
log = logging.getLogger("holdfast.store")


class _LaneRequest(PendingResult):
    """A write. `recorded` is the later proof of its commit."""

    __slots__ = ("grant", "recorded", "work")

    def __init__(self, grant: Grant, work: Callable[[PostgresTransaction], Any]) -> None:
        super().__init__()
        self.grant = grant
        self.work = work
        self.recorded: CommitProof | None = None


class Writers(AuditingWriter):
    """The lanes of one store."""

    def __init__(self, connector: Connector, lanes: int) -> None:
        super().__init__(connector.place.shown, connector.busy_seconds)
        # The first also writes the audit rows of reads, and does store-wide work.
        self._lanes = [_Lane(connector, self._audits if number == 0 else None, number) for number in range(lanes)]

    def submit(self, grant: Grant, work: Callable[[PostgresTransaction], Any]) -> PendingResult:
        request = _LaneRequest(grant, work)
        with self._lock:
            self._check_open()
            self._lane_of(grant).inbox.put(request)
        return request

    def _lane_of(self, grant: Grant) -> _Lane:
        if grant.everywhere:
            return self._lanes[0]
        place = min(grant.partitions) if grant.partitions else grant.scope.partition
        return self._lanes[hash(place) % len(self._lanes)]

    def _audit_queue(self) -> WriterQueue[_LaneRequest]:
        return self._lanes[0].inbox

    def close(self) -> list[Future[None]]:
        """Finish the queues, then end; each future is done when its lane has ended."""
        with self._lock:
            if not self._closed:
                self._closed = True
                for lane in self._lanes:
                    lane.inbox.stop()
        return [lane.ended for lane in self._lanes]

    def join(self) -> None:
        for lane in self._lanes:
            lane.thread.join()


class _Lane:
    """A writer thread. Its connection is opened on the first write, and used only by this thread."""

    def __init__(self, connector: Connector, audits: AuditBuffer | None, number: int) -> None:
        self.inbox: WriterQueue[_LaneRequest] = WriterQueue(audits, MAX_BATCH)
        self.ended: Future[None] = Future()
        self._connector = connector
        self._audits = audits
        self._session: PostgresSession | None = None
        self.thread = threading.Thread(target=self._run, name=f"holdfast-writer-{number}", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        stopping = False
        while not stopping:
            batch, _, stopping = self.inbox.gather()
            if batch or self.inbox.audits_due(stopping):
                self._commit(batch)
        if self._audits:
            log.error("%d audit rows could not be written before closing", len(self._audits))
        self._discard()
        self.ended.set_result(None)

    # --- committing ---

    def _commit(self, batch: Sequence[_LaneRequest]) -> None:
        """Retry until the batch is committed, or cannot be."""
        patience = RetryDeadline(self._connector.busy_seconds)
        while True:
            try:
                self._attempt(batch, patience)
            except psycopg.Error as error:
                if self._should_retry(error, patience):
                    continue
                self._handle_failure(batch, error)
            except BaseException as error:  # noqa: BLE001 - handed to the callers, whatever it is
                self._handle_failure(batch, error)
            else:
                PendingResult.wake_callers(batch)
            return

    def _should_retry(self, error: psycopg.Error, patience: RetryDeadline) -> bool:
        kind = classify_error(error, None if self._session is None else self._session.connection)
        if kind is FailureKind.LOST:
            self._discard()
        return kind is not FailureKind.REFUSED and patience.wait()

    def _handle_failure(self, batch: Sequence[_LaneRequest], error: BaseException) -> None:
        """Handle a batch of which nothing is in the store. One request may be the cause, so each is retried alone."""
        if len(batch) > 1 and not isinstance(error, StoreError) and not self._affects_whole_batch(error):
            for request in batch:
                self._commit([request])
            return
        for request in batch:
            request.error = _translate(error, self._connector)
        PendingResult.wake_callers(batch)
        if batch and self.inbox.audits_due(False):
            self._commit([])
        else:
            self.inbox.reset_audit_deadline()

    def _affects_whole_batch(self, error: BaseException) -> bool:
        """True if the error is a timeout for a lock or a server, which affects the whole batch."""
        return isinstance(error, psycopg.Error) and classify_error(error) is not FailureKind.REFUSED

    def _attempt(self, batch: Sequence[_LaneRequest], patience: RetryDeadline) -> None:
        """Run one transaction."""
        session = self._session = self._session or self._connector.session(patience)
        audits = self._audits.waiting() if self._audits is not None else []
        committed = False
        try:
            with session.transaction(_BEGIN):
                number = session.execute("SELECT pg_current_xact_id()::text")
                _lock_batch(session, [request.grant for request in batch])
                for request in batch:
                    self._serve(session, request, alone=len(batch) == 1)
                _record_audits(session, audits)
                session.transaction_id = str((number.fetchone() or (None,))[0])
                reach("commit.before")
                committed = self._commit_session(session, batch)
                reach("commit.after")
        except psycopg.Error:
            # After the commit, a lost connection matters only to the next transaction.
            if not committed:
                raise
        finally:
            session.known.commit() if committed else session.known.rollback()
            if session.is_lost:
                self._discard()
        if self._audits is not None:
            self._audits.drop_committed(len(audits))
            self.inbox.reset_audit_deadline()

    def _commit_session(self, session: PostgresSession, batch: Sequence[_LaneRequest]) -> bool:
        try:
            session.commit()
        except psycopg.Error as error:
            if classify_error(error, session.connection) is not FailureKind.LOST:
                raise
            recorded = [request.recorded for request in batch if request.recorded and request.error is None]
            unsettled = InDoubtTransaction(session.transaction_id, session.life, recorded)
            session.close()
            if not was_committed(self._connector, unsettled):
                raise
        return True

    def _serve(self, session: PostgresSession, request: _LaneRequest, *, alone: bool) -> None:
        request.error = request.recorded = None
        transaction = PostgresTransaction(session, request.grant)
        if alone:
            request.outcome = request.work(transaction)
        else:
            held = session.savepoint()
            try:
                request.outcome = request.work(transaction)
                session.release()
            except psycopg.Error:
                # Statements are pipelined, so another request may be the cause: each is retried alone.
                raise
            except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
                request.error = error
                session.roll_back_to(held)
        request.recorded = transaction.scope.proof

    def _discard(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


def _lock_batch(session: PostgresSession, grants: Sequence[Grant]) -> None:
    """Take all locks of the batch, in one global order, which prevents deadlocks."""
    alone = {space for grant in grants if (space := space_to_lock(grant)) is not None}
    partitions = {partition for grant in grants for partition in partitions_to_lock(grant)}
    for space in sorted(alone | {partition.space for partition in partitions}):
        session.lock_space(space, exclusive=space in alone)
    for partition in sorted(partitions):
        if partition.space not in alone:
            session.lock_partition(partition)


def _record_audits(session: PostgresSession, audits: Sequence[Operation]) -> None:
    if not audits:
        return
    reach("audit.before")
    for operation in audits:
        # A cancelled call may have been carried out nevertheless; then its own row stands.
        home = session.known.get(operation.scope.partition)
        record_operation(session, POSTGRES, operation, unless_there=True, partition=home)
    reach("audit.after")


def _translate(error: BaseException, connector: Connector) -> BaseException:
    if not isinstance(error, psycopg.Error):
        return error
    ours = translate_error(error, connector.place)
    ours.__cause__ = error
    return ours
