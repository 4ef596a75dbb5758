"""Resolve transactions in doubt: those whose connection was lost during the commit.

The server knows transactions by number, but a number alone is no proof: a server that crashed before it wrote one down
assigns it again, and a promoted replica counts on its own. So the number only tells whether the transaction is still
running. The proof of a commit is the audit row that every call writes in the same transaction. If the call wrote its
row beforehand, as `unknown`, the row must hold the outcome. A transaction without such a row is maintenance of the
store, which is safe to repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

import psycopg

from holdfast.errors import OutcomeUnknown, StoreError
from holdfast.stores.postgres.connection import Connector, RetryDeadline
from holdfast.stores.postgres.session import PostgresSession


@dataclass(frozen=True, slots=True)
class CommitProof:
    """An audit row that proves a commit: that it exists or, if `settled`, that it is no longer `unknown`."""

    operation_id: str
    settled: bool = False


@dataclass(frozen=True, slots=True)
class InDoubtTransaction:
    """A transaction in doubt: its number in one run of the server, and its audit rows."""

    transaction_id: str | None
    life: str | None
    recorded: Sequence[CommitProof]


class _CommitStatus(Enum):
    COMMITTED = auto()
    ROLLED_BACK = auto()
    NOT_YET = auto()
    NEVER = auto()


def was_committed(connector: Connector, unsettled: InDoubtTransaction) -> bool:
    """Ask the server until the outcome is known, for a bounded time; else raise `OutcomeUnknown`."""
    patience = RetryDeadline(connector.busy_seconds)
    while True:
        try:
            session = connector.session(patience)
            try:
                answer = _query_outcome(session, unsettled)
            finally:
                session.close()
        except (psycopg.Error, StoreError):
            answer = _CommitStatus.NOT_YET
        if answer is _CommitStatus.NEVER or (answer is _CommitStatus.NOT_YET and not patience.wait()):
            raise OutcomeUnknown(
                f"the connection to {connector.place.shown} was lost during a commit, whose outcome is unknown;"
                " check before you write it again, or give an idempotency_key: with the same key, trying again is safe"
            )
        if answer is not _CommitStatus.NOT_YET:
            return answer is _CommitStatus.COMMITTED


def _query_outcome(session: PostgresSession, unsettled: InDoubtTransaction) -> _CommitStatus:
    same = session.life is not None and session.life == unsettled.life
    # After a restart, nothing of it is still running.
    status = (
        _transaction_status(session, unsettled.transaction_id)
        if same or session.life is None
        else _CommitStatus.ROLLED_BACK
    )
    if status is _CommitStatus.NOT_YET:
        return status
    if not unsettled.recorded:
        return status if same else _CommitStatus.NEVER
    proof = unsettled.recorded[0]
    known = " AND outcome <> 'unknown'" if proof.settled else ""
    if session.execute(f"SELECT 1 FROM operations WHERE id = ?{known}", (proof.operation_id,)).fetchone() is not None:
        return _CommitStatus.COMMITTED
    # The transaction has ended, and its row does not exist.
    return _CommitStatus.NEVER if status is _CommitStatus.NEVER else _CommitStatus.ROLLED_BACK


def _transaction_status(session: PostgresSession, transaction_id: str | None) -> _CommitStatus:
    try:
        row = session.execute("SELECT pg_xact_status(?::xid8)", (transaction_id,)).fetchone()
    except psycopg.errors.InvalidParameterValue:
        # A number not assigned yet: the server crashed before it wrote it down.
        return _CommitStatus.ROLLED_BACK
    return _STATUS.get(str(row[0]), _CommitStatus.NEVER)


_STATUS = {
    "committed": _CommitStatus.COMMITTED,
    "aborted": _CommitStatus.ROLLED_BACK,
    "in progress": _CommitStatus.NOT_YET,
}
