"""The event log: changes of records. The audit trail of calls is apart, in `operations.py`. It never holds text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from holdfast.domain.ids import EventId
from holdfast.domain.memory import Plane
from holdfast.domain.presentable import Presentable, PresentableList
from holdfast.domain.scope import Scope

# Events of a space to keep, unless a profile says otherwise. Administrative ones do not count, and are never pruned.
EVENTS_KEPT = 32_768
# An event of several records names at most this many.
NAMED_IDS = 100


class EventKind(StrEnum):
    WRITE = "memory.write"
    MERGE = "memory.merge"
    DELETE = "memory.delete"
    MAINTENANCE = "memory.maintenance"
    PROJECTION = "memory.projection"
    LIFECYCLE = "runtime.lifecycle"
    OPERATOR = "operator.action"
    BINDING_CREATED = "memory.binding_created"
    BINDING_UPDATED = "memory.binding_updated"
    BINDING_ENABLED = "memory.binding_enabled"
    BINDING_DISABLED = "memory.binding_disabled"
    BINDING_DELETED = "memory.binding_deleted"
    DEFAULT_SET = "memory.default_set"
    DEFAULT_CLEARED = "memory.default_cleared"
    AGENT_OVERRIDE_SET = "memory.agent_override_set"
    AGENT_OVERRIDE_CLEARED = "memory.agent_override_cleared"
    PRICE_SET = "memory.price_set"
    PRICE_REMOVED = "memory.price_removed"
    FINANCE_ADDED = "memory.finance_added"
    DELIVERY_RETRIED = "memory.delivery_retried"
    DELIVERY_DROPPED = "memory.delivery_dropped"
    JOB_RETRIED = "memory.job_retried"
    JOB_CANCELLED = "memory.job_cancelled"


# Changes of records, and of a runtime's state.
_OF_RECORDS = {EventKind.WRITE, EventKind.MERGE, EventKind.DELETE, EventKind.MAINTENANCE, EventKind.PROJECTION}
_OF_RUNTIMES = {EventKind.LIFECYCLE, EventKind.OPERATOR}
# Administrative changes of a space's memory. Pruning never removes them.
ADMINISTRATIVE = frozenset(EventKind) - _OF_RECORDS - _OF_RUNTIMES


@dataclass(frozen=True, slots=True)
class Event(Presentable):
    """One event. `content_hash` identifies the content and is deleted with it. `details` are names and counts."""

    id: EventId
    kind: EventKind
    scope: Scope
    at: datetime
    plane: Plane | None = None
    record_key: str | None = None
    content_hash: str | None = None
    details: Mapping[str, str | int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventPage(PresentableList[Event]):
    """A page of events, newest first. `next_cursor` is None on the last."""

    items: tuple[Event, ...]
    next_cursor: str | None
