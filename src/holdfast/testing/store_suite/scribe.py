"""Helpers for the store tests: grants, a `Scribe` that builds records, and short names for calls."""

from __future__ import annotations

import asyncio
import functools
import inspect
import struct
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import datetime, timedelta
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar, get_type_hints

import uuid_utils

from holdfast.domain.access import LOCAL_OPERATOR, SYSTEM, Action, Grant, authorize
from holdfast.domain.checks import Metadata
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.ids import EventId, JobId, MemoryId, MessageId, OperationId, TurnId
from holdfast.domain.jobs import Job, JobKind, NewJob
from holdfast.domain.memory import ALWAYS, Plane, Status, Trust, Validity
from holdfast.domain.operations import Operation, Outcome
from holdfast.domain.results import Record
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.domain.transcript import Role
from holdfast.ports import (
    Analysis,
    ListFilter,
    NewMessage,
    NewRevision,
    NewTurn,
    PartitionDelta,
    Store,
    StoredMessages,
    StoredResponse,
    TextFlag,
    Transaction,
    repositories,
)
from holdfast.testing.fakes import CountingIds, FixedClock

T = TypeVar("T")
StoreFactory = Callable[[], Awaitable[Store]]

EMBEDDER = "contract:2:1"
ANALYZER = 1
LEASE = timedelta(seconds=60)
ANA = Scope(subject="ana", conversation="chat")
BOB = Scope(subject="bob", conversation="chat")
SHARED = Scope(conversation="chat")
_PATIENCE_SECONDS = 10.0


def port_methods(port: type) -> set[str]:
    """Return the methods of all repositories of a reader or transaction, such as `jobs.find`."""
    modules = [import_module(each.name) for each in iter_modules(repositories.__path__, f"{repositories.__name__}.")]
    # The port imports the repositories for type checkers only.
    names = {name: value for module in modules for name, value in vars(module).items()}
    return {
        f"{noun}.{name}"
        for noun, repository in inspect.getmembers(port, lambda member: isinstance(member, property))
        for name, _ in inspect.getmembers(get_type_hints(repository.fget, names)["return"], inspect.isfunction)
        if not name.startswith("_")
    }


# --- running ----------------------------------------------------------------------------------------------------------


def scenario(
    test: Callable[..., Coroutine[Any, Any, None]],
) -> Callable[..., None]:
    """Run a test on a new store, and close it. The fixture supplies a factory; the test gets a store."""

    @functools.wraps(test)
    def run(self: object, store: StoreFactory, **given: object) -> None:
        async def whole() -> None:
            opened = await store()
            try:
                await test(self, opened, **given)
            finally:
                await opened.close()

        asyncio.run(whole())

    return run


async def wait_until(question: Callable[[], Awaitable[bool]]) -> None:
    """Wait until the condition holds; fail after a timeout."""
    deadline = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
    while not await question():
        assert asyncio.get_running_loop().time() < deadline, "it did not happen in time"
        await asyncio.sleep(0.005)


# --- grants -----------------------------------------------------------------------------------------------------------

EVERYTHING = authorize(SYSTEM, Action.WORK, Scope(space=EVERYWHERE))
SPACE = authorize(LOCAL_OPERATOR, Action.SEARCH, Scope())


def read_grant(scope: Scope) -> Grant:
    return authorize(LOCAL_OPERATOR, Action.SEARCH, scope)


def write_grant(scope: Scope) -> Grant:
    return authorize(LOCAL_OPERATOR, Action.ADD, scope)


# --- test data --------------------------------------------------------------------------------------------------------


def analysis(text: str) -> Analysis:
    words = text.split()
    terms = {zlib.crc32(word.encode()): words.count(word) for word in words}
    packed = struct.pack(f"<{len(terms)}Q{len(terms)}H", *terms, *terms.values())
    return Analysis(terms=packed, length=len(words), flags=TextFlag.NONE, pieces=(text,))


def vector(x: float = 1.0, y: float = 0.0) -> bytes:
    return struct.pack("<2e", x, y)


