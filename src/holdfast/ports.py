"""What the core needs from outside: a store, an embedder, a clock, ids. And what edges need from the core: a service.

A store runs a piece of work inside one transaction, in a thread of its own choosing. A `Reader` and a `Transaction`
are bound to the grant they were opened with: what the grant does not reach cannot be read, counted or written through
them. All methods on them are plain calls; `read` and `write` are awaited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntFlag, StrEnum
from typing import NamedTuple, Protocol, TypeVar

from holdfast.domain.access import Action, Actor, Grant
from holdfast.domain.forgetting import Doomed as Doomed
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.ids import JobId, MemoryId, MessageId, TurnId
from holdfast.domain.jobs import Job, JobKind, JobStatus, NewJob
from holdfast.domain.memory import Candidate as Candidate
from holdfast.domain.memory import Plane, Status, Trust, Validity
from holdfast.domain.operations import Operation
from holdfast.domain.ranking import FloatArray, IntArray
from holdfast.domain.resources import Document as Document
from holdfast.domain.resources import Resource
from holdfast.domain.results import Finding, Record
from holdfast.domain.scope import Partition, Scope
from holdfast.domain.searching import ListFilter as ListFilter
from holdfast.domain.searching import Nearest as Nearest
from holdfast.domain.searching import NearestState as NearestState
from holdfast.domain.searching import Order as Order
from holdfast.domain.searching import QueryVector as QueryVector
from holdfast.domain.searching import Ranked as Ranked
from holdfast.domain.searching import Scored as Scored
from holdfast.domain.searching import VectorBlock as VectorBlock
from holdfast.domain.searching import Wanted as Wanted
from holdfast.domain.transcript import Metadata, Role
from holdfast.domain.users import User

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Clock(Protocol):
    def now(self) -> datetime: ...


class Ids(Protocol):
    def new(self, prefix: str) -> str:
        """A new id, greater than every id this has given before."""


# --- embedding and analysis ------------------------------------------------------------------------------------------


class Purpose(StrEnum):
    DOCUMENT = "document"
    QUERY = "query"


class Embedder(Protocol):
    """Texts to unit vectors.

    `fingerprint` changes whenever the vectors would: model, weights, runtime. `local` embedders answer in
    milliseconds without a network, so `add` waits for them.
    """

    @property
    def fingerprint(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    @property
    def local(self) -> bool: ...

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        """One row of float32 per text, each of length one."""

    async def close(self) -> None: ...


class Flag(IntFlag):
    """What analysis found in a text, once, when it was indexed."""

    NONE = 0
    TIME_EXPRESSION = 1
    QUESTION_ONLY = 2
    LONG = 4
    ENDS_ASKING = 8


@dataclass(frozen=True, slots=True)
class Analysis:
    """A text's terms as packed hashes and counts, how many terms it has, what it is like, and its pieces to embed."""

    terms: bytes
    length: int
    flags: Flag
    pieces: tuple[str, ...]


class Analyzer(Protocol):
    @property
    def version(self) -> int:
        """Grows when the analysis of the same text would differ: then the store re-indexes itself."""

    def analyze(self, text: str) -> Analysis: ...


# --- what stores hand to search ---------------------------------------------------------------------------------------


class IndexRow(NamedTuple):
    """One record as search sees it: no text, moments in microseconds. `number` is the store's own and never leaves."""

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
    """One piece of a record, embedded; float16, little-endian."""

    number: int
    piece: int
    vector: bytes


@dataclass(frozen=True, slots=True)
class Delta:
    """What changed in a partition after `since`: rows new or changed (with all their vectors), and numbers removed."""

    change: int
    rows: Sequence[IndexRow]
    vectors: Sequence[VectorRow]
    removed: Sequence[int]
    scopes: dict[int, Scope]


# --- the store --------------------------------------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True)
class NewTurn:
    id: TurnId
    scope: Scope
    source: str | None
    recorded_at: datetime
    messages: Sequence[NewMessage]


@dataclass(frozen=True, slots=True)
class NewRevision:
    """A new memory, or a further revision of one: then `supersedes` is the revision it replaces."""

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
    analysis: Analysis
    vectors: Sequence[bytes] = ()
    supersedes: int | None = None
    slot: str | None = None


@dataclass(frozen=True, slots=True)
class StoredMessages:
    """Per given message, its id: an existing one's where it was there already, None where it was forgotten."""

    ids: tuple[MessageId | None, ...]
    new: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Answer:
    """A stored answer to an idempotent call: the digest of the request, and JSON of ids and counts. Never text."""

    digest: str
    body: str


@dataclass(frozen=True, slots=True)
class Unindexed:
    """A record that waits for its vectors or its analysis."""

    number: int
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Indexed:
    """What indexing made of one record. `analysis` is None where only the vectors are new."""

    number: int
    vectors: Sequence[bytes]
    analysis: Analysis | None = None


