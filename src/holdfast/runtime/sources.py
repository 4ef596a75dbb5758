"""What the control plane's own provider does in the engine: each is one verb, and each write one commit.

A capture is a message, sealed at once, with its extraction queued; a record is a memory. Both can be made again without
being there twice. Forgetting takes those that are there and names those that are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar

from holdfast.domain import ids
from holdfast.domain.access import Action, Grant
from holdfast.domain.contract import MAX_PAGE
from holdfast.domain.events import EventKind
from holdfast.domain.forgetting import ForgetReceipt, ForgetTarget
from holdfast.domain.ids import JobId, MemoryId, OperationId
from holdfast.domain.jobs import Cause, Job, JobFilter, JobKind, JobPage, NewJob
from holdfast.domain.memory import OPEN_PLANES, Memory, Plane, Status
from holdfast.domain.results import HitKind, Page, Record
from holdfast.domain.scope import Scope
from holdfast.domain.sourced import matches, noted_in
from holdfast.domain.times import from_micros, to_micros
from holdfast.domain.transcript import Draft
from holdfast.errors import Conflict, DuplicateId, IdempotencyConflict, InvalidInput, NotFound
from holdfast.ports import ListFilter, NewRevision, Reader, Transaction
from holdfast.runtime.activity import activity
from holdfast.runtime.add import Add
from holdfast.runtime.cursors import Paged, cursor_after
from holdfast.runtime.flush import sealed
from holdfast.runtime.forget import forgotten, scrubbed
from holdfast.runtime.idempotency import digest_of
from holdfast.runtime.perform import Core, Read, Write
from holdfast.runtime.remember import Ready, Remember, all_ready, later

# How many records one page looks at, where few of them have what is asked for.
_MOST_LOOKED_AT = 4_000
_STEP = 200
_MOST_OF_A_PROFILE = 200


@dataclass(frozen=True, slots=True)
class Kept:
    """What a capture or an upsert left: the records, whether or not they were there before, and the work queued."""

    record_ids: tuple[str, ...]
    written: int
    at: datetime
    jobs: tuple[JobId, ...] = ()


@dataclass(frozen=True, slots=True)
class Released:
    """What was forgotten, and what was not there, or out of reach."""

    forgotten: tuple[str, ...]
    missing: tuple[str, ...]
    receipt: ForgetReceipt | None = None


_USED = "idempotency_id: was used for another text; use a new id for each capture"


def _kept(result: Kept) -> dict[str, Any]:
    return {"record_ids": list(result.record_ids), "at": to_micros(result.at)}


def _replayed(kept: dict[str, Any]) -> Kept:
    return Kept(tuple(kept["record_ids"]), 0, from_micros(kept["at"]))


class _Keeping(Write[Any, Kept]):
    __slots__ = ()

    async def finish(self, core: Core, result: Kept, operation_id: OperationId) -> Kept:
        if result.jobs:
            core.wake()
        return result

    def touched(self, result: Kept) -> int:
        return result.written

    def named(self, result: Kept) -> tuple[str, ...]:
        return result.record_ids


@dataclass(frozen=True, slots=True)
class KeepResidue(_Keeping):
    """A message into a conversation, sealed in the same commit. One that was forgotten is not brought back."""

    action: ClassVar[Action] = Action.CAPTURE
    scope: Scope
    draft: Draft
    source: str | None = None
    cause: Cause | None = None
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        self._add()

    def _add(self) -> Add:
        return Add(self.scope, (self.draft,), source=self.source)

    async def prepare(self, core: Core, grant: Grant) -> tuple[Core, Add, Any]:
        add = self._add()
        return core, add, await add.prepare(core, grant)

    def apply(self, transaction: Transaction, prepared: tuple[Core, Add, Any]) -> Kept:
        core, add, turn = prepared
        try:
            added = add.added(transaction, turn, self.cause)
        except DuplicateId:
            if self.idempotency_key is None:
                raise
            # What it is known by is made of the key: no message of that id was ever given.
            raise IdempotencyConflict(_USED) from None
        jobs = added.jobs
        if added.stored:
            jobs = (*jobs, *sealed(self, transaction, core, self.scope.thread, self.cause)[1])
        known = tuple(str(found) for found in added.message_ids if found is not None)
        return Kept(known, added.stored, core.clock.now(), jobs)

    def digest(self) -> str:
        return digest_of(self.action, self.scope.given(), self.source, str(self.draft))

    def kept(self, result: Kept) -> dict[str, Any]:
        return _kept(result)

    def replayed(self, transaction: Transaction, kept: dict[str, Any]) -> Kept:
        """Whatever became of it since; what it set off was set off the first time."""
        return _replayed(kept)


@dataclass(frozen=True, slots=True)
class PutRecord:
    """A memory to be written. With a `slot` it takes the place of what fills that in exactly its scope.

    One that is written `once` takes nobody's place: what fills its slot must be the same.
    """

    text: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    slot: str | None = None
    once: bool = False


@dataclass(frozen=True, slots=True)
class PutRecords(_Keeping):
    """Memories, all of them in one commit or none."""

    action: ClassVar[Action] = Action.RECORD_UPSERT
    scope: Scope
    records: tuple[PutRecord, ...]
    source: str | None = None
    idempotency_key: str | None = None
    cause: Cause | None = None

    def __post_init__(self) -> None:
        if not self.records:
            raise InvalidInput("records", "there are none; give at least one")
        for index, record in enumerate(self.records):
            try:
                self._remember(record)
            except InvalidInput as error:
                raise type(error)(f"records[{index}].{error.field}", error.problem) from None

    def _remember(self, record: PutRecord) -> Remember:
        return Remember(self.scope, record.text, source=self.source, metadata=record.metadata)

    async def prepare(self, core: Core, grant: Grant) -> list[Ready]:
        return await all_ready(core, grant, [record.text for record in self.records])

    def apply(self, transaction: Transaction, prepared: list[Ready]) -> Kept:
        core = prepared[0].core
        put = [self._put(transaction, each, made) for each, made in zip(self.records, prepared, strict=True)]
        new = tuple(dict.fromkeys(memory_id for memory_id, written in put if written))
        jobs: tuple[JobId, ...] = ()
        if new and not core.embedder.local:
            jobs = (self.enqueue(transaction, core, NewJob(JobKind.INDEX, self.scope, new, self.cause)),)
        return Kept(tuple(memory_id for memory_id, _ in put), len(new), prepared[0].now, jobs)

    def digest(self) -> str:
        records = [[each.text, dict(each.metadata), each.slot, each.once] for each in self.records]
        return digest_of(self.action, self.scope.given(), records, self.source)

    def kept(self, result: Kept) -> dict[str, Any]:
        return _kept(result)

    def replayed(self, transaction: Transaction, kept: dict[str, Any]) -> Kept:
        """Whatever became of them since: what was written later stays, and what was forgotten stays forgotten."""
        return _replayed(kept)

    def _put(self, transaction: Transaction, record: PutRecord, made: Ready) -> tuple[str, bool]:
        """The memory's id, and whether anything was written."""
        old = None if record.slot is None else transaction.in_slot(self.scope, record.slot)
        revision = self._remember(record).revision(MemoryId(made.core.ids.new(ids.MEMORY)), made)
        if isinstance(old, Memory):
            if old.text == record.text and dict(old.metadata) == dict(record.metadata):
                return old.id, False
            if record.once:
                raise IdempotencyConflict(_USED)
            revision = _in_place_of(old, revision)
        core = made.core
        transaction.add_revision(replace(revision, slot=record.slot), core.embedder.fingerprint, core.analyzer.version)
        return revision.id, True


