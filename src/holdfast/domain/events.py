"""The event log: what became of which record, beside the operations, which say who called. It never holds text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from holdfast.domain.ids import EventId
from holdfast.domain.memory import Plane
from holdfast.domain.scope import Scope


class EventKind(StrEnum):
    WRITE = "memory.write"
    MERGE = "memory.merge"
    DELETE = "memory.delete"
    MAINTENANCE = "memory.maintenance"
    PROJECTION = "memory.projection"
    LIFECYCLE = "runtime.lifecycle"
    OPERATOR = "operator.action"


@dataclass(frozen=True, slots=True)
class Event:
    """`content_hash` tells one content from another; it goes when the content does. `details` are names and counts."""

    id: EventId
    kind: EventKind
    scope: Scope
    at: datetime
    plane: Plane | None = None
    record_key: str | None = None
    content_hash: str | None = None
    details: Mapping[str, str | int | None] = field(default_factory=dict)
