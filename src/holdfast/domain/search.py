"""Options and results of a search, and the approximate index that a large partition may have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, NamedTuple, Protocol, TypeAlias, overload

from holdfast.domain.arguments import Rule, many, number, text_rule, whole_number
from holdfast.domain.checks import MAX_FILTER_CHARS, MAX_QUERY_CHARS, checked_real
from holdfast.domain.conditions import Condition, checked_condition
from holdfast.domain.memory import Plane, Status
from holdfast.domain.ranking import FloatArray, HalfArray, IntArray
from holdfast.domain.results import HitKind, ScoreBasis, Way
from holdfast.domain.transcript import Role
from holdfast.errors import InvalidInput

# The vector of a query: made beforehand, a function that makes it from a text, or none.
QueryVector: TypeAlias = FloatArray | Callable[[str], FloatArray] | None


MAX_TOP_K = 1_000


class Method(StrEnum):
    """The ranking of a search: words, meaning and hints together; words alone; or meaning alone."""

    HYBRID = "hybrid"
    KEYWORD = "keyword"
    VECTOR = "vector"


class Order(StrEnum):
    """The time to order records by. A memory counts as said when it was recorded."""

    SAID = "said"
    RECORDED = "recorded"


def check_radius(value: object, field: str) -> None:
    if not 0 <= checked_real(value, field) <= 1:
        raise InvalidInput(field, f"must be a similarity from 0 to 1, not {value!r:.40}")


Query = Annotated[str, text_rule(MAX_QUERY_CHARS, "QUERY"), "A question, or some words."]
# Longer than any stored name: an unknown one just finds nothing.
_Name = Annotated[str, text_rule(MAX_FILTER_CHARS, "NAME")]
Kind = Annotated[HitKind, "message or memory."]
Planes = Annotated[frozenset[Plane], many(len(Plane), noun="PLANE"), "Memories of these planes, such as long_term."]
Sender = Annotated[_Name, "Messages of this sender."]
Source = Annotated[_Name, "Records from this source."]
AsOf = Annotated[datetime, "As known at this time, such as 2026-11-15T09:30."]
ValidAt = Annotated[datetime, "As true at this time."]


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Options of a search, besides the query text. `as_of` None means now, other times None mean unbounded.

    `condition` limits the records that the search sees, like the scope: others do not affect any score. `radius` is
    the least cosine of a record's own text with the query; a record without a vector is outside every radius.
    """

    top_k: Annotated[int, whole_number(1, MAX_TOP_K), "At most N results."] = 10
    kind: Kind | None = None
    planes: Planes | None = None
    sender: Sender | None = None
    role: Annotated[Role | None, "Messages of this role."] = None
    source: Source | None = None
    said_from: Annotated[datetime | None, "Messages said at this time or later."] = None
    said_to: Annotated[datetime | None, "Messages said before this time."] = None
    as_of: AsOf | None = None
    valid_at: ValidAt | None = None
    min_score: Annotated[float | None, number(0, 1, "SCORE"), "The minimum score, from 0 (all) to 1."] = None
    quarantined: Annotated[bool, "Include quarantined memories."] = False
    method: Annotated[Method, "hybrid, keyword (by words alone) or vector (by meaning alone)."] = Method.HYBRID
    radius: Annotated[
        float | None, Rule(check_radius, "SIMILARITY", least=0, most=1), "The minimum similarity of meaning, 0 to 1."
    ] = None
    condition: Annotated[
        Condition | None, Rule(lambda value, _: checked_condition(value), "CONDITION"), "Records that meet a condition."
    ] = None


@dataclass(frozen=True, slots=True)
class ListFilter:
    """Filter of a list. `unsealed`: only messages that no flush has sealed."""

    kind: Kind | None = None
    planes: Planes | None = None
    sender: Sender | None = None
    source: Source | None = None
    status: Annotated[Status | None, "Records of this status."] = None
    as_of: AsOf | None = None
    valid_at: ValidAt | None = None
    unsealed: Annotated[bool, "Only messages that no flush has sealed."] = False


@dataclass(frozen=True, slots=True)
class ScoredCandidate:
    """A candidate: its number, its score, and its raw value, normalized value and weight per ranking part."""

    number: int
    score: float
    parts: dict[str, tuple[float, float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class LazyCandidates(Sequence[ScoredCandidate]):
    """Candidates of which only the numbers and scores are made at once; their parts are read when they are needed."""

    numbers: Sequence[int]
    scores: Sequence[float]
    read: Callable[[int], ScoredCandidate]

    def __len__(self) -> int:
        return len(self.scores)

    @overload
    def __getitem__(self, place: int) -> ScoredCandidate: ...
    @overload
    def __getitem__(self, place: slice) -> list[ScoredCandidate]: ...
    def __getitem__(self, place: int | slice) -> ScoredCandidate | list[ScoredCandidate]:
        if isinstance(place, slice):
            return [self.read(each) for each in range(*place.indices(len(self.scores)))]
        return self.read(range(len(self.scores))[place])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class RankedCandidates:
    """Ranked candidates, best first. `target` is the record that an explanation asked about, with its rank, if it was a
    candidate; `why_absent` is the reason why it could not be returned, whatever its rank.

    `ways` are the search methods of the partitions. If one was approximate, an explanation has `recall`: the share of
    the best that an exact search would have found too; None if not measured. `basis` is that of the scores, unless
    there are none.
    """

    best: LazyCandidates
    candidates: int
    understood: dict[str, str]
    target: tuple[int, ScoredCandidate] | None = None
    why_absent: str | None = None
    ways: tuple[Way, ...] = ()
    recall: float | None = None
    basis: ScoreBasis | None = None

    @property
    def floor(self) -> float:
        """The least score of a record that bears on the query."""
        return self.basis.floor if self.basis else 0.0


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


class ViewCacheUsage(NamedTuple):
    """The cache of partitions that searches read: what it holds now, and what happened since the process began."""

    bytes: int
    limit_bytes: int
    partitions: int
    hits: int
    misses: int
    evictions: int
