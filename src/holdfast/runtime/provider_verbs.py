"""The engine's verbs for the control plane's own provider, `local`. Each write is one commit.

A capture is a message, sealed at once, with its extraction queued; a record is a memory. Both are idempotent.
Forgetting removes the existing records and lists the missing ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar

from holdfast.domain import ids
from holdfast.domain.access import Action, Grant
from holdfast.domain.checks import Metadata
from holdfast.domain.contract import PageLimit
from holdfast.domain.contract_records import decode_metadata, digest_form, matches_metadata
from holdfast.domain.events import EventKind
from holdfast.domain.forgetting import ForgetReceipt, ForgetTarget
from holdfast.domain.ids import JobId, MemoryId, OperationId
from holdfast.domain.jobs import Cause, Job, JobFilter, JobKind, JobPage, NewJob
from holdfast.domain.memory import OPEN_PLANES, MemoryRecord, Plane, Status
from holdfast.domain.results import HitKind, Page, Record
from holdfast.domain.scope import Scope
from holdfast.domain.times import from_micros, to_micros
from holdfast.domain.transcript import Draft
from holdfast.errors import Conflict, DuplicateId, IdempotencyConflict, InvalidInput, NotFound
from holdfast.ports import ListFilter, NewRevision, Reader, Transaction
from holdfast.runtime.activity_events import activity_event
from holdfast.runtime.add import Add
from holdfast.runtime.cursors import PageRead, encode_cursor
from holdfast.runtime.flush import seal_conversation
from holdfast.runtime.forget import finish_receipt, forget_planned
from holdfast.runtime.gate import Core, Write
from holdfast.runtime.idempotency import digest_of
from holdfast.runtime.job_queue import enqueue
from holdfast.runtime.record_writes import add_revision
from holdfast.runtime.remember import PreparedText, Remember, prepare_texts
from holdfast.runtime.requests import SimpleRead
from holdfast.runtime.revisions import time_after

# Maximum number of records one page scans when few of them match.
_MOST_LOOKED_AT = 4_000
_STEP = 200
_MOST_OF_A_PROFILE = 200


@dataclass(frozen=True, slots=True)
class StoredRecords:
    """The result of a capture or upsert: the records, whether new or existing, and the queued jobs."""

    record_ids: tuple[str, ...]
    written: int
    at: datetime
    jobs: tuple[JobId, ...] = ()


@dataclass(frozen=True, slots=True)
class ForgetOutcome:
    """The ids that were forgotten, and those that were missing or out of reach."""

    forgotten: tuple[str, ...]
    missing: tuple[str, ...]
    receipt: ForgetReceipt | None = None


_USED = "idempotency_id: was used for another text; use a new id for each capture"


class _CaptureWrite(Write[Any, StoredRecords]):
    __slots__ = ()

    def has_work(self, core: Core, result: StoredRecords) -> bool:
        return bool(result.jobs)

    def replay_state(self, result: StoredRecords) -> dict[str, Any]:
        return {"record_ids": list(result.record_ids), "at": to_micros(result.at)}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> StoredRecords:
        """Return the first result, whatever happened to the records since; its jobs were queued the first time."""
        return StoredRecords(tuple(kept["record_ids"]), 0, from_micros(kept["at"]))

    def record_count(self, result: StoredRecords) -> int:
        return result.written

    def written_ids(self, result: StoredRecords) -> tuple[str, ...]:
        return result.record_ids


@dataclass(frozen=True, slots=True)
class KeepResidue(_CaptureWrite):
    """Add a message to a conversation and seal it in the same commit. A forgotten message is not brought back."""

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

    def apply(self, transaction: Transaction, prepared: tuple[Core, Add, Any]) -> StoredRecords:
        core, add, turn = prepared
        try:
            added = add.store_messages(transaction, turn, self.cause)
        except DuplicateId:
            if self.idempotency_key is None:
                raise
            # The message id is derived from the key, so the caller never named a message of that id.
            raise IdempotencyConflict(_USED) from None
        jobs = added.jobs
        if added.stored:
            jobs = (*jobs, *seal_conversation(transaction, core, self.scope.thread, self.cause)[1])
        message_ids = tuple(str(found) for found in added.message_ids if found is not None)
        return StoredRecords(message_ids, added.stored, core.clock.now(), jobs)

    def digest(self) -> str:
        return digest_of(
            self.action,
            self.scope.given(),
            self.source,
            replace(self.draft, metadata=digest_form(self.draft.metadata)),
        )


@dataclass(frozen=True, slots=True)
class PutRecord:
    """A memory to write. With a `slot` it replaces the memory in that slot of exactly its scope.

    With `once` it replaces nothing: a memory already in its slot must be the same.
    """

    text: str
    metadata: Metadata = field(default_factory=dict)
    slot: str | None = None
    once: bool = False


@dataclass(frozen=True, slots=True)
class PutRecords(_CaptureWrite):
    """Write several memories in one commit: all or none."""

    action: ClassVar[Action] = Action.RECORD_UPSERT
    scope: Scope
    records: tuple[PutRecord, ...]
    source: str | None = None
    idempotency_key: str | None = None
    cause: Cause | None = None

    def __post_init__(self) -> None:
        if not self.records:
            raise InvalidInput("records", "is empty; give at least one record")
        for index, record in enumerate(self.records):
            try:
                self._remember(record)
            except InvalidInput as error:
                raise type(error)(f"records[{index}].{error.field}", error.problem) from None

    def _remember(self, record: PutRecord) -> Remember:
        return Remember(self.scope, record.text, source=self.source, metadata=record.metadata)

    async def prepare(self, core: Core, grant: Grant) -> list[PreparedText]:
        return await prepare_texts(core, grant, [record.text for record in self.records])

    def apply(self, transaction: Transaction, prepared: list[PreparedText]) -> StoredRecords:
        core = prepared[0].core
        results = [self._put(transaction, each, ready) for each, ready in zip(self.records, prepared, strict=True)]
        new = tuple(dict.fromkeys(memory_id for memory_id, written in results if written))
        jobs: tuple[JobId, ...] = ()
        if new and not core.embedder.local:
            jobs = (enqueue(transaction, core, NewJob(JobKind.INDEX, self.scope, new, self.cause)),)
        return StoredRecords(tuple(memory_id for memory_id, _ in results), len(new), prepared[0].now, jobs)

    def digest(self) -> str:
        records = [[each.text, digest_form(each.metadata), each.slot, each.once] for each in self.records]
        return digest_of(self.action, self.scope.given(), records, self.source)

    def _put(self, transaction: Transaction, record: PutRecord, prepared: PreparedText) -> tuple[str, bool]:
        """Return the memory's id, and whether anything was written."""
        old = None if record.slot is None else transaction.records.in_slot(self.scope, record.slot)
        revision = self._remember(record).revision(transaction, MemoryId(prepared.core.ids.new(ids.MEMORY)), prepared)
        if isinstance(old, MemoryRecord):
            if old.text == record.text and decode_metadata(old.metadata) == decode_metadata(record.metadata):
                return old.id, False
            if record.once:
                raise IdempotencyConflict(_USED)
            revision = _as_next_revision(old, revision)
        add_revision(transaction, prepared.core, replace(revision, slot=record.slot))
        return revision.id, True


