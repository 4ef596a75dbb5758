"""Store port: one durable place for everything, read and written within grants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from holdfast.domain.access import ActorKind, Grant
from holdfast.domain.forgetting import ForgetPlan, ForgetTarget
from holdfast.domain.ids import JobId, MessageId
from holdfast.domain.jobs import Job, JobKind, JobStatus, NewJob
from holdfast.domain.operations import Operation
from holdfast.domain.resources import Resource
from holdfast.domain.results import Finding, Record
from holdfast.domain.scope import Partition, Scope
from holdfast.domain.search import ListFilter, NearestIndex
from holdfast.domain.users import User
from holdfast.ports.control import ControlReader, ControlTransaction
from holdfast.ports.records import (
    IndexUpdate,
    NewRevision,
    NewTurn,
    PartitionDelta,
    StoredMessages,
    StoredResponse,
    UnindexedRecord,
)
from holdfast.ports.transcripts import TranscriptReader, TranscriptTransaction

T = TypeVar("T")


class Reader(TranscriptReader, ControlReader, Protocol):
    """A consistent snapshot of what a grant reaches."""

    # search
    def partitions(self) -> Sequence[Partition]:
        """Return the existing partitions that the grant reaches."""

    def change_of(self, partition: Partition) -> int:
        """Return a counter that grows with every change of the partition; 0 if it does not exist."""

    def delta(self, partition: Partition, since: int, embedder: str, vectors_after: int = 0) -> PartitionDelta:
        """Return the changes after `since`; vectors only of records that changed after `vectors_after`, too."""

    def nearest(self, partition: Partition, embedder: str) -> NearestIndex | None:
        """Return the partition's approximate index, if there is a usable one."""

    def nearest_due(self, embedder: str, least: int) -> Sequence[Partition]:
        """Return partitions of at least `least` records whose approximate index is missing or far behind."""

    def fetch(self, numbers: Sequence[int]) -> dict[int, Record]:
        """Return records by the store's number, with text and evidence."""

    # look-up
    def find(self, record_id: str, as_of: datetime | None = None) -> tuple[int, Record] | None:
        """Return the number and the record: a message, superseded or not, or the memory revision current at `as_of`."""

    def revisions(self, record_id: str) -> Sequence[Record]:
        """Return all revisions, oldest first; empty if there is no such memory or message.

        A message and the memory that superseded it share one history, by either id.
        """

    def page(self, wanted: ListFilter, before: str | None, limit: int) -> Sequence[Record]:
        """Return records with ids below `before`, newest first."""

    def answer(self, partition: Partition, key: str) -> StoredResponse | None: ...

    def holding(self) -> Sequence[Partition]:
        """Return those of `partitions` with records in the grant's scope, such as in its conversation."""

    def doomed(self, target: ForgetTarget) -> ForgetPlan:
        """Plan a forget: the target, memories derived only from it, and messages that its memories superseded."""

    def user(self, user_id: str, kind: ActorKind = ActorKind.USER) -> tuple[User, bytes] | None:
        """Return a credential of the grant's space, and the digest of its key. An agent and a user may share an id.

        Only a grant over a whole space reaches users.
        """

    def user_with_key(self, key_digest: bytes) -> User | None:
        """Return the credential with this key, of any kind."""

    def users(self, after: str | None, limit: int, kind: ActorKind = ActorKind.USER) -> Sequence[User]:
        """Return credentials of that kind with ids above `after`, ordered by id."""

    def resource(self, resource_id: str) -> Resource | None: ...

    def resource_of(self, scope: Scope, sha256: str, external_uri: str | None) -> Resource | None:
        """Return the resource of this file and address in exactly this scope."""

    def chunks_of(self, resource: Resource) -> Sequence[str]: ...  # ids, without forgotten ones

    def resources(self, before: str | None, limit: int) -> Sequence[Resource]:
        """Return resources with ids below `before`, newest first."""

    def unsealed(self, scope: Scope) -> Sequence[MessageId]:
        """Return the conversation's messages since the last flush."""

    def counts(self, embedder: str, analyzer: int) -> dict[str, int]: ...

    def unindexed(self, embedder: str, analyzer: int, after: int, limit: int) -> Sequence[UnindexedRecord]:
        """Return records after that number with vectors of another embedder, or an analysis of another version."""

    def waiting(self, record_ids: Sequence[str], embedder: str, analyzer: int) -> Sequence[UnindexedRecord]:
        """Return those of the given records that `unindexed` would return."""

    def in_slot(self, scope: Scope, slot: str) -> Record | None:
        """Return the current memory in the slot, of exactly this scope."""

    def fact(self, name: str) -> str | None: ...

    def job_counts(self) -> dict[str, int]:
        """Count jobs by status."""

    def due(self, now: datetime, kinds: frozenset[JobKind] | None = None) -> bool:
        """True if a worker of these kinds, by default all, would find a job to claim."""

    def jobs(self, status: JobStatus | None = None, limit: int = 100) -> Sequence[Job]: ...

    def operations(self, limit: int = 100) -> Sequence[Operation]: ...

    def integrity(self, embedder: str) -> tuple[dict[str, int], Sequence[Finding]]: ...