class Reader(Protocol):
    """A consistent view of what a grant reaches."""

    # search
    def partitions(self) -> Sequence[Partition]:
        """Those that exist and that the grant reaches."""

    def change_of(self, partition: Partition) -> int:
        """A number that grows with every change of the partition; 0 if it does not exist."""

    def delta(self, partition: Partition, since: int, embedder: str, vectors_after: int = 0) -> Delta:
        """What changed after `since`; vectors only of what changed after `vectors_after`, too."""

    def nearest(self, partition: Partition, embedder: str) -> Nearest | None:
        """The partition's approximate index, if there is one that can be used."""

    def nearest_due(self, embedder: str, least: int) -> Sequence[Partition]:
        """Partitions of at least so many records that have no approximate index, or one that lags far behind."""

    def fetch(self, numbers: Sequence[int]) -> dict[int, Record]:
        """Records by the store's number, with text and evidence."""

    # look-up
    def find(self, record_id: str, as_of: datetime | None = None) -> tuple[int, Record] | None:
        """A message, superseded or not, or a memory's revision that was current then (by default now); its number."""

    def revisions(self, record_id: str) -> Sequence[Record]:
        """Oldest first; empty if there is no such memory or message.

        A message and the memory that took its place are one history, whichever of the two is asked for.
        """

    def page(self, wanted: ListFilter, before: str | None, limit: int) -> Sequence[Record]:
        """Newest first, with ids below `before`."""

    def answer(self, partition: Partition, key: str) -> Answer | None: ...

    def doomed(self, target: ForgetTarget) -> Doomed:
        """With what rests on nothing else, and with the messages in whose place the memories among it stand."""

    def user(self, user_id: str) -> tuple[User, bytes] | None:
        """A user of the grant's space, and the digest of its key. Only a grant over a whole space reaches users."""

    def user_with_key(self, key_digest: bytes) -> User | None: ...

    def users(self, after: str | None, limit: int) -> Sequence[User]:
        """In the order of their ids, with ids above `after`."""

    def resource(self, resource_id: str) -> Resource | None: ...

    def resource_of(self, scope: Scope, sha256: str, external_uri: str | None) -> Resource | None:
        """The one that was made of such a file, from that address, in exactly this scope."""

    def chunks_of(self, resource: Resource) -> Sequence[str]: ...  # the ids of those that were not forgotten

    def resources(self, before: str | None, limit: int) -> Sequence[Resource]:
        """Newest first, with ids below `before`."""

    def unsealed(self, scope: Scope) -> Sequence[MessageId]:
        """The conversation's messages since the last flush."""

    def counts(self, embedder: str, analyzer: int) -> dict[str, int]: ...

    def unindexed(self, embedder: str, analyzer: int, after: int, limit: int) -> Sequence[Unindexed]:
        """Records after that number whose vectors are of another embedder, or whose analysis is of another version."""

    def waiting(self, record_ids: Sequence[str], embedder: str, analyzer: int) -> Sequence[Unindexed]:
        """Those of the given records that `unindexed` would find."""

    def in_slot(self, scope: Scope, slot: str) -> Record | None:
        """The current memory of exactly this scope that fills the slot."""

    def fact(self, name: str) -> str | None: ...

    def job_counts(self) -> dict[str, int]:
        """By status."""

    def due(self, now: datetime) -> bool:
        """Whether a worker would find something to claim."""

    def jobs(self, status: JobStatus | None = None, limit: int = 100) -> Sequence[Job]: ...

    def operations(self, limit: int = 100) -> Sequence[Operation]: ...

    def integrity(self, embedder: str) -> tuple[dict[str, int], Sequence[Finding]]: ...