def _as_next_revision(old: MemoryRecord, new: NewRevision) -> NewRevision:
    recorded_at = time_after(new.recorded_at, old)
    return replace(new, id=old.id, recorded_at=recorded_at, supersedes=old.revision, reason="written anew")


@dataclass(frozen=True, slots=True)
class ForgetByIds(Write[Core, ForgetOutcome]):
    """Forget several records by id. Missing ids do not prevent the others from being forgotten."""

    action: ClassVar[Action] = Action.FORGET
    scope: Scope
    record_ids: tuple[str, ...]
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        ForgetTarget(ids=self.record_ids)

    async def prepare(self, core: Core, grant: Grant) -> Core:
        return core

    def apply(self, transaction: Transaction, prepared: Core) -> ForgetOutcome:
        found = transaction.records.plan_forget(ForgetTarget(ids=self.record_ids))
        found_ids = {*found.message_ids, *found.memory_ids}
        gone = tuple(each for each in self.record_ids if each in found_ids)
        missing = tuple(each for each in self.record_ids if each not in found_ids)
        if not gone:
            return ForgetOutcome((), missing)
        return ForgetOutcome(gone, missing, forget_planned(transaction, prepared, found))

    async def finish(self, core: Core, result: ForgetOutcome, operation_id: OperationId) -> ForgetOutcome:
        if result.receipt is None:
            return result
        return replace(result, receipt=await finish_receipt(core, result.receipt, operation_id))

    def replay_state(self, result: ForgetOutcome) -> dict[str, Any]:
        return {"forgotten": result.forgotten, "missing": result.missing}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> ForgetOutcome:
        return ForgetOutcome(tuple(kept["forgotten"]), tuple(kept["missing"]))

    def record_count(self, result: ForgetOutcome) -> int:
        return 0 if result.receipt is None else result.receipt.tombstones

    def written_ids(self, result: ForgetOutcome) -> tuple[str, ...]:
        return result.forgotten


