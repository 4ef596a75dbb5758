"""Rows that are written to a store, and rows that it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar, overload

from holdfast.domain.checks import Metadata
from holdfast.domain.ids import MemoryId, MessageId, TurnId
from holdfast.domain.memory import Plane, Status, Trust, Validity
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import (
    ActorAttribution,
    Authority,
    DeliveryStatus,
    HostOpaqueRef,
    TranscriptState,
)
from holdfast.ports.models import Analysis

R = TypeVar("R")

# --- rows for search --------------------------------------------------------------------------------------------------


class IndexRow(NamedTuple):
    """One record as search sees it: no text, times in microseconds. `number` is internal to the store."""

    number: int
    kind: int  # 0 message, 1 memory
    plane: str | None
    status: str
    trust: int
    scope_id: int
    conversation_id: int | None
    position: int
    sender: str | None
    role: str | None
    source: str | None
    said_at: int
    recorded_at: int
    superseded_at: int | None
    valid_from: int | None
    valid_to: int | None
    flags: int
    length: int
    terms: bytes


class VectorRow(NamedTuple):
    """The vector of one piece of a record; float16, little-endian."""

    number: int
    piece: int
    vector: bytes


class LazyRows(Sequence[R]):
    """A lazy sequence of database rows: each is converted when accessed. A first load reads columns only."""

    def __init__(self, named: Callable[[Iterable[Any]], R], plain: Sequence[tuple[Any, ...]]) -> None:
        self._named = named
        self.plain = plain

    def __len__(self) -> int:
        return len(self.plain)

    def __iter__(self) -> Iterator[R]:
        return map(self._named, self.plain)

    @overload
    def __getitem__(self, at: int) -> R: ...

    @overload
    def __getitem__(self, at: slice) -> LazyRows[R]: ...

    def __getitem__(self, at: int | slice) -> R | LazyRows[R]:
        return LazyRows(self._named, self.plain[at]) if isinstance(at, slice) else self._named(self.plain[at])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


def columns_of(rows: Sequence[IndexRow] | Sequence[VectorRow]) -> Iterable[Any]:
    """Transpose rows to columns. There must be at least one row."""
    return zip(*(rows.plain if isinstance(rows, LazyRows) else rows), strict=True)


@dataclass(frozen=True, slots=True)
class PartitionDelta:
    """Changes of a partition: new or changed rows (with all their vectors), and removed numbers."""

    change: int
    rows: Sequence[IndexRow]
    vectors: Sequence[VectorRow]
    removed: Sequence[int]
    scopes: dict[int, Scope]


# --- rows to write ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewMessage:
    id: MessageId
    text: str
    sender: str | None
    role: Role
    said_at: datetime
    said_at_given: bool
    external_id: str | None
    metadata: Metadata
    analysis: Analysis
    vectors: Sequence[bytes] = ()
    authority: Authority | None = None  # None is read as legacy_transcript


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn to write. `external_id` is the host's id of the turn; if set, it is the public id."""

    id: TurnId
    scope: Scope
    source: str | None
    recorded_at: datetime
    messages: Sequence[NewMessage]
    external_id: str | None = None
    delivery: DeliveryStatus | None = None
    attribution: ActorAttribution | None = None
    host_refs: Sequence[HostOpaqueRef] = ()


@dataclass(frozen=True, slots=True)
class NewRevision:
    """A new memory, or a further revision of one: then `supersedes` is the revision it replaces.

    With `rests_as_before` it has all evidence of the replaced revision, including hidden messages. With `moved` its
    evidence comes from another store: messages missing here are left out, and hidden ones are linked as well.

    Without an analysis its text is that of the earlier revision `repeats`: it has that one's index data and vectors,
    and all of its evidence besides its own. `by_runtime` counts it to the budget of the runtime's profile.
    """

    id: MemoryId
    scope: Scope
    plane: Plane
    text: str
    trust: Trust
    status: Status
    validity: Validity
    recorded_at: datetime
    source: str | None
    author: str
    reason: str | None
    evidence: tuple[MessageId, ...]
    metadata: Metadata
    analysis: Analysis | None
    vectors: Sequence[bytes] = ()
    supersedes: int | None = None
    slot: str | None = None
    rests_as_before: bool = False
    moved: bool = False
    repeats: int | None = None
    contradicts: tuple[MemoryId, ...] = ()
    by_runtime: bool = False


@dataclass(frozen=True, slots=True)
class StoredMessages:
    """The id of each message: an existing one's if it was stored before, None if it was forgotten.

    `sequence` is the new turn's position in its conversation, from 1; None if nothing was new.
    """

    ids: tuple[MessageId | None, ...]
    new: frozenset[int] = frozenset()
    sequence: int | None = None

    @property
    def new_ids(self) -> tuple[MessageId, ...]:
        found = (self.ids[index] for index in sorted(self.new))
        return tuple(each for each in found if each is not None)


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The stored response of an idempotent call: the digest of the request, and JSON of ids and counts. Never text."""

    digest: str
    body: str


@dataclass(frozen=True, slots=True)
class UnindexedRecord:
    """A record that waits for vectors or analysis."""

    number: int
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class IndexUpdate:
    """The index data of one record. `analysis` is None if only the vectors are new."""

    number: int
    vectors: Sequence[bytes]
    analysis: Analysis | None = None


# --- rows that are read -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Alias:
    """The conversation that a chat id maps to. An alias that mapped to two is no longer trusted."""

    conversation: str
    trusted: bool


class StoredAlias(NamedTuple):
    """A stored alias: the thread, and a digest of the chat id and where it was used, never the id itself."""

    thread: Scope
    key: bytes
    trusted: bool
    recorded_at: datetime


class TurnState(NamedTuple):
    """A turn of a thread without its content. `messages` counts the stored ones."""

    sequence: int
    id: TurnId
    state: TranscriptState
    messages: int
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    thread: Scope
    turns: int
    last_recorded_at: datetime
