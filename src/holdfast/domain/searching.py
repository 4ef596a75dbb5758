"""What a search asks for and what it answers with; and the approximate index that a large partition may have."""

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

# What a query means: a vector made beforehand, what makes one of a text at once, or nothing.
QueryVector: TypeAlias = FloatArray | Callable[[str], FloatArray] | None


class Method(StrEnum):
    """What a search ranks by: words, meaning and hints together; words alone; or meaning alone."""

    HYBRID = "hybrid"
    KEYWORD = "keyword"
    VECTOR = "vector"


class Order(StrEnum):
    """By which time records are put in order. A memory was said when it was recorded."""

    SAID = "said"
    RECORDED = "recorded"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a search asks for, besides the words. Times of None mean now and always.

    `condition` decides what the search sees at all, like the scope: nothing outside it moves a score. `radius` is the
    least cosine of a record's own text with the query; a record without a vector is outside every radius.
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
    """Which records a list holds. `unsealed`: only messages that no flush has sealed."""

    kind: HitKind | None = None
    planes: frozenset[Plane] | None = None
    sender: str | None = None
    source: str | None = None
    status: Status | None = None
    as_of: datetime | None = None
    valid_at: datetime | None = None
    unsealed: bool = False


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate: its number, score, and per part of the ranking its raw value, normalized value and weight."""

    number: int
    score: float
    parts: dict[str, tuple[float, float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Best first. `target` is the record that an explanation asked about, with its rank, if it was a candidate.

    `why_absent` says why that record could not come, whatever its rank.

    `ways` says how each partition was searched. Where one was searched approximately, an explanation says which share
    of the best an exact search would have found too: `recall`, None if that was not measured.
    """

    best: Sequence[Scored]
    candidates: int
    understood: dict[str, str]
    target: tuple[int, Scored] | None = None
    why_absent: str | None = None
    ways: tuple[Way, ...] = ()
    recall: float | None = None


class VectorBlock(NamedTuple):
    """Pieces of records, embedded: float16, the rows of one record together and in order, and whose each row is."""

    numbers: IntArray
    rows: HalfArray


@dataclass(frozen=True, slots=True)
class NearestState:
    """An approximate index of one partition's vectors of one embedder.

    It holds what had changed up to `change`; an index that the store itself keeps up to date is `live`, and holds
    everything. `recall` is the share of the nearest ten that it found of a sample, when it was built.
    """

    records: int
    change: int
    live: bool
    recall: float
    built_at: datetime


class Nearest(Protocol):
    """An approximate index that can be asked, for as long as its reader lives."""

    @property
    def state(self) -> NearestState: ...

    def ask(self, vector: FloatArray, limit: int, depth: int) -> Callable[[], IntArray]:
        """The numbers of about `limit` records, nearest first, each once. Some may be gone or changed since.

        What is returned tells them when it is called: until then, a server looks for them. `depth` says how widely they
        are looked for: more finds more of the nearest, and takes longer.
        """

    def vectors(self, numbers: IntArray) -> VectorBlock:
        """Those that the index holds of these records, none of which is named twice."""
