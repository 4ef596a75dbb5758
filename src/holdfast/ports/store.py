"""The store: one durable place for everything, read and written within grants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from holdfast.domain.access import ActorKind, Grant
from holdfast.domain.forgetting import Doomed, ForgetTarget
from holdfast.domain.ids import JobId, MessageId
from holdfast.domain.jobs import Job, JobKind, JobStatus, NewJob
from holdfast.domain.operations import Operation
from holdfast.domain.resources import Resource
from holdfast.domain.results import Finding, Record
from holdfast.domain.scope import Partition, Scope
from holdfast.domain.searching import ListFilter, Nearest
from holdfast.domain.users import User
from holdfast.ports.control import ControlReader, ControlTransaction
from holdfast.ports.records import Answer, Delta, Indexed, NewRevision, NewTurn, StoredMessages, Unindexed
from holdfast.ports.transcripts import TranscriptReader, TranscriptTransaction

T = TypeVar("T")


class Reader(TranscriptReader, ControlReader, Protocol):
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

    def holding(self) -> Sequence[Partition]:
        """Those of `partitions` in which something is kept within the grant's scope, such as in its conversation."""

    def doomed(self, target: ForgetTarget) -> Doomed:
        """With what rests on nothing else, and with the messages in whose place the memories among it stand."""

    def user(self, user_id: str, kind: ActorKind = ActorKind.USER) -> tuple[User, bytes] | None:
        """A credential of the grant's space, and the digest of its key: an agent may be called as a user is.

        Only a grant over a whole space reaches users.
        """

    def user_with_key(self, key_digest: bytes) -> User | None:
        """Of whichever kind."""

    def users(self, after: str | None, limit: int, kind: ActorKind = ActorKind.USER) -> Sequence[User]:
        """Of that kind, in the order of their ids, with ids above `after`."""

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

    def due(self, now: datetime, kinds: frozenset[JobKind] | None = None) -> bool:
        """Whether a worker that does these kinds, by default all, would find something to claim."""

    def jobs(self, status: JobStatus | None = None, limit: int = 100) -> Sequence[Job]: ...

    def operations(self, limit: int = 100) -> Sequence[Operation]: ...

    def integrity(self, embedder: str) -> tuple[dict[str, int], Sequence[Finding]]: ...


class Transaction(Reader, TranscriptTransaction, ControlTransaction, Protocol):
    """All of it commits, or nothing."""

    def add_turn(self, turn: NewTurn, embedder: str, analyzer: int) -> StoredMessages:
        """`DuplicateId` if the host's turn, or another message of such an id, is there; nothing was written then."""

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
        """`LeaseLost` if somebody else holds the job now: then nothing of this transaction commits. What succeeded is
        done, all of it, however much of that was counted on the way.
        """

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

    async def audited(self) -> None:
        """Return when every row that `audit` was given before is in the store."""

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
