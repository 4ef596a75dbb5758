"""Writing: a few lanes, each a thread with a connection, that take whatever is queued into one commit.

Writes to one partition always come to the same lane, so that what this process writes there at once costs one sync;
what other processes write there waits for the partition's lock (`locks`). In a batch, each request has a savepoint: one
that fails is rolled back alone. A transaction that met another's, or lost its connection before the commit began, is
done again; one that lost it during the commit is first asked after (`outcome`).
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
from holdfast.errors import StoreClosed, StoreError
from holdfast.failpoints import reach
from holdfast.stores.audits import AuditBuffer
from holdfast.stores.inbox import Inbox
from holdfast.stores.pending import Pending
from holdfast.stores.postgres.connection import Connector, Patience
from holdfast.stores.postgres.errors import Kind, kind_of, translated
from holdfast.stores.postgres.locks import partitions_of, whole_space
from holdfast.stores.postgres.outcome import Proof, Unsettled, was_committed
from holdfast.stores.postgres.session import Session
from holdfast.stores.postgres.transaction import PostgresTransaction
from holdfast.stores.sql.audit import record_operation

# PostgreSQL keeps track of this many savepoints cheaply.
MAX_BATCH = 50
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE"
log = logging.getLogger("holdfast.store")


class _Request(Pending):
    """`recorded` is what proves, later, whether it was committed."""

    __slots__ = ("grant", "recorded", "work")

    def __init__(self, grant: Grant, work: Callable[[PostgresTransaction], Any]) -> None:
        super().__init__()
        self.grant = grant
        self.work = work
        self.recorded: Proof | None = None


class Writers:
    """The lanes of one store."""

    def __init__(self, connector: Connector, lanes: int) -> None:
        self._audits = AuditBuffer(connector.place.shown, connector.busy_seconds)
        self._lock = threading.Lock()
        self._closed = False
        # The first also writes the audit rows of reads, and what concerns the whole store.
        self._lanes = [_Lane(connector, self._audits if number == 0 else None, number) for number in range(lanes)]

    def submit(self, grant: Grant, work: Callable[[PostgresTransaction], Any]) -> Pending:
        request = _Request(grant, work)
        with self._lock:
            self._check_open()
            self._lane_of(grant).inbox.put(request)
        return request

    def _lane_of(self, grant: Grant) -> _Lane:
        if grant.everywhere:
            return self._lanes[0]
        place = min(grant.partitions) if grant.partitions else grant.scope.partition
        return self._lanes[hash(place) % len(self._lanes)]

    def audit(self, operation: Operation) -> bool:
        """Queue an audit row. False if so many wait already that the caller should wait for room."""
        with self._lock:
            self._check_open()
            if self._audits.add(operation):
                self._lanes[0].inbox.wake()
        return not self._audits.full

    @property
    def owes_audits(self) -> bool:
        """Whether rows wait for a commit. Until it is made they are here, so none is on its way elsewhere."""
        with self._lock:
            self._check_open()
        return bool(self._audits)

    def wait_for_room(self) -> None:
        self._audits.wait_for_room()

    def close(self) -> list[Future[None]]:
        """Finish what was queued, then end; each done when its lane has."""
        with self._lock:
            if not self._closed:
                self._closed = True
                for lane in self._lanes:
                    lane.inbox.stop()
        return [lane.ended for lane in self._lanes]

    def join(self) -> None:
        for lane in self._lanes:
            lane.thread.join()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("this memory was closed; open it again")


class _Lane:
    """Its connection is made with its first write, and touched by its thread alone."""

    def __init__(self, connector: Connector, audits: AuditBuffer | None, number: int) -> None:
        self.inbox: Inbox[_Request] = Inbox(audits, MAX_BATCH)
        self.ended: Future[None] = Future()
        self._connector = connector
        self._audits = audits
        self._session: Session | None = None
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

    def _commit(self, batch: Sequence[_Request]) -> None:
        """Do it until it is done, or cannot be."""
        patience = Patience(self._connector.busy_seconds)
        while True:
            try:
                self._attempt(batch, patience)
            except psycopg.Error as error:
                if self._again(error, patience):
                    continue
                self._failed(batch, error)
            except BaseException as error:  # noqa: BLE001 - handed to the callers, whatever it is
                self._failed(batch, error)
            else:
                Pending.tell(batch)
            return

    def _again(self, error: psycopg.Error, patience: Patience) -> bool:
        kind = kind_of(error, None if self._session is None else self._session.connection)
        if kind is Kind.LOST:
            self._discard()
        return kind is not Kind.REFUSED and patience.more()

    def _failed(self, batch: Sequence[_Request], error: BaseException) -> None:
        """Nothing of it is in the store. It may be the doing of one request, and alone each learns whether it was."""
        if len(batch) > 1 and not isinstance(error, StoreError) and not self._waited_for_all(error):
            for request in batch:
                self._commit([request])
            return
        for request in batch:
            request.error = _in_our_words(error, self._connector)
        Pending.tell(batch)
        if batch and self.inbox.audits_due(False):
            self._commit([])
        else:
            self.inbox.settle()

    def _waited_for_all(self, error: BaseException) -> bool:
        """Who waited in vain for a lock or a server waited for all of them."""
        return isinstance(error, psycopg.Error) and kind_of(error) is not Kind.REFUSED

    def _attempt(self, batch: Sequence[_Request], patience: Patience) -> None:
        """One transaction."""
        session = self._session = self._session or self._connector.session(patience)
        audits = self._audits.waiting() if self._audits is not None else []
        committed = False
        try:
            with session.transaction(_BEGIN):
                number = session.execute("SELECT pg_current_xact_id()::text")
                _lock(session, [request.grant for request in batch])
                for request in batch:
                    self._serve(session, request, alone=len(batch) == 1)
                _record(session, audits)
                session.transaction_id = str((number.fetchone() or (None,))[0])
                reach("commit.before")
                committed = self._committed(session, batch)
                reach("commit.after")
        except psycopg.Error:
            # Once it is committed, the loss of the connection is the next one's business.
            if not committed:
                raise
        finally:
            session.known.keep() if committed else session.known.drop()
            if session.lost:
                self._discard()
        if self._audits is not None:
            self._audits.written(len(audits))
            self.inbox.settle()

    def _committed(self, session: Session, batch: Sequence[_Request]) -> bool:
        try:
            session.commit()
        except psycopg.Error as error:
            if kind_of(error, session.connection) is not Kind.LOST:
                raise
            recorded = [request.recorded for request in batch if request.recorded and request.error is None]
            unsettled = Unsettled(session.transaction_id, session.life, recorded)
            session.close()
            if not was_committed(self._connector, unsettled):
                raise
        return True

    def _serve(self, session: Session, request: _Request, *, alone: bool) -> None:
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
                # Statements are not waited for one by one, so this may be another's doing: each learns it alone.
                raise
            except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
                request.error = error
                session.roll_back_to(held)
        request.recorded = transaction.recorded

    def _discard(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


def _lock(session: Session, grants: Sequence[Grant]) -> None:
    """All that the batch needs, in one order for everybody."""
    alone = {space for grant in grants if (space := whole_space(grant)) is not None}
    partitions = {partition for grant in grants for partition in partitions_of(grant)}
    for space in sorted(alone | {partition.space for partition in partitions}):
        session.lock_space(space, exclusive=space in alone)
    for partition in sorted(partitions):
        if partition.space not in alone:
            session.lock_partition(partition)


def _record(session: Session, audits: Sequence[Operation]) -> None:
    if not audits:
        return
    reach("audit.before")
    for operation in audits:
        # A call that was cancelled may have been carried out all the same; then its own row stands.
        record_operation(session, operation, unless_there=True)
    reach("audit.after")


def _in_our_words(error: BaseException, connector: Connector) -> BaseException:
    if not isinstance(error, psycopg.Error):
        return error
    ours = translated(error, connector.place)
    ours.__cause__ = error
    return ours