class Transaction(Reader, Protocol):
    """All of it commits, or nothing."""

    def add_turn(self, turn: NewTurn, embedder: str, analyzer: int) -> StoredMessages: ...

    def add_revision(self, revision: NewRevision, embedder: str, analyzer: int) -> int:
        """Its revision number. `RevisionConflict` if `supersedes` is not current."""

    def supersede(self, message_id: str, at: datetime) -> None:
        """From then on a memory counts in the message's place: it is found by its id alone, and by `as_of`.

        `RevisionConflict` if one does already.
        """

    def add_evidence(self, memory_id: str, evidence: Sequence[MessageId]) -> None:
        """Link the current revision to further messages."""

    def keep_answer(self, partition: Partition, key: str, answer: Answer, at: datetime) -> None: ...

    def add_resource(self, resource: Resource, chunks: Sequence[NewRevision], embedder: str, analyzer: int) -> None:
        """Add it with its chunks: new memories of the same scope and moment, whose source is the resource's uri."""

    def put_user(self, user: User, key_digest: bytes) -> None:
        """Add it, or replace what is known of it."""

    def seal(self, scope: Scope) -> int: ...

    def forget(self, doomed: Doomed, at: datetime) -> tuple[int, int]:
        """How many tombstones were left, and how many of the records can still be found (0)."""

    def index(self, entries: Iterable[Indexed], embedder: str, analyzer: int) -> None: ...

    def mark_stale(self) -> int:
        """Make `unindexed` find every record, while search goes on with what there is; how many there are."""

    def put_fact(self, name: str, value: str) -> None:
        """Keep a fact about the store itself."""

    def enqueue(self, job_id: JobId, job: NewJob, at: datetime) -> JobId:
        """Queue it. Work of a kind that is idempotent and queued already is not queued twice."""

    def claim(self, kinds: frozenset[JobKind], now: datetime, lease: timedelta) -> Job | None:
        """Take the oldest due job, or one whose lease ran out."""

    def extend(self, job: Job, now: datetime, lease: timedelta, done: int, total: int) -> None:
        """`LeaseLost` if somebody else holds the job now."""

    def finish(self, job: Job, status: JobStatus, now: datetime, error: str | None = None) -> None:
        """`LeaseLost` if somebody else holds the job now: then nothing of this transaction commits."""

    def retry(self, job: Job, now: datetime, run_after: datetime, error: str) -> None:
        """End this attempt as failed and queue the next."""

    def release(self, job: Job) -> None:
        """Give a claimed job back, to be claimed again at once; nothing if somebody else holds it."""

    def record(self, operation: Operation) -> None: ...


class Store(Protocol):
    """One durable place for everything. A write is acknowledged only after it reached the disk."""

    @property
    def location(self) -> str: ...

    async def read(self, grant: Grant, work: Callable[[Reader], T]) -> T: ...

    async def write(self, grant: Grant, work: Callable[[Transaction], T]) -> T: ...

    async def audit(self, operation: Operation) -> None:
        """Record a read or a refusal soon: within 100 ms, and on close. Waits only if very many are waiting already."""

    async def scrub(self) -> bool:
        """Make sure that no deleted byte is left in files. False if a reader is in the way: try again later."""

    @property
    def exact_because(self) -> str | None:
        """Why there are no approximate indexes in this store; None if there can be."""

    async def build_nearest(
        self, partition: Partition, embedder: str, at: datetime, go_on: Callable[[int, int], bool]
    ) -> Callable[[Transaction], None] | None:
        """Build an approximate index of what the partition holds; what makes it valid, in the transaction given.

        `go_on` hears how much is done of how much, and stops the work by answering False. None if it was stopped, or
        there is nothing to build of.
        """

    async def close(self) -> None: ...


# --- search -----------------------------------------------------------------------------------------------------------


class Searcher(Protocol):
    """Ranks what a reader reaches, by a vector made beforehand; or made on the way, where that takes microseconds."""

    def text_to_embed(self, reader: Reader, scope: Scope, query: str, wanted: Wanted) -> str:
        """What the query's vector is to be made of: the query without the names of the participants it can see.

        Whom a query names is matched against who said something, not against texts that mention the name.
        """

    def rank(
        self,
        reader: Reader,
        scope: Scope,
        query: str,
        vector: QueryVector,
        wanted: Wanted,
        target: int | None = None,
        *,
        explained: bool = False,
    ) -> Ranked: ...

    def browse(self, reader: Reader, scope: Scope, wanted: Wanted, order: Order) -> IntArray:
        """The numbers of all that a search could find, oldest first. What ranks is left out of account."""


# --- extraction -------------------------------------------------------------------------------------------------------


class Extractor(Protocol):
    @property
    def name(self) -> str: ...

    async def extract(self, messages: Sequence[Record], subject: str | None) -> Sequence[Candidate]: ...


# --- documents --------------------------------------------------------------------------------------------------------


class Documents(Protocol):
    """Reads files that somebody gave, whoever made them."""

    async def read(self, content: bytes, media_type: str | None, name: str) -> Document:
        """`InvalidDocument` if it is not what it says, cannot be read, or is too large."""


# --- the service ------------------------------------------------------------------------------------------------------


class Verb(Protocol[T_co]):
    """One request, made by an edge and carried out behind the gate. Each is a frozen dataclass of the runtime's."""

    @property
    def scope(self) -> Scope: ...

    def answers(self) -> T_co:
        """Never called: it names the type of the verb's result."""


class Service(Protocol):
    """What every edge calls.

    If it is `loopless`, calls that only read or write records need no event loop: without one they block their thread.
    A store or an embedder says so of itself by an attribute of that name, if it is so.
    """

    @property
    def loopless(self) -> bool: ...

    async def perform(self, actor: Actor, action: Action, make: Callable[[], Verb[T]], *, space: str) -> T:
        """Make the request and carry it out. One that cannot even be made leaves its audit row too, in `space`."""

    async def close(self) -> None: ...


class Directory(Protocol):
    """Who a key belongs to."""

    async def user_of(self, key: str) -> User | None:
        """None if nobody has this key, or its user was revoked: the same work whatever the outcome."""