def _in_place_of(old: Memory, new: NewRevision) -> NewRevision:
    recorded_at = later(new.recorded_at, old)
    return replace(new, id=old.id, recorded_at=recorded_at, supersedes=old.revision, reason="written anew")


@dataclass(frozen=True, slots=True)
class ForgetRecords(Write[Core, Released]):
    """Forget several records by their ids; those that are not there are no reason to keep the others."""

    action: ClassVar[Action] = Action.FORGET
    scope: Scope
    record_ids: tuple[str, ...]
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        ForgetTarget(ids=self.record_ids)

    async def prepare(self, core: Core, grant: Grant) -> Core:
        return core

    def apply(self, transaction: Transaction, prepared: Core) -> Released:
        found = transaction.doomed(ForgetTarget(ids=self.record_ids))
        there = {*found.message_ids, *found.memory_ids}
        gone = tuple(each for each in self.record_ids if each in there)
        missing = tuple(each for each in self.record_ids if each not in there)
        if not gone:
            return Released((), missing)
        return Released(gone, missing, forgotten(self, transaction, prepared, found))

    async def finish(self, core: Core, result: Released, operation_id: OperationId) -> Released:
        if result.receipt is None:
            return result
        return replace(result, receipt=await scrubbed(core, result.receipt, operation_id))

    def kept(self, result: Released) -> dict[str, Any]:
        return {"forgotten": result.forgotten, "missing": result.missing}

    def replayed(self, transaction: Transaction, kept: dict[str, Any]) -> Released:
        return Released(tuple(kept["forgotten"]), tuple(kept["missing"]))

    def touched(self, result: Released) -> int:
        return 0 if result.receipt is None else result.receipt.tombstones

    def named(self, result: Released) -> tuple[str, ...]:
        return result.forgotten