@dataclass(frozen=True, slots=True)
class PageRecords(PageRead[Page]):
    """Accepted records, newest first, whose capture metadata matches `noted`.

    If few match, a page may hold fewer than `limit` records and still not be the last.
    """

    action: ClassVar[Action] = Action.LIST
    scope: Scope
    noted: Mapping[str, Any] = field(default_factory=dict)
    limit: PageLimit = 50
    cursor: str | None = None

    def apply(self, reader: Reader, prepared: Core) -> Page:
        before = self._before()
        found: list[Record] = []
        step = max(_STEP, self.limit + 1) if self.noted else self.limit + 1
        for _ in range(_MOST_LOOKED_AT // step if self.noted else 1):
            rows = reader.records.page(_LISTED, before, step)
            found += [
                row
                for row in rows
                if not self.noted or matches_metadata(decode_metadata(row.metadata).metadata, self.noted)
            ]
            if len(found) > self.limit:
                return self._to_page(found[: self.limit], _cursor_position(found[self.limit - 1]))
            if len(rows) < step:
                return self._to_page(found, None)
            before = _cursor_position(rows[-1])
        return self._to_page(found, before)

    def _to_page(self, items: Sequence[Record], last: str | None) -> Page:
        return Page(tuple(items), None if last is None else encode_cursor(self._query(), last))

    def _query(self) -> str:
        return digest_of(self.scope.given(), dict(self.noted))[:16]


_LISTED = ListFilter(planes=OPEN_PLANES, status=Status.ACCEPTED)


def _cursor_position(record: Record) -> str:
    return record.id.partition("_")[2]


@dataclass(frozen=True, slots=True)
class ReadProfile(SimpleRead[tuple[MemoryRecord, ...]]):
    """The profile of the scope's owner: accepted long-term memories that are valid now, most trusted first."""

    action: ClassVar[Action] = Action.PROFILE
    scope: Scope

    def apply(self, reader: Reader, prepared: Core) -> tuple[MemoryRecord, ...]:
        record_filter = ListFilter(
            kind=HitKind.MEMORY,
            planes=frozenset({Plane.LONG_TERM, Plane.SHARED_FACT}),
            status=Status.ACCEPTED,
            valid_at=prepared.clock.now(),
        )
        found = [
            each
            for each in reader.records.page(record_filter, None, _MOST_OF_A_PROFILE)
            if isinstance(each, MemoryRecord)
        ]
        return tuple(sorted(found, key=lambda each: each.trust, reverse=True))

    def record_count(self, result: tuple[MemoryRecord, ...]) -> int:
        return len(result)


# --- extraction ---


@dataclass(frozen=True, slots=True)
class PageJobs(PageRead[JobPage]):
    """Extraction and maintenance jobs of the scope, newest first."""

    action: ClassVar[Action] = Action.JOBS
    scope: Scope
    cursor: str | None = None
    limit: PageLimit = 50

    def apply(self, reader: Reader, prepared: Core) -> JobPage:
        job_filter = JobFilter(kinds=_LEARNING)
        return JobPage(*self._page(reader.jobs.page(job_filter, prepared.clock.now(), self._before(), self.limit + 1)))

    def _query(self) -> str:
        return digest_of("jobs", self.scope.given())[:16]


@dataclass(frozen=True, slots=True)
class RetryExtraction(Write[tuple[Core, Grant], Job]):
    """Retry a failed or cancelled job now."""

    action: ClassVar[Action] = Action.MANAGE_JOBS
    scope: Scope
    job_id: str

    def __post_init__(self) -> None:
        ids.checked_id(self.job_id, "job_id")

    async def prepare(self, core: Core, grant: Grant) -> tuple[Core, Grant]:
        return core, grant

    def apply(self, transaction: Transaction, prepared: tuple[Core, Grant]) -> Job:
        core, grant = prepared
        found = transaction.jobs.find(self.job_id)
        if found is None or found.kind not in _LEARNING:
            raise NotFound(f"there is no extraction job {self.job_id!r:.80} in this scope")
        retried = transaction.jobs.restart(found.id, core.clock.now())
        if retried is None:
            raise Conflict(f"{found.id} is {found.status}; only a failed or cancelled job can be retried, once")
        transaction.events.append(
            activity_event(core, grant, EventKind.JOB_RETRIED, retried.id, {"kind": retried.kind})
        )
        return retried

    def has_work(self, core: Core, result: Job) -> bool:
        return True

    def record_count(self, result: Job) -> int:
        return 1


_LEARNING = frozenset({JobKind.EXTRACT, JobKind.MAINTAIN})