class Transaction(Reader, TranscriptTransaction, ControlTransaction, Protocol):
    """A write transaction: all of it commits, or nothing."""

    def add_turn(self, turn: NewTurn, embedder: str, analyzer: int) -> StoredMessages:
        """Add a turn; raises `DuplicateId`, writing nothing, if the host's turn or another message of an id exists."""

    def add_revision(self, revision: NewRevision, embedder: str, analyzer: int) -> int:
        """Add it and return its revision number; raises `RevisionConflict` if `supersedes` is not current."""

    def supersede(self, message_id: str, at: datetime) -> None:
        """Mark a message as superseded by a memory: from then on it is found by id or `as_of` only.

        Raises `RevisionConflict` if it is superseded already.
        """

    def add_evidence(self, memory_id: str, evidence: Sequence[MessageId]) -> None:
        """Link the current revision to further messages."""

    def keep_answer(self, partition: Partition, key: str, answer: StoredResponse, at: datetime) -> None: ...

    def add_resource(self, resource: Resource, chunks: Sequence[NewRevision], embedder: str, analyzer: int) -> None:
        """Add it with its chunks: new memories of the same scope and time, whose source is the resource's URI."""

    def put_user(self, user: User, key_digest: bytes) -> None:
        """Insert or replace a user."""

    def seal(self, scope: Scope) -> int: ...

    def forget(self, doomed: ForgetPlan, at: datetime) -> tuple[int, int]:
        """Forget, and return the number of tombstones, and of records that can still be found (0)."""

    def index(self, entries: Iterable[IndexUpdate], embedder: str, analyzer: int) -> None: ...

    def mark_stale(self) -> int:
        """Make `unindexed` return every record, and return their number. Search continues with the old index."""

    def put_fact(self, name: str, value: str) -> None:
        """Store a fact about the store itself."""

    def enqueue(self, job_id: JobId, job: NewJob, at: datetime) -> JobId:
        """Queue a job. An idempotent kind that is queued already is not queued twice."""

    def claim(self, kinds: frozenset[JobKind], now: datetime, lease: timedelta) -> Job | None:
        """Claim the oldest due job, or one whose lease expired."""

    def extend(self, job: Job, now: datetime, lease: timedelta, done: int, total: int) -> None:
        """Extend the lease; raises `LeaseLost` if another worker holds the job now."""

    def finish(self, job: Job, status: JobStatus, now: datetime, error: str | None = None) -> None:
        """End an attempt; raises `LeaseLost` if another worker holds the job now: then this transaction does not
        commit. A job that succeeded counts as fully done, whatever progress was reported.
        """

    def retry(self, job: Job, now: datetime, run_after: datetime, error: str) -> None:
        """End this attempt as failed and queue the next."""

    def release(self, job: Job) -> None:
        """Give a claimed job back, to be claimed again at once; no effect if another worker holds it."""

    def record(self, operation: Operation) -> None: ...


class Store(Protocol):
    """A durable store. A write is acknowledged only after it reached the disk."""

    @property
    def location(self) -> str: ...

    async def read(self, grant: Grant, work: Callable[[Reader], T]) -> T: ...

    async def write(self, grant: Grant, work: Callable[[Transaction], T]) -> T: ...

    async def audit(self, operation: Operation) -> None:
        """Record a read or a refusal within 100 ms, and on close. Waits only under backpressure of a full queue."""

    async def audited(self) -> None:
        """Wait until every earlier row of `audit` is in the store."""

    async def scrub(self) -> bool:
        """Remove all deleted bytes from the files. False if a reader prevents it: try again later."""

    @property
    def exact_because(self) -> str | None:
        """Reason why this store has no approximate indexes; None if it can have them."""

    async def build_nearest(
        self, partition: Partition, embedder: str, at: datetime, go_on: Callable[[int, int], bool]
    ) -> Callable[[Transaction], None] | None:
        """Build an approximate index of the partition; returns a function that activates it in a transaction.

        `go_on(done, total)` is called for progress, and stops the work by returning False. None if it was stopped, or
        there is nothing to index.
        """

    async def close(self) -> None: ...