@dataclass(frozen=True, slots=True)
class PageRecords(Paged, Read[None, Page]):
    """Records that count, newest first, with these entries in what is noted of them.

    Where few have them, a page may hold less than was asked for, and still not be the last.
    """

    action: ClassVar[Action] = Action.LIST
    scope: Scope
    noted: Mapping[str, Any] = field(default_factory=dict)
    limit: int = 50
    cursor: str | None = None

    def __post_init__(self) -> None:
        self._check_page(MAX_PAGE)

    async def prepare(self, core: Core, grant: Grant) -> None:
        return None

    def apply(self, reader: Reader, prepared: None) -> Page:
        before = self._before()
        found: list[Record] = []
        step = max(_STEP, self.limit + 1) if self.noted else self.limit + 1
        for _ in range(_MOST_LOOKED_AT // step if self.noted else 1):
            rows = reader.page(_LISTED, before, step)
            found += [row for row in rows if not self.noted or matches(noted_in(row.metadata).metadata, self.noted)]
            if len(found) > self.limit:
                return self._ending(found[: self.limit], _place(found[self.limit - 1]))
            if len(rows) < step:
                return self._ending(found, None)
            before = _place(rows[-1])
        return self._ending(found, before)

    def _ending(self, items: Sequence[Record], last: str | None) -> Page:
        return Page(tuple(items), None if last is None else cursor_after(self._query(), last))

    def _query(self) -> str:
        return digest_of(self.scope.given(), dict(self.noted))[:16]

    def touched(self, result: Page) -> int:
        return len(result.items)


_LISTED = ListFilter(planes=OPEN_PLANES, status=Status.ACCEPTED)


def _place(record: Record) -> str:
    return record.id.partition("_")[2]


@dataclass(frozen=True, slots=True)
class ReadProfile(Read[Core, tuple[Memory, ...]]):
    """What is known for good about whom the scope is of: memories that count and are true now, the surest first."""

    action: ClassVar[Action] = Action.PROFILE
    scope: Scope

    async def prepare(self, core: Core, grant: Grant) -> Core:
        return core

    def apply(self, reader: Reader, prepared: Core) -> tuple[Memory, ...]:
        wanted = ListFilter(
            kind=HitKind.MEMORY,
            planes=frozenset({Plane.LONG_TERM, Plane.SHARED_FACT}),
            status=Status.ACCEPTED,
            valid_at=prepared.clock.now(),
        )
        found = [each for each in reader.page(wanted, None, _MOST_OF_A_PROFILE) if isinstance(each, Memory)]
        return tuple(sorted(found, key=lambda each: -each.trust))

    def touched(self, result: tuple[Memory, ...]) -> int:
        return len(result)


# --- extraction ---


@dataclass(frozen=True, slots=True)
class PageJobs(Paged, Read[Core, JobPage]):
    """Attempts at learning something from what was captured in the scope, newest first."""

    action: ClassVar[Action] = Action.JOBS
    scope: Scope
    cursor: str | None = None
    limit: int = 50

    def __post_init__(self) -> None:
        self._check_page(MAX_PAGE)

    async def prepare(self, core: Core, grant: Grant) -> Core:
        return core

    def apply(self, reader: Reader, prepared: Core) -> JobPage:
        wanted = JobFilter(kinds=_LEARNING)
        return JobPage(*self._page(reader.jobs_page(wanted, prepared.clock.now(), self._before(), self.limit + 1)))

    def _query(self) -> str:
        return digest_of("jobs", self.scope.given())[:16]

    def touched(self, result: JobPage) -> int:
        return len(result.items)


@dataclass(frozen=True, slots=True)
class RetryExtraction(Write[tuple[Core, Grant], Job]):
    """A new attempt at what failed or was cancelled, due at once."""

    action: ClassVar[Action] = Action.MANAGE_JOBS
    scope: Scope
    job_id: str

    def __post_init__(self) -> None:
        ids.checked_id(self.job_id, "job_id")

    async def prepare(self, core: Core, grant: Grant) -> tuple[Core, Grant]:
        return core, grant

    def apply(self, transaction: Transaction, prepared: tuple[Core, Grant]) -> Job:
        core, grant = prepared
        found = transaction.job(self.job_id)
        if found is None or found.kind not in _LEARNING:
            raise NotFound(f"there is no extraction job {self.job_id!r:.80} in this scope")
        again = transaction.retry_job(found.id, core.clock.now())
        if again is None:
            raise Conflict(f"{found.id} is {found.status}; only one that failed or was cancelled is tried again, once")
        transaction.append_event(activity(core, grant, EventKind.JOB_RETRIED, again.id, {"kind": again.kind}))
        return again

    async def finish(self, core: Core, result: Job, operation_id: OperationId) -> Job:
        core.wake()
        return result

    def touched(self, result: Job) -> int:
        return 1


_LEARNING = frozenset({JobKind.EXTRACT, JobKind.MAINTAIN})
