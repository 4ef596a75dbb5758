"""Whether a transaction whose connection was lost while it was being committed is in the store.

The server knows transactions by number, but a number alone does not tell: a server that crashed before it wrote one
down gives it out again, and one that took over counts on its own. So the number only says whether the transaction is
still under way. Whether it was committed is told by the audit row that every call writes in the same transaction: if
that is there, all of it is. Of a call that wrote its row beforehand, as `unknown`, the row must tell what came of it.
What has no such row is the store's own upkeep, which does no harm if it is done twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

import psycopg

from holdfast.errors import OutcomeUnknown, StoreError
from holdfast.stores.postgres.connection import Connector, Patience
from holdfast.stores.postgres.session import Session


@dataclass(frozen=True, slots=True)
class Proof:
    """An audit row of a transaction: that it is there, or, if `settled`, that it is no longer `unknown`."""

    operation_id: str
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A transaction by its number in one life of the server, and by the audit rows that it holds."""

    transaction_id: str | None
    life: str | None
    recorded: Sequence[Proof]


class _Answer(Enum):
    COMMITTED = auto()
    ROLLED_BACK = auto()
    NOT_YET = auto()
    NEVER = auto()


def was_committed(connector: Connector, unsettled: Unsettled) -> bool:
    """Ask until it is known, for a bounded time; else `OutcomeUnknown`."""
    patience = Patience(connector.busy_seconds)
    while True:
        try:
            session = connector.session(patience)
            try:
                answer = _asked(session, unsettled)
            finally:
                session.close()
        except (psycopg.Error, StoreError):
            answer = _Answer.NOT_YET
        if answer is _Answer.NEVER or (answer is _Answer.NOT_YET and not patience.more()):
            raise OutcomeUnknown(
                f"the connection to {connector.place.shown} was lost while a write was being committed, and whether it"
                " was cannot be found out; look before you write it again, or give an idempotency_key: with the same"
                " key, trying again is safe"
            )
        if answer is not _Answer.NOT_YET:
            return answer is _Answer.COMMITTED


def _asked(session: Session, unsettled: Unsettled) -> _Answer:
    same = session.life is not None and session.life == unsettled.life
    # Of another life, nothing is under way any more.
    status = _status(session, unsettled.transaction_id) if same or session.life is None else _Answer.ROLLED_BACK
    if status is _Answer.NOT_YET:
        return status
    if not unsettled.recorded:
        return status if same else _Answer.NEVER
    proof = unsettled.recorded[0]
    known = " AND outcome <> 'unknown'" if proof.settled else ""
    if session.execute(f"SELECT 1 FROM operations WHERE id = ?{known}", (proof.operation_id,)).fetchone() is not None:
        return _Answer.COMMITTED
    # Looked for after it had ended, and not there.
    return _Answer.NEVER if status is _Answer.NEVER else _Answer.ROLLED_BACK


def _status(session: Session, transaction_id: str | None) -> _Answer:
    try:
        row = session.execute("SELECT pg_xact_status(?::xid8)", (transaction_id,)).fetchone()
    except psycopg.errors.InvalidParameterValue:
        # A number yet to be given out: the server crashed before it had written it down.
        return _Answer.ROLLED_BACK
    return _STATUS.get(str(row[0]), _Answer.NEVER)


_STATUS = {"committed": _Answer.COMMITTED, "aborted": _Answer.ROLLED_BACK, "in progress": _Answer.NOT_YET}
