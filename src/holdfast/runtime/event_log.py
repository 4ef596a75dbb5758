"""Append to the event log, in the commit of the change. The log of a space is pruned to a budget."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.domain import ids
from holdfast.domain.events import Event, EventKind
from holdfast.domain.ids import EventId
from holdfast.domain.memory import Plane
from holdfast.domain.scope import Scope
from holdfast.ports import Transaction
from holdfast.runtime.requests import Core

# The log is pruned occasionally, not with every event: it may exceed its budget by about this part of it.
_SLACK = 8


def append_event(
    transaction: Transaction,
    core: Core,
    kind: EventKind,
    scope: Scope,
    *,
    keep: int | None = None,
    plane: Plane | None = None,
    record_key: str | None = None,
    content_hash: str | None = None,
    details: Mapping[str, str | int | None] | None = None,
    event_id: EventId | None = None,
) -> EventId:
    """Append an event in the transaction that caused it. About `keep` events of a space are retained."""
    event_id = event_id or new_event_id(core)
    transaction.events.append(
        Event(event_id, kind, scope, core.clock.now(), plane, record_key, content_hash, details or {})
    )
    prune_sometimes(transaction, core, event_id, scope.space, keep)
    return event_id


def new_event_id(core: Core) -> EventId:
    return EventId(core.ids.new(ids.EVENT))


def prune_sometimes(
    transaction: Transaction, core: Core, event_id: EventId, space: str, keep: int | None = None
) -> None:
    """Prune the log of the space if the event's id, which ends at random, says so."""
    most = core.events_kept if keep is None else keep
    if int(event_id[-4:], 16) % max(1, most // _SLACK) == 0:
        transaction.events.prune(space, most)
