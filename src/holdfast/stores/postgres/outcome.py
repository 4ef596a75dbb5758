"""Whether a transaction whose connection was lost while it was being committed is in the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
            answer = None
        if answer is not None:
            return answer
        if not patience.more():
            raise OutcomeUnknown(
                f"the connection to {connector.place.shown} was lost while a write was being committed, and whether it"
                " was cannot be found out; look before you write it again, or give an idempotency_key: with the same"
                " key, trying again is safe"
            )


def _asked(session: Session, unsettled: Unsettled) -> bool | None:
    """None if it cannot be told, or not yet."""
    if unsettled.timeline is not None and session.timeline == unsettled.timeline:
        (status,) = session.execute("SELECT pg_xact_status(?::xid8)", (unsettled.transaction_id,)).fetchone() or (None,)
        if status in ("committed", "aborted"):
            return bool(status == "committed")
        if status == "in progress":
            return None
    # Another server has taken over, whose numbers are its own: what it holds tells.
    if not unsettled.recorded:
        return None
    return session.execute("SELECT 1 FROM operations WHERE id = ?", (unsettled.recorded[0],)).fetchone() is not None
