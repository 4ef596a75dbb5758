"""Options and results of a search, and the approximate index that a large partition may have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias

from holdfast.domain.conditions import Condition
from holdfast.domain.memory import Plane, Status
from holdfast.domain.ranking import FloatArray, HalfArray, IntArray
from holdfast.domain.results import HitKind, Way
from holdfast.domain.transcript import Role

# The vector of a query: made beforehand, a function that makes it from a text, or none.
QueryVector: TypeAlias = FloatArray | Callable[[str], FloatArray] | None


class Method(StrEnum):
    """The ranking of a search: words, meaning and hints together; words alone; or meaning alone."""

    HYBRID = "hybrid"
    KEYWORD = "keyword"
    VECTOR = "vector"


class Order(StrEnum):
    """The time to order records by. A memory counts as said when it was recorded."""

    SAID = "said"
    RECORDED = "recorded"


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Options of a search, besides the query text. `as_of` None means now, other times None mean unbounded.

    `condition` limits the records that the search sees, like the scope: others do not affect any score. `radius` is
    the least cosine of a record's own text with the query; a record without a vector is outside every radius.
    """

    top_k: int = 10
    kind: HitKind | None = None
    planes: frozenset[Plane] | None = None
    sender: str | None = None
    role: Role | None = None
    source: str | None = None
    said_from: datetime | None = None
    said_to: datetime | None = None
    as_of: datetime | None = None
    valid_at: datetime | None = None
    min_score: float | None = None
    quarantined: bool = False
    method: Method = Method.HYBRID
    radius: float | None = None
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class ListFilter:
    """Filter of a list. `unsealed`: only messages that no flush has sealed."""

    kind: HitKind | None = None
    planes: frozenset[Plane] | None = None
    sender: str | None = None
    source: str | None = None
    status: Status | None = None
    as_of: datetime | None = None
    valid_at: datetime | None = None
    unsealed: bool = False


@dataclass(frozen=True, slots=True)
class ScoredCandidate:
    """A candidate: its number, its score, and its raw value, normalized value and weight per ranking part."""

    number: int
    score: float
    parts: dict[str, tuple[float, float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RankedCandidates:
    """Ranked candidates, best first. `target` is the record that an explanation asked about, with its rank, if it was a
    candidate; `why_absent` is the reason why it could not be returned, whatever its rank.

    `ways` are the search methods of the partitions. If one was approximate, an explanation has `recall`: the share of
    the best that an exact search would have found too; None if not measured.
    """

    best: Sequence[ScoredCandidate]
    candidates: int
    understood: dict[str, str]
    target: tuple[int, ScoredCandidate] | None = None
    why_absent: str | None = None
    ways: tuple[Way, ...] = ()
    recall: float | None = None


class VectorBlock(NamedTuple):
    """Embedded pieces of records: float16, rows of a record adjacent and in order; `numbers` has each row's record."""

    numbers: IntArray
    rows: HalfArray


@dataclass(frozen=True, slots=True)
class NearestState:
    """State of the approximate index of one partition's vectors of one embedder.

    It holds changes up to `change`; a `live` index is kept up to date by the store and holds everything. `recall` is
    the share of the nearest ten that it found for a sample when it was built.
    """

    records: int
    change: int
    live: bool
    recall: float
    built_at: datetime


class NearestIndex(Protocol):
    """A queryable approximate index, valid as long as its reader."""

    @property
    def state(self) -> NearestState: ...

    def search(self, vector: FloatArray, limit: int, depth: int) -> Callable[[], IntArray]:
        """Find the numbers of about `limit` records, nearest first, each once. Some may be gone or changed since.

        Returns a function that waits for the result; meanwhile a server searches. A larger `depth` finds more of the
        nearest, and takes longer.
        """

    def vectors(self, numbers: IntArray) -> VectorBlock:
        """Return the vectors that the index holds of these records. `numbers` must be unique."""
