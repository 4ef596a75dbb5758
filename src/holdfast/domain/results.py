"""Results of the library's methods."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, NamedTuple

from holdfast.domain.checks import Scalar
from holdfast.domain.ids import JobId, MemoryId, MessageId, TurnId
from holdfast.domain.memory import Evidence, MemoryRecord, Plane, Status, Trust, Validity
from holdfast.domain.presentable import Presentable, PresentableList
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Message, Role
from holdfast.domain.users import User

Record = Message | MemoryRecord


class HitKind(StrEnum):
    """The kind of a record: a message is evidence, a memory was learned or written."""

    MESSAGE = "message"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class SkippedMessage(Presentable):
    """A message that was not stored, and why."""

    index: int
    reason: str
    message_id: MessageId | None = None


@dataclass(frozen=True, slots=True)
class Added(Presentable):
    """The result of `add`: one id per message, in order; None for one that was skipped and has no record."""

    turn_id: TurnId | None
    conversation: str
    message_ids: tuple[MessageId | None, ...]
    stored: int
    skipped: tuple[SkippedMessage, ...] = ()
    replayed: bool = False
    jobs: tuple[JobId, ...] = ()


@dataclass(frozen=True, slots=True)
class Flushed(Presentable):
    """The result of `flush`: the number of sealed messages, and the queued extraction jobs."""

    conversation: str
    messages: int
    jobs: tuple[JobId, ...] = ()
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Component(Presentable):
    """One part of a score: `raw` as measured, `normalized` over the candidates, `weight`, and their product."""

    name: str
    raw: float
    normalized: float
    weight: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Hit(Presentable):
    """A message or memory that matches, with its score and evidence.

    `relevant` is whether its score reaches the floor of `recall`: False for a record that does not bear on the query.
    `contradicts` are the ids of memories that say something else; only `explain` looks them up.
    """

    _summary: ClassVar[tuple[str, ...]] = ("score", "text", "sender", "trust", "id")
    _columns: ClassVar[tuple[str, ...]] = ("score", "text", "sender", "role", "trust", "said_at", "recorded_at", "id")

    id: str
    kind: HitKind
    text: str
    score: float
    scope: Scope
    evidence: tuple[Evidence, ...]
    recorded_at: datetime
    said_at: datetime | None = None
    sender: str | None = None
    role: Role | None = None
    external_id: str | None = None
    plane: Plane | None = None
    trust: Trust | None = None
    status: Status | None = None
    revision: int | None = None
    validity: Validity | None = None
    source: str | None = None
    metadata: dict[str, Scalar] = field(default_factory=dict)
    components: tuple[Component, ...] = ()
    relevant: bool = True
    contradicts: tuple[MemoryId, ...] = ()


@dataclass(frozen=True, slots=True)
class Absence(Presentable):
    """The reason why a memory or message was not returned; `rank` and `score` if it was a candidate."""

    id: str
    reason: str
    rank: int | None = None
    score: float | None = None
    cutoff: float | None = None
    components: tuple[Component, ...] = ()


@dataclass(frozen=True, slots=True)
class Way(Presentable):
    """The search method of one partition: exact, or by an approximate index.

    The index holds `indexed` records; `unindexed` ones were added or changed since, and are compared one by one.
    `index_recall` is the share of the nearest ten that the index found for a sample when it was built. An exact search
    has none of these, but a reason if the partition is large.
    """

    partition: str
    records: int
    approximate: bool
    reason: str | None = None
    indexed: int | None = None
    unindexed: int | None = None
    index_recall: float | None = None
    built_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MatchSignals(Presentable):
    """How well the leading hits of a search match, in the order of a calibration's weights.

    meaning  the largest cosine of a hit
    words    the largest share of the query's words in a hit with its neighbours
    own      the share of the query's words in the best hit
    bm25     the largest (saturated) word score of a hit
    lead     the strength of the best hit, less that of the weaker half of the others
    span     the largest cosine of all candidates, less the smallest
    size     the logarithm of the number of candidates, of at most 1,000

    Words count by how rare they are.
    """

    meaning: float = 0.0
    words: float = 0.0
    own: float = 0.0
    bm25: float = 0.0
    lead: float = 0.0
    span: float = 0.0
    size: float = 0.0


@dataclass(frozen=True, slots=True)
class ScoreBasis(Presentable):
    """The basis of the scores of one search.

    `answer` is how likely the records hold an answer, `floor` the least score of a hit that bears on the query.
    `ranking` is the version of the ranking that the calibration was fitted to.
    """

    calibration: str
    ranking: str
    answer: float
    floor: float
    signals: MatchSignals = MatchSignals()


@dataclass(frozen=True, slots=True)
class Explanation(Presentable):
    """An explained search. `query` is the parsed query, `ways` the search method of each partition.

    `recall` is the share of an exact search's hits that an approximate one found too; None if all was exact, or if
    there are too many records to compare. `basis` says how the scores were computed: from the signals of the leading
    hits, and from each hit's distance to the best. The contributions of a hit add up to its strength, which decides
    the order.
    """

    query: dict[str, str]
    hits: tuple[Hit, ...]
    candidates: int
    embedder: str
    absence: Absence | None = None
    ways: tuple[Way, ...] = ()
    recall: float | None = None
    basis: ScoreBasis | None = None


@dataclass(frozen=True, slots=True)
class Recall(PresentableList[Hit]):
    """Memory for a model: `message` is one labelled reference message, and `hits` are its lines, the best first.

    If nothing bears on the query, both are empty and `reason` says why. `omitted` counts what was left out.
    """

    _items: ClassVar[str] = "hits"

    hits: tuple[Hit, ...]
    message: str
    omitted: dict[str, int] = field(default_factory=dict)
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Page(PresentableList[Record]):
    """A page of records, newest first. `next_cursor` is None on the last."""

    items: tuple[Record, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Browsed(PresentableList[Record]):
    """Some records, in the requested order; `total` counts all that match."""

    items: tuple[Record, ...]
    total: int


@dataclass(frozen=True, slots=True)
class RememberResult(Presentable):
    memory: MemoryRecord
    replayed: bool = False


class StoreUsage(NamedTuple):
    """The size and the job queue of a whole store, for metrics. `failed_jobs` are those that nobody has retried.

    `overdue_seconds` is how long the oldest queued job has been due; 0 if none is.
    """

    bytes: int
    queued_jobs: int
    running_jobs: int
    failed_jobs: int
    overdue_seconds: float


@dataclass(frozen=True, slots=True)
class Stats(Presentable):
    """Counts of a scope. `pending_vectors` are records that wait for vectors: those that are found by words only, and
    the `stale_vectors`, found by their old vectors until new ones are made.

    `approximate` counts partitions with an approximate index; `users` those of the whole space.
    """

    messages: int
    memories: int
    conversations: int
    partitions: int
    tombstones: int
    pending_vectors: int
    jobs: dict[str, int]
    embedder: str
    approximate: int = 0
    users: int = 0
    resources: int = 0
    stale_vectors: int = 0

    @property
    def without_vectors(self) -> int:
        """Number of records that are found by words only."""
        return self.pending_vectors - self.stale_vectors


# The count in `Verification.checked` of rows without a checksum, which are not known to be sound.
UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True)
class Finding(Presentable):
    """A problem that `verify` found."""

    check: str
    problem: str


@dataclass(frozen=True, slots=True)
class Verification(Presentable):
    """The result of `verify`. `checked` counts rows by table, and those that have no checksum yet as `unchecked`.

    `unproven_operators` have keys that a caller without a credential made, when being on the same machine was enough;
    they are no damage, but whoever has such a key is an operator.
    """

    checked: dict[str, int]
    findings: tuple[Finding, ...]
    unproven_operators: tuple[User, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.findings


@dataclass(frozen=True, slots=True)
class RebuildResult(Presentable):
    records: int
    pending_vectors: int


@dataclass(frozen=True, slots=True)
class Copied(Presentable):
    """The result of a copy. `rows` include `records`. `resumed` if it continued an earlier copy that had stopped."""

    records: int
    rows: int
    resumed: bool


@dataclass(frozen=True, slots=True)
class StoreExamination:
    """The state of a store, examined without opening or changing it.

    `schema` is 0 if there is none yet, `newest` the one that this Holdfast creates. A store is `unfinished` if it is
    the target of a copy that has not ended.
    """

    store: str
    engine: str
    schema: int
    newest: int
    unfinished: bool
    bytes: int

    @property
    def ready(self) -> bool:
        return self.schema == self.newest and not self.unfinished