class Scribe:
    """Builds test records with increasing ids and times."""

    def __init__(self) -> None:
        self.ids = CountingIds()
        self.clock = FixedClock()

    def message(
        self,
        text: str = "hello",
        *,
        sender: str | None = "ana",
        role: Role = Role.USER,
        said_at: datetime | None = None,
        external_id: str | None = None,
        metadata: Metadata | None = None,
        vectors: Sequence[bytes] | None = None,
    ) -> NewMessage:
        """`said_at` is an explicit time; without it, the message is said now."""
        return NewMessage(
            id=MessageId(self.ids.new("msg")),
            text=text,
            sender=sender,
            role=role,
            said_at=said_at or self.clock.step(),
            said_at_given=said_at is not None,
            external_id=external_id,
            metadata=metadata or {},
            analysis=analysis(text),
            vectors=(vector(),) if vectors is None else vectors,
        )

    def turn(self, scope: Scope, *messages: NewMessage | str, source: str | None = None) -> NewTurn:
        made = [message if isinstance(message, NewMessage) else self.message(message) for message in messages]
        return NewTurn(TurnId(self.ids.new("turn")), scope, source, self.clock.step(), made)

    def revision(
        self,
        scope: Scope,
        text: str = "a fact",
        *,
        of: NewRevision | None = None,
        supersedes: int | None = None,
        plane: Plane = Plane.LONG_TERM,
        status: Status = Status.ACCEPTED,
        trust: Trust = Trust.STATED,
        validity: Validity = ALWAYS,
        recorded_at: datetime | None = None,
        source: str | None = None,
        reason: str | None = None,
        evidence: Sequence[MessageId] = (),
        metadata: Metadata | None = None,
        vectors: Sequence[bytes] | None = None,
        slot: str | None = None,
    ) -> NewRevision:
        return NewRevision(
            id=MemoryId(self.ids.new("mem")) if of is None else of.id,
            scope=scope,
            plane=plane,
            text=text,
            trust=trust,
            status=status,
            validity=validity,
            recorded_at=recorded_at or self.clock.step(),
            source=source,
            author="operator:local",
            reason=reason,
            evidence=tuple(evidence),
            metadata=metadata or {},
            analysis=analysis(text),
            vectors=(vector(),) if vectors is None else vectors,
            supersedes=supersedes,
            slot=slot,
        )

    def job(self, kind: JobKind = JobKind.INDEX, scope: Scope = ANA, record_ids: tuple[str, ...] = ()) -> NewJob:
        return NewJob(kind, scope, record_ids)

    def job_id(self) -> JobId:
        return JobId(self.ids.new("job"))

    def operation(self, scope: Scope, action: Action = Action.SEARCH, record_count: int = 1) -> Operation:
        return Operation(
            id=OperationId(self.ids.new("op")),
            actor=LOCAL_OPERATOR,
            action=action,
            scope=scope,
            outcome=Outcome.SUCCEEDED,
            error_code=None,
            record_count=record_count,
            started_at=self.clock.now(),
            duration_micros=10,
        )


# --- calls ------------------------------------------------------------------------------------------------------------


async def add(store: Store, turn: NewTurn, grant: Grant | None = None) -> StoredMessages:
    return await store.write(
        grant or write_grant(turn.scope), lambda t: t.transcripts.add_turn(turn, EMBEDDER, ANALYZER)
    )


async def put(store: Store, revision: NewRevision, grant: Grant | None = None) -> int:
    return await store.write(
        grant or write_grant(revision.scope), lambda t: t.records.add_revision(revision, EMBEDDER, ANALYZER)
    )


async def page(
    store: Store,
    grant: Grant = SPACE,
    wanted: ListFilter | None = None,
    before: str | None = None,
    limit: int = 100,
) -> list[Record]:
    return list(await store.read(grant, lambda r: r.records.page(wanted or ListFilter(), before, limit)))


async def texts(store: Store, grant: Grant = SPACE, wanted: ListFilter | None = None) -> list[str]:
    """The texts of the records, newest first."""
    return [record.text for record in await page(store, grant, wanted)]


async def find_record(
    store: Store, record_id: str, as_of: datetime | None = None, grant: Grant = SPACE
) -> Record | None:
    entry = await store.read(grant, lambda r: r.records.find(record_id, as_of))
    return entry[1] if entry else None


async def number_of(store: Store, record_id: str, as_of: datetime | None = None) -> int:
    entry = await store.read(EVERYTHING, lambda r: r.records.find(record_id, as_of))
    assert entry is not None
    return entry[0]


async def delta(store: Store, scope: Scope = ANA, since: int = 0, embedder: str = EMBEDDER) -> PartitionDelta:
    return await store.read(SPACE, lambda r: r.index.delta(scope.partition, since, embedder))


def event_id() -> EventId:
    return EventId(f"evt_{uuid_utils.uuid7()}")


async def forget(store: Store, target: ForgetTarget, grant: Grant, at: datetime) -> tuple[int, int]:
    return await store.write(grant, lambda t: t.records.forget(t.records.plan_forget(target), at, event_id))


async def enqueue(store: Store, scribe: Scribe, job: NewJob, at: datetime | None = None) -> JobId:
    job_id = scribe.job_id()
    return await store.write(EVERYTHING, lambda t: t.jobs.enqueue(job_id, job, at or scribe.clock.now()))


async def claim(store: Store, now: datetime, kinds: frozenset[JobKind] = frozenset(JobKind)) -> Job | None:
    return await store.write(EVERYTHING, lambda t: t.jobs.claim(kinds, now, LEASE))


async def claim_one(store: Store, now: datetime) -> Job:
    job = await claim(store, now)
    assert job is not None
    return job


async def populate(store: Store, scribe: Scribe, scope: Scope) -> tuple[MessageId, MemoryId]:
    """Write one of everything in that scope, and one forgotten message."""
    message = scribe.message("canary", external_id="same", vectors=())
    memory = scribe.revision(scope, "canary", evidence=[message.id], slot="slot", source="canary", vectors=())
    gone = scribe.message("canary gone")
    await add(store, scribe.turn(scope, message, gone, source="canary"))
    await put(store, memory)
    await forget(store, ForgetTarget(ids=(gone.id,)), write_grant(scope), scribe.clock.step())
    await enqueue(store, scribe, scribe.job(scope=scope, record_ids=(message.id,)))
    operation = scribe.operation(scope)
    answer = StoredResponse("digest", f'["{message.id}"]')

    def keep(transaction: Transaction) -> None:
        transaction.operations.add(operation)
        transaction.records.put_response(scope.partition, "key", answer, scribe.clock.now())

    if await store.read(EVERYTHING, lambda r: r.records.response(scope.partition, "key")) is None:
        await store.write(write_grant(scope), keep)
    else:
        await store.write(write_grant(scope), lambda t: t.operations.add(operation))
    return message.id, memory.id
