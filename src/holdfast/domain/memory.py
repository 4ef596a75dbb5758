"""Memories: records on a plane, with revisions, validity, trust and evidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar

from holdfast.domain.checks import Metadata
from holdfast.domain.ids import MemoryId, MessageId
from holdfast.domain.presentable import Presentable
from holdfast.domain.scope import Scope
from holdfast.errors import InvalidInput


class Plane(StrEnum):
    """The kind of a memory's content. Private memories and soul candidates are read only by requests that name them."""

    LONG_TERM = "long_term"
    SHARED_FACT = "shared_fact"
    PROCEDURAL = "procedural"
    PRIVATE = "private"
    SOUL_CANDIDATE = "soul_candidate"
    EPISODE = "episode"
    RESOURCE = "resource"


# Read only by requests that name them.
GUARDED_PLANES = frozenset({Plane.PRIVATE, Plane.SOUL_CANDIDATE})
OPEN_PLANES = frozenset(Plane) - GUARDED_PLANES
# The source of what the caller's own assistant stored by a tool. Like all text with a source, it has low trust.
ASSISTANT_SOURCE = "mcp"


class Trust(StrEnum):
    """The trust in a memory. Its origin decides it, never its content."""

    UNTRUSTED = "untrusted"
    LOW = "low"
    MODEST = "modest"
    STATED = "stated"
    VERIFIED = "verified"

    @property
    def level(self) -> int:
        """Its number, which stores and exported files hold."""
        return _LEVELS[self]

    # Texts would be compared by their letters.
    def __lt__(self, other: str) -> bool:
        return self.level < Trust(other).level

    def __le__(self, other: str) -> bool:
        return self.level <= Trust(other).level

    def __gt__(self, other: str) -> bool:
        return self.level > Trust(other).level

    def __ge__(self, other: str) -> bool:
        return self.level >= Trust(other).level


TRUST_LEVELS = tuple(Trust)
_LEVELS = {trust: level for level, trust in enumerate(TRUST_LEVELS)}


class Status(StrEnum):
    """The status of a record. A message has the status of its turn, which follows the transcript's lifecycle.

    Archived records can be read but not searched; masked and deleted ones neither.
    """

    ACCEPTED = "accepted"
    QUARANTINED = "quarantined"
    ARCHIVED = "archived"
    MASKED = "masked"
    RAW_DELETED = "raw_deleted"


# Never shown to anyone.
WITHHELD = frozenset({Status.MASKED, Status.RAW_DELETED})


@dataclass(frozen=True, slots=True)
class Validity(Presentable):
    """The time when something was true in the world: `since` inclusive, `until` exclusive."""

    since: Annotated[datetime | None, "True from this time on."] = None
    until: Annotated[datetime | None, "True before this time."] = None

    def __post_init__(self) -> None:
        if self.since and self.until and self.since >= self.until:
            raise InvalidInput("valid_until", "must be later than valid_from")


ALWAYS = Validity()


class FactRelation(StrEnum):
    """The relation of a new fact to what is known."""

    NEW = "new"
    DUPLICATE = "duplicate"
    UPDATE = "update"
    CONTRADICTION = "contradiction"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fact that extraction proposes. `key` identifies the earlier fact it is about; with `replaces` it ends that one.

    `former` is set if the evidence names what ended ("I no longer live in Porto"): then only an earlier fact that
    contains this text is replaced. `relation` and `target` are what a model says of a known memory: a proposal, which
    reconciliation checks.
    """

    text: str
    evidence: tuple[MessageId, ...]
    trust: Trust
    validity: Validity
    key: str
    replaces: bool = False
    former: str | None = None
    relation: FactRelation | None = None
    target: MemoryId | None = None


@dataclass(frozen=True, slots=True)
class Evidence(Presentable):
    """A message that a memory derives from, with its current text. Forgotten evidence is no longer listed.

    `external_id` is the caller's id of the message.
    """

    message_id: MessageId
    text: str
    sender: str | None
    said_at: datetime
    conversation: str | None
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryRecord(Presentable):
    """One revision of a memory. The newest has no `superseded_at`.

    `contradicts` are the ids of memories that say something else; each of them is marked as well.
    """

    _summary: ClassVar[tuple[str, ...]] = ("text", "trust", "revision", "id")
    _columns: ClassVar[tuple[str, ...]] = ("text", "trust", "plane", "status", "revision", "recorded_at", "id")

    id: MemoryId
    revision: int
    scope: Scope
    plane: Plane
    text: str
    trust: Trust
    status: Status
    validity: Validity
    recorded_at: datetime
    superseded_at: datetime | None
    source: str | None
    author: str
    reason: str | None
    evidence: tuple[Evidence, ...] = ()
    metadata: Metadata = field(default_factory=dict)
    contradicts: tuple[MemoryId, ...] = ()
