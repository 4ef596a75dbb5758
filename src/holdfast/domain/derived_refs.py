"""References from memories to the transcript they derive from, and the issues that a check finds in them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from holdfast.domain.ids import MemoryId, MessageId, TurnId
from holdfast.domain.memory import Plane
from holdfast.domain.presentable import Presentable


@dataclass(frozen=True, slots=True)
class DerivedMemoryRef(Presentable):
    """A memory with the turns and messages of one conversation that it derives from. `source` is its author."""

    plane: Plane
    store_key: MemoryId
    subject_id: str | None
    source: str
    created_at: datetime
    turn_ids: tuple[TurnId, ...]
    message_ids: tuple[MessageId, ...]


class RepairIssueKind(StrEnum):
    MISSING_SOURCE_TURN = "missing_source_turn"
    MISSING_SOURCE_MESSAGE = "missing_source_message"
    ORPHAN_DERIVED_REF = "orphan_derived_ref"
    MISMATCHED_SOURCE_KEY = "mismatched_source_key"
    DUPLICATE_TURN_CURSOR = "duplicate_turn_cursor"
    CORRUPT_RECORD = "corrupt_record"


@dataclass(frozen=True, slots=True)
class RepairIssue(Presentable):
    """A row that refers to something missing, or contradicts itself. `detail` never holds message text."""

    kind: RepairIssueKind
    detail: str
    turn_id: str | None = None
    message_id: str | None = None
    store_key: str | None = None


@dataclass(frozen=True, slots=True)
class TranscriptCheck:
    checked_turns: int
    checked_derived_refs: int
    issues: tuple[RepairIssue, ...]
