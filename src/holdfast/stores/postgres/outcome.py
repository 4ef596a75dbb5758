"""Whether a transaction whose connection was lost while it was being committed is in the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

import psycopg

from holdfast.errors import OutcomeUnknown, StoreError
from holdfast.stores.postgres.connection import Connector, Patience
from holdfast.stores.postgres.session import Session


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A transaction by its number on one timeline of the server, and by the audit rows that it holds."""

    transaction_id: str | None
    timeline: str | None
    recorded: Sequence[str]


def was_committed(connector: Connector, unsettled: Unsettled) -> bool:
    """Ask until it is known, for a bounded time; else `OutcomeUnknown`."""
    patience = Patience(connector.busy_seconds)
    while True:
        try:
            session = connector.session(patience)
            try:
                with session.transaction("BEGIN READ ONLY"):
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


class _Answer(Enum):
    COMMITTED = auto()
    ROLLED_BACK = auto()
    NOT_YET = auto()
    NEVER = auto()


def _asked(session: Session, unsettled: Unsettled) -> _Answer:
    moved = None not in (unsettled.timeline, session.timeline) and session.timeline != unsettled.timeline
    # After a failover, the numbers of transactions are another server's.
    status = None if moved else _status(session, unsettled.transaction_id)
    if status is _Answer.NOT_YET or (status is not None and session.timeline is not None):
        return status
    if not unsettled.recorded:
        return _Answer.NEVER
    if session.execute("SELECT 1 FROM operations WHERE id = ?", (unsettled.recorded[0],)).fetchone() is not None:
        return _Answer.COMMITTED
    # What the new server does not hold, it never will. Where it cannot be told whether it is another one, only its own
    # word is believed.
    return _Answer.ROLLED_BACK if moved or status is _Answer.ROLLED_BACK else _Answer.NEVER


def _status(session: Session, transaction_id: str | None) -> _Answer | None:
    row = session.execute("SELECT pg_xact_status(?::xid8)", (transaction_id,)).fetchone()
    return None if row is None or row[0] is None else _STATUS[row[0]]


_STATUS = {"committed": _Answer.COMMITTED, "aborted": _Answer.ROLLED_BACK, "in progress": _Answer.NOT_YET}
