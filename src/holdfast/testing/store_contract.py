"""What every store promises, as tests.

Subclass `StoreContract` and define a fixture `store` that gives a factory of the store under test: an asynchronous
callable that opens it, empty at first. A store that outlives its closing subclasses `DurableStoreContract`; then the
factory, called again, opens the same store.

    class TestMyStore(DurableStoreContract):
        @pytest.fixture
        def store(self, tmp_path: Path) -> StoreFactory:
            async def opened() -> Store:
                return MyStore(tmp_path / "store")

            return opened

Nothing here knows how a store works inside. What a test needs to see, it sees through the port.
"""

from __future__ import annotations

import asyncio
import functools
import struct
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

import pytest

from holdfast.domain.access import LOCAL_OPERATOR, SYSTEM, Action, Actor, ActorKind, Grant, authorize
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.ids import JobId, MemoryId, MessageId, OperationId, TurnId
from holdfast.domain.jobs import Job, JobKind, JobStatus, NewJob
from holdfast.domain.memory import ALWAYS, Evidence, Memory, Plane, Status, Trust, Validity
from holdfast.domain.operations import Operation, Outcome
from holdfast.domain.results import HitKind, Record
from holdfast.domain.scope import EVERYWHERE, SCOPE_PARTS, Partition, PartitionKind, Scope
from holdfast.domain.times import to_micros
from holdfast.domain.transcript import Message, Role
from holdfast.errors import AccessDenied, DuplicateId, HoldfastError, LeaseLost, NotFound, RevisionConflict, StoreClosed
from holdfast.ports import (
    Analysis,
    Answer,
    Delta,
    Flag,
    Indexed,
    ListFilter,
    NewMessage,
    NewRevision,
    NewTurn,
    Reader,
    Store,
    StoredMessages,
    Transaction,
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


# --- running ----------------------------------------------------------------------------------------------------------


def scenario(
    test: Callable[..., Coroutine[Any, Any, None]],
) -> Callable[..., None]:
    """Run a test on a store of its own, and close that. Its fixture gives a factory; the test gets a store."""

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


async def until(question: Callable[[], Awaitable[bool]]) -> None:
    """Wait for something that happens soon; fail if it does not."""
    deadline = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
    while not await question():
        assert asyncio.get_running_loop().time() < deadline, "it did not happen in time"
        await asyncio.sleep(0.005)


# --- grants -----------------------------------------------------------------------------------------------------------

EVERYTHING = authorize(SYSTEM, Action.WORK, Scope(space=EVERYWHERE))
SPACE = authorize(LOCAL_OPERATOR, Action.SEARCH, Scope())


def reading(scope: Scope) -> Grant:
    return authorize(LOCAL_OPERATOR, Action.SEARCH, scope)


def writing(scope: Scope) -> Grant:
    return authorize(LOCAL_OPERATOR, Action.ADD, scope)


# --- what a store is given --------------------------------------------------------------------------------------------


def analysis(text: str) -> Analysis:
    return Analysis(terms=b"", length=len(text.split()), flags=Flag.NONE, pieces=(text,))


def vector(x: float = 1.0, y: float = 0.0) -> bytes:
    return struct.pack("<2e", x, y)


class Scribe:
    """Makes what a store is given, with ids and moments that grow."""

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
        metadata: dict[str, str] | None = None,
        vectors: Sequence[bytes] | None = None,
    ) -> NewMessage:
        """`said_at` is one that was given; without it, the message is said now."""
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
        metadata: dict[str, str] | None = None,
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

    def operation(self, scope: Scope, action: Action = Action.SEARCH, touched: int = 1) -> Operation:
        return Operation(
            id=OperationId(self.ids.new("op")),
            actor=LOCAL_OPERATOR,
            action=action,
            scope=scope,
            outcome=Outcome.SUCCEEDED,
            error_code=None,
            touched=touched,
            started_at=self.clock.now(),
            duration_micros=10,
        )


# --- doing ------------------------------------------------------------------------------------------------------------


async def add(store: Store, turn: NewTurn, grant: Grant | None = None) -> StoredMessages:
    return await store.write(grant or writing(turn.scope), lambda t: t.add_turn(turn, EMBEDDER, ANALYZER))


async def put(store: Store, revision: NewRevision, grant: Grant | None = None) -> int:
    return await store.write(grant or writing(revision.scope), lambda t: t.add_revision(revision, EMBEDDER, ANALYZER))


async def page(
    store: Store,
    grant: Grant = SPACE,
    wanted: ListFilter | None = None,
    before: str | None = None,
    limit: int = 100,
) -> list[Record]:
    return list(await store.read(grant, lambda r: r.page(wanted or ListFilter(), before, limit)))


async def texts(store: Store, grant: Grant = SPACE, wanted: ListFilter | None = None) -> list[str]:
    """Newest first."""
    return [record.text for record in await page(store, grant, wanted)]


async def found(store: Store, record_id: str, as_of: datetime | None = None, grant: Grant = SPACE) -> Record | None:
    entry = await store.read(grant, lambda r: r.find(record_id, as_of))
    return entry[1] if entry else None


async def number_of(store: Store, record_id: str, as_of: datetime | None = None) -> int:
    entry = await store.read(EVERYTHING, lambda r: r.find(record_id, as_of))
    assert entry is not None
    return entry[0]


async def delta(store: Store, scope: Scope = ANA, since: int = 0, embedder: str = EMBEDDER) -> Delta:
    return await store.read(SPACE, lambda r: r.delta(scope.partition, since, embedder))


async def forget(store: Store, target: ForgetTarget, grant: Grant, at: datetime) -> tuple[int, int]:
    return await store.write(grant, lambda t: t.forget(t.doomed(target), at))


async def enqueue(store: Store, scribe: Scribe, job: NewJob, at: datetime | None = None) -> JobId:
    job_id = scribe.job_id()
    return await store.write(EVERYTHING, lambda t: t.enqueue(job_id, job, at or scribe.clock.now()))


async def claim(store: Store, now: datetime, kinds: frozenset[JobKind] = frozenset(JobKind)) -> Job | None:
    return await store.write(EVERYTHING, lambda t: t.claim(kinds, now, LEASE))


async def claimed(store: Store, now: datetime) -> Job:
    job = await claim(store, now)
    assert job is not None
    return job


class StoreContract:
    """What every store promises. Subclass it and supply a `store` fixture: a factory of fresh stores."""

    # --- what is written comes back ---

    @scenario
    async def test_a_message_comes_back_as_it_was_given(self, store: Store) -> None:
        scribe = Scribe()
        full = replace(ANA, app="app", project="p", agent="bot", channel="mail", run="r1", issue="7", namespace="n")
        given = scribe.message(
            "Grüße\n\tаб 中文 👩‍👩‍👧 \x01\x7f\u2028'\"\\%_",
            sender="Ána",
            role=Role.ASSISTANT,
            said_at=datetime.fromisoformat("1931-05-07T01:02:03.000004+00:00"),
            external_id="id/1",
            metadata={"k": "v", "empty": "", "ключ": "значение"},
        )
        turn = scribe.turn(full, given, source="import")
        stored = await add(store, turn)
        assert stored == StoredMessages((given.id,), frozenset({0}))
        assert await found(store, given.id) == Message(
            id=given.id,
            turn_id=turn.id,
            scope=full,
            position=0,
            text=given.text,
            sender="Ána",
            role=Role.ASSISTANT,
            said_at=given.said_at,
            recorded_at=turn.recorded_at,
            external_id="id/1",
            source="import",
            metadata={"k": "v", "empty": "", "ключ": "значение"},
        )

    @scenario
    async def test_a_memory_comes_back_as_it_was_given(self, store: Store) -> None:
        scribe = Scribe()
        message = scribe.message("I live in Lisbon", external_id="m1")
        await add(store, scribe.turn(ANA, message))
        since, until = scribe.clock.step(), scribe.clock.step()
        given = scribe.revision(
            Scope(subject="ana"),
            "Ana lives in Lisbon 🏠",
            plane=Plane.SHARED_FACT,
            status=Status.QUARANTINED,
            trust=Trust.LOW,
            validity=Validity(since, until),
            source="web",
            reason="she said so",
            evidence=[message.id],
            metadata={"a": "b"},
        )
        assert await put(store, given) == 1
        assert await found(store, given.id) == Memory(
            id=given.id,
            revision=1,
            scope=Scope(subject="ana"),
            plane=Plane.SHARED_FACT,
            text="Ana lives in Lisbon 🏠",
            trust=Trust.LOW,
            status=Status.QUARANTINED,
            validity=Validity(since, until),
            recorded_at=given.recorded_at,
            superseded_at=None,
            source="web",
            author="operator:local",
            reason="she said so",
            evidence=(Evidence(message.id, "I live in Lisbon", "ana", message.said_at, "chat", "m1"),),
            metadata={"a": "b"},
        )

    @scenario
    async def test_fetch_gives_by_number_what_find_gives_by_id(self, store: Store) -> None:
        scribe = Scribe()
        message, memory = scribe.message("a message"), scribe.revision(Scope(subject="ana"), "a memory")
        await add(store, scribe.turn(ANA, message))
        await put(store, memory)
        numbers = [await number_of(store, message.id), await number_of(store, memory.id)]
        records = await store.read(SPACE, lambda r: r.fetch([*numbers, 999_999]))
        assert records == {
            numbers[0]: await found(store, message.id),
            numbers[1]: await found(store, memory.id),
        }

    @scenario
    async def test_an_id_that_is_not_there_is_found_nowhere(self, store: Store) -> None:
        for unknown in ("msg_1", "mem_1", "", "'; DROP TABLE records", "%"):
            assert await found(store, unknown) is None
            assert await store.read(SPACE, lambda r, unknown=unknown: list(r.revisions(unknown))) == []  # type: ignore[misc]

    @scenario
    async def test_an_empty_store_answers_every_question(self, store: Store) -> None:
        partition = ANA.partition

        def ask(reader: Reader) -> list[object]:
            return [
                list(reader.partitions()),
                reader.change_of(partition),
                reader.delta(partition, 0, EMBEDDER).change,
                reader.fetch([]),
                list(reader.page(ListFilter(), None, 10)),
                reader.answer(partition, "key"),
                list(reader.unsealed(ANA)),
                list(reader.unindexed(EMBEDDER, ANALYZER, 0, 10)),
                list(reader.waiting(["msg_1"], EMBEDDER, ANALYZER)),
                reader.in_slot(ANA, "slot"),
                reader.fact("name"),
                reader.job_counts(),
                reader.due(FixedClock().now()),
                list(reader.jobs()),
                list(reader.operations()),
            ]

        nothing = [[], 0, 0, {}, [], None, [], [], [], None, None, {}, False, [], []]
        assert await store.read(SPACE, ask) == nothing
        assert set((await store.read(SPACE, lambda r: r.counts(EMBEDDER))).values()) == {0}

    # --- grants ---

    _PARTITIONING = ("space", "subject", "agent")

    @staticmethod
    def _scopes(part: str) -> tuple[Scope, Scope]:
        """Two scopes that differ in one part."""
        whole = {name: f"{name}-here" for name in SCOPE_PARTS}
        # A subject chooses the partition before an agent does.
        whole.pop("subject" if part == "agent" else "agent")
        return Scope(**whole), Scope(**{**whole, part: f"{part}-there"})

    async def _populate(self, store: Store, scribe: Scribe, scope: Scope) -> tuple[MessageId, MemoryId]:
        """One of everything in that scope, and one forgotten message."""
        message = scribe.message("canary", external_id="same", vectors=())
        memory = scribe.revision(scope, "canary", evidence=[message.id], slot="slot", source="canary", vectors=())
        gone = scribe.message("canary gone")
        await add(store, scribe.turn(scope, message, gone, source="canary"))
        await put(store, memory)
        await forget(store, ForgetTarget(ids=(gone.id,)), writing(scope), scribe.clock.step())
        await enqueue(store, scribe, scribe.job(scope=scope, record_ids=(message.id,)))
        operation = scribe.operation(scope)
        answer = Answer("digest", (message.id,))

        def keep(transaction: Transaction) -> None:
            transaction.record(operation)
            transaction.keep_answer(scope.partition, "key", answer, scribe.clock.now())

        if await store.read(EVERYTHING, lambda r: r.answer(scope.partition, "key")) is None:
            await store.write(writing(scope), keep)
        else:
            await store.write(writing(scope), lambda t: t.record(operation))
        return message.id, memory.id

    @pytest.mark.parametrize("part", SCOPE_PARTS)
    @scenario
    async def test_a_grant_never_sees_another_scope(self, store: Store, part: str) -> None:
        scribe = Scribe()
        here, there = self._scopes(part)
        message, memory = await self._populate(store, scribe, there)
        numbers = [await number_of(store, message), await number_of(store, memory)]
        grant = reading(here)

        def look(reader: Reader) -> None:
            assert reader.find(message) is None
            assert reader.find(memory) is None
            assert reader.find(memory, scribe.clock.step(3600)) is None
            assert list(reader.revisions(memory)) == []
            assert reader.fetch(numbers) == {}
            assert list(reader.page(ListFilter(), None, 10)) == []
            assert list(reader.page(ListFilter(source="canary"), None, 10)) == []
            assert list(reader.unindexed(EMBEDDER, ANALYZER, 0, 10)) == []
            assert list(reader.waiting([message, memory], EMBEDDER, ANALYZER)) == []
            assert reader.in_slot(here, "slot") is None
            assert list(reader.unsealed(here)) == []
            assert list(reader.jobs()) == []
            assert reader.job_counts() == {}
            assert list(reader.operations()) == []
            counts = reader.counts(EMBEDDER)
            counts.pop("partitions")
            assert set(counts.values()) == {0}

        await store.read(grant, look)

    @pytest.mark.parametrize("part", SCOPE_PARTS)
    @scenario
    async def test_a_grant_never_forgets_another_scope(self, store: Store, part: str) -> None:
        scribe = Scribe()
        here, there = self._scopes(part)
        message, memory = await self._populate(store, scribe, there)
        targets = [
            ForgetTarget(ids=(message, memory)),
            ForgetTarget(source="canary"),
            ForgetTarget(conversation=there.conversation),
        ]
        if there.subject is not None:
            targets.append(ForgetTarget(subject=there.subject))
        for target in targets:
            doomed = await store.read(reading(here), lambda r, target=target: r.doomed(target))  # type: ignore[misc]
            assert (doomed.message_ids, doomed.memory_ids, doomed.derived_ids) == ((), (), ())
            assert (doomed.revisions, doomed.weakened, doomed.conversations) == (0, 0, 0)
            left = await forget(store, target, writing(here), scribe.clock.step())
            assert left == (0, 0)
        assert await found(store, message, grant=EVERYTHING) is not None
        assert await found(store, memory, grant=EVERYTHING) is not None

    @pytest.mark.parametrize("part", _PARTITIONING)
    @scenario
    async def test_a_grant_never_reaches_another_partition(self, store: Store, part: str) -> None:
        scribe = Scribe()
        here, there = self._scopes(part)
        await self._populate(store, scribe, there)
        changes = await store.read(EVERYTHING, lambda r: r.change_of(there.partition))

        def look(reader: Reader) -> None:
            assert there.partition not in reader.partitions()
            assert reader.change_of(there.partition) == 0
            empty = reader.delta(there.partition, 0, EMBEDDER)
            assert (list(empty.rows), list(empty.vectors), list(empty.removed), empty.scopes) == ([], [], [], {})
            assert reader.answer(there.partition, "key") is None
            assert list(reader.unsealed(there)) == []
            assert reader.in_slot(there, "slot") is None

        await store.read(reading(here), look)
        await store.write(writing(here), look)
        assert changes > 0

    @pytest.mark.parametrize("part", _PARTITIONING)
    @scenario
    async def test_a_grant_never_writes_into_another_partition(self, store: Store, part: str) -> None:
        scribe = Scribe()
        here, there = self._scopes(part)
        message, memory = await self._populate(store, scribe, there)
        before = await delta(store, there), await found(store, memory, grant=EVERYTHING)
        numbers = [await number_of(store, message), await number_of(store, memory)]
        grant = writing(here)
        with pytest.raises(AccessDenied):
            await add(store, scribe.turn(there, "intruder"), grant)
        with pytest.raises(AccessDenied):
            await put(store, scribe.revision(there, "intruder"), grant)
        with pytest.raises(AccessDenied):
            await store.write(
                grant, lambda t: t.keep_answer(there.partition, "other", Answer("d", ()), scribe.clock.now())
            )
        entries = [Indexed(number, [vector()], analysis("intruder")) for number in numbers]
        await store.write(grant, lambda t: t.index(entries, EMBEDDER, ANALYZER))
        await store.write(grant, lambda t: t.mark_stale())
        await store.write(grant, lambda t: t.seal(there))
        # Somebody else's memory cannot be superseded by claiming that it is one's own.
        stolen = replace(scribe.revision(here, "stolen"), id=memory, supersedes=1)
        with pytest.raises(HoldfastError):
            await put(store, stolen, grant)
        assert before == (await delta(store, there), await found(store, memory, grant=EVERYTHING))

    @scenario
    async def test_a_subject_is_read_together_with_what_is_shared_and_no_other_space(self, store: Store) -> None:
        scribe = Scribe()
        for scope in (ANA, BOB, SHARED, replace(SHARED, space="other"), replace(ANA, space="other")):
            await add(store, scribe.turn(scope, f"{scope.space} {scope.subject}"))
        assert await texts(store, reading(ANA)) == ["default None", "default ana"]
        assert await texts(store, SPACE) == ["default None", "default bob", "default ana"]
        assert len(await texts(store, EVERYTHING)) == 5
        partitions = await store.read(reading(ANA), lambda r: r.partitions())
        assert set(partitions) == {
            Partition("default", PartitionKind.SUBJECT, "ana"),
            Partition("default", PartitionKind.SHARED),
        }

    @scenario
    async def test_evidence_is_shown_only_to_those_who_reach_it(self, store: Store) -> None:
        scribe = Scribe()
        message = scribe.message("a secret of Ana's")
        await add(store, scribe.turn(ANA, message))
        memory = scribe.revision(Scope(), "what all may know", evidence=[message.id])
        await put(store, memory, SPACE)
        seen = [
            await found(store, memory.id, grant=reading(scope))
            for scope in (Scope(subject="ana"), Scope(subject="bob"))
        ]
        assert [len(record.evidence) for record in seen if isinstance(record, Memory)] == [1, 0]
        number = await number_of(store, memory.id)
        fetched = await store.read(reading(Scope(subject="bob")), lambda r: r.fetch([number]))
        assert [record.evidence for record in fetched.values() if isinstance(record, Memory)] == [()]

    @scenario
    async def test_evidence_out_of_reach_cannot_be_linked(self, store: Store) -> None:
        scribe = Scribe()
        theirs, memory = scribe.message("Bob's"), scribe.revision(Scope(subject="ana"), "a memory")
        await add(store, scribe.turn(BOB, theirs))
        await put(store, memory)
        for unreachable in (theirs.id, MessageId("msg_none"), MessageId(memory.id)):
            with pytest.raises(NotFound):
                await put(store, scribe.revision(Scope(subject="ana"), "no", evidence=[unreachable]))
        assert await texts(store, reading(Scope(subject="ana"))) == ["a memory"]

    @scenario
    async def test_counts_cover_exactly_what_the_grant_reaches(self, store: Store) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, "one", scribe.message("two", vectors=())))
        await add(store, scribe.turn(replace(ANA, conversation="other"), "three"))
        await add(store, scribe.turn(BOB, "four", "five"))
        first = scribe.revision(Scope(subject="ana"), "fact")
        await put(store, first)
        await put(store, scribe.revision(Scope(subject="ana"), "fact, corrected", of=first, supersedes=1))
        counts = await store.read(reading(Scope(subject="ana")), lambda r: r.counts(EMBEDDER))
        assert counts == {
            "messages": 3,
            "memories": 1,
            "conversations": 2,
            "pending_vectors": 1,
            "partitions": 1,
            "tombstones": 0,
        }
        assert (await store.read(reading(ANA), lambda r: r.counts(EMBEDDER)))["messages"] == 2
        assert (await store.read(SPACE, lambda r: r.counts(EMBEDDER)))["messages"] == 5
        # To another embedder, everything still has to be embedded: old revisions, too, for `as_of`.
        assert (await store.read(SPACE, lambda r: r.counts("another")))["pending_vectors"] == 7

    # --- adding ---

    @scenario
    async def test_a_message_id_is_stored_once(self, store: Store) -> None:
        scribe = Scribe()
        first = scribe.message("hello", external_id="m1")
        await add(store, scribe.turn(ANA, first))
        again = scribe.message("hello", external_id="m1", said_at=scribe.clock.step())
        assert await add(store, scribe.turn(ANA, again)) == StoredMessages((first.id,), frozenset())
        assert await texts(store) == ["hello"]

    @scenario
    async def test_a_message_id_belongs_to_its_conversation(self, store: Store) -> None:
        scribe = Scribe()
        others = [replace(ANA, **{part: "other"}) for part in SCOPE_PARTS if part != "agent"]
        for scope in (ANA, *others):
            stored = await add(store, scribe.turn(scope, scribe.message("hello", external_id="m1")))
            assert len(stored.new) == 1

    @pytest.mark.parametrize(("text", "sender"), [("another text", "ana"), ("hello", "bob"), ("hello", None)])
    @scenario
    async def test_a_message_id_with_other_content_is_refused(
        self, store: Store, text: str, sender: str | None
    ) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, scribe.message("hello", external_id="m1")))
        with pytest.raises(DuplicateId):
            await add(store, scribe.turn(ANA, "new", scribe.message(text, sender=sender, external_id="m1"), "newer"))
        assert await texts(store) == ["hello"]

    @scenario
    async def test_equal_content_at_a_given_time_by_the_same_sender_is_stored_once(self, store: Store) -> None:
        scribe = Scribe()
        at = scribe.clock.step()
        first = scribe.message("hello", said_at=at)
        await add(store, scribe.turn(ANA, first))
        assert (await add(store, scribe.turn(ANA, scribe.message("hello", said_at=at)))).ids == (first.id,)
        different = [
            scribe.message("hello", said_at=at, sender="bob"),
            scribe.message("hello", said_at=at, sender=None),
            scribe.message("hello", said_at=at + timedelta(microseconds=1)),
            scribe.message("hello!", said_at=at),
        ]
        assert (await add(store, scribe.turn(ANA, *different))).new == frozenset(range(4))

    @scenario
    async def test_equal_content_without_a_given_time_is_said_twice(self, store: Store) -> None:
        scribe = Scribe()
        same = [replace(scribe.message("yes"), said_at=scribe.clock.now()) for _ in range(3)]
        await add(store, scribe.turn(ANA, *same[:2]))
        await add(store, scribe.turn(ANA, same[2]))
        assert await texts(store) == ["yes"] * 3

    @scenario
    async def test_duplicates_within_one_turn_are_stored_once(self, store: Store) -> None:
        scribe = Scribe()
        at = scribe.clock.step()
        messages = [
            scribe.message("by id", external_id="m1"),
            scribe.message("by id", external_id="m1"),
            scribe.message("by content", said_at=at),
            scribe.message("by content", said_at=at),
        ]
        stored = await add(store, scribe.turn(ANA, *messages))
        assert stored.ids == (messages[0].id, messages[0].id, messages[2].id, messages[2].id)
        assert stored.new == frozenset({0, 2})
        positions = [record.position for record in await page(store) if isinstance(record, Message)]
        assert positions == [1, 0]

    @scenario
    async def test_two_messages_of_one_id_in_a_turn_are_refused(self, store: Store) -> None:
        scribe = Scribe()
        turn = scribe.turn(ANA, scribe.message("one", external_id="m1"), scribe.message("two", external_id="m1"))
        with pytest.raises(DuplicateId):
            await add(store, turn)
        assert await texts(store) == []

    @scenario
    async def test_a_forgotten_message_id_is_not_brought_back(self, store: Store) -> None:
        scribe = Scribe()
        message = scribe.message("hello", external_id="m1")
        await add(store, scribe.turn(ANA, message))
        await forget(store, ForgetTarget(ids=(message.id,)), writing(ANA), scribe.clock.step())
        replay = [scribe.message("hello", external_id="m1"), scribe.message("new", external_id="m2")]
        stored = await add(store, scribe.turn(ANA, *replay))
        assert stored == StoredMessages((None, replay[1].id), frozenset({1}))
        # Also not with another text: the id was forgotten, whatever it named.
        assert (await add(store, scribe.turn(ANA, scribe.message("other", external_id="m1")))).ids == (None,)
        assert await texts(store) == ["new"]
        # Elsewhere it is another message.
        assert (await add(store, scribe.turn(BOB, scribe.message("hello", external_id="m1")))).new == frozenset({0})

    @scenario
    async def test_positions_are_consecutive_under_concurrency(self, store: Store) -> None:
        scribe = Scribe()
        turns = [scribe.turn(ANA, *(f"{turn}.{line}" for line in range(3))) for turn in range(20)]
        elsewhere = [scribe.turn(BOB, "x") for _ in range(5)]
        await asyncio.gather(*(add(store, turn) for turn in [*turns, *elsewhere]))
        messages = [record for record in await page(store, reading(ANA)) if isinstance(record, Message)]
        messages.sort(key=lambda message: message.position)
        assert [message.position for message in messages] == list(range(60))
        said = [message.text for message in messages]
        # A turn's messages stand together, in their order.
        assert all(
            said[at : at + 3] == [f"{said[at].split('.')[0]}.{line}" for line in range(3)] for at in range(0, 60, 3)
        )

    @scenario
    async def test_positions_are_never_given_twice(self, store: Store) -> None:
        scribe = Scribe()
        last = scribe.message("last")
        await add(store, scribe.turn(ANA, "first", last))
        await forget(store, ForgetTarget(ids=(last.id,)), writing(ANA), scribe.clock.step())
        newest = scribe.message("newest")
        await add(store, scribe.turn(ANA, newest))
        record = await found(store, newest.id)
        assert isinstance(record, Message)
        assert record.position == 2

    # --- revisions ---

    @scenario
    async def test_a_revision_supersedes_the_one_before(self, store: Store) -> None:
        scribe = Scribe()
        first = scribe.revision(Scope(subject="ana"), "one")
        await put(store, first)
        second = scribe.revision(Scope(subject="ana"), "two", of=first, supersedes=1, reason="wrong")
        assert await put(store, second) == 2
        third = scribe.revision(Scope(subject="ana"), "three", of=first, supersedes=2)
        assert await put(store, third) == 3
        history = await store.read(SPACE, lambda r: list(r.revisions(first.id)))
        seen = [
            (record.revision, record.text, record.recorded_at, record.superseded_at, record.reason)
            for record in history
            if isinstance(record, Memory)
        ]
        assert seen == [
            (1, "one", first.recorded_at, second.recorded_at, None),
            (2, "two", second.recorded_at, third.recorded_at, "wrong"),
            (3, "three", third.recorded_at, None, None),
        ]
        assert await texts(store) == ["three"]

    @scenario
    async def test_a_revision_that_is_not_current_cannot_be_superseded(self, store: Store) -> None:
        scribe = Scribe()
        first = scribe.revision(Scope(subject="ana"), "one")
        await put(store, first)
        await put(store, scribe.revision(Scope(subject="ana"), "two", of=first, supersedes=1))
        for wrong in (0, 1, 3):
            with pytest.raises(RevisionConflict):
                await put(store, scribe.revision(Scope(subject="ana"), "late", of=first, supersedes=wrong))
        with pytest.raises(RevisionConflict):
            await put(store, scribe.revision(Scope(subject="ana"), "of nothing", supersedes=1))
        assert await texts(store) == ["two"]

    @scenario
    async def test_of_many_who_supersede_one_revision_one_succeeds(self, store: Store) -> None:
        scribe = Scribe()
        first = scribe.revision(Scope(subject="ana"), "one")
        await put(store, first)
        rivals = [scribe.revision(Scope(subject="ana"), f"rival {n}", of=first, supersedes=1) for n in range(16)]
        ended = await asyncio.gather(*(put(store, rival) for rival in rivals), return_exceptions=True)
        assert [outcome for outcome in ended if not isinstance(outcome, RevisionConflict)] == [2]
        winner = rivals[ended.index(2)]
        assert await texts(store) == [winner.text]

    @scenario
    async def test_each_revision_keeps_its_own_evidence(self, store: Store) -> None:
        scribe = Scribe()
        old, new = scribe.message("old"), scribe.message("new")
        await add(store, scribe.turn(ANA, old, new))
        first = scribe.revision(Scope(subject="ana"), "one", evidence=[old.id])
        await put(store, first)
        await put(
            store, scribe.revision(Scope(subject="ana"), "two", of=first, supersedes=1, evidence=[new.id, new.id])
        )
        history = await store.read(SPACE, lambda r: list(r.revisions(first.id)))
        shown = [[link.text for link in record.evidence] for record in history if isinstance(record, Memory)]
        assert shown == [["old"], ["new"]]

    @scenario
    async def test_a_slot_is_filled_by_the_current_memory_of_exactly_that_scope(self, store: Store) -> None:
        scribe = Scribe()
        scope = Scope(subject="ana")
        first = scribe.revision(scope, "tea", slot="drink")
        await put(store, first)
        await put(store, scribe.revision(replace(scope, app="app"), "water", slot="drink"))
        await put(store, scribe.revision(scope, "coffee", of=first, supersedes=1, slot="drink"))
        filling = [
            await store.read(SPACE, lambda r, place=place, slot=slot: r.in_slot(place, slot))  # type: ignore[misc]
            for place, slot in [(scope, "drink"), (replace(scope, app="app"), "drink"), (scope, "food"), (BOB, "drink")]
        ]
        assert [record and record.text for record in filling] == ["coffee", "water", None, None]

    # --- two times ---

    @scenario
    async def test_as_of_gives_what_was_known_then(self, store: Store) -> None:
        scribe = Scribe()
        message = scribe.message("said")
        turn = scribe.turn(ANA, message)
        await add(store, turn)
        first = scribe.revision(Scope(subject="ana"), "one")
        await put(store, first)
        second = scribe.revision(Scope(subject="ana"), "two", of=first, supersedes=1)
        await put(store, second)
        tick = timedelta(microseconds=1)
        expected = {
            turn.recorded_at - tick: [],
            turn.recorded_at: ["said"],
            first.recorded_at - tick: ["said"],
            first.recorded_at: ["one", "said"],
            second.recorded_at - tick: ["one", "said"],
            second.recorded_at: ["two", "said"],
        }
        for moment, known in expected.items():
            assert await texts(store, wanted=ListFilter(as_of=moment)) == known
            record = await found(store, first.id, moment)
            assert (record.text if record else None) == next((text for text in known if text != "said"), None)

    @scenario
    async def test_valid_at_gives_what_was_true_then(self, store: Store) -> None:
        scribe = Scribe()
        one, two = scribe.clock.step(86_400), scribe.clock.step(86_400)
        scope, tick = Scope(subject="ana"), timedelta(microseconds=1)
        for text, validity in {
            "always": ALWAYS,
            "until one": Validity(None, one),
            "between": Validity(one, two),
            "since two": Validity(two, None),
        }.items():
            await put(store, scribe.revision(scope, text, validity=validity))
        expected = {
            one - tick: {"always", "until one"},
            one: {"always", "between"},
            two - tick: {"always", "between"},
            two: {"always", "since two"},
        }
        for moment, true in expected.items():
            assert set(await texts(store, wanted=ListFilter(valid_at=moment))) == true
        assert len(await texts(store)) == 4

    # --- listing ---

    @scenario
    async def test_a_page_is_newest_first_and_goes_on_before_an_id(self, store: Store) -> None:
        scribe = Scribe()
        made: list[str] = []
        for number in range(5):
            message = scribe.message(f"message {number}")
            await add(store, scribe.turn(ANA, message))
            memory = scribe.revision(Scope(subject="ana"), f"memory {number}")
            await put(store, memory)
            made += [message.id, memory.id]
        everything = [record.id for record in await page(store)]
        assert everything == made[::-1]
        walked: list[str] = []
        before = None
        while part := await page(store, before=before, limit=3):
            walked += [record.id for record in part]
            before = walked[-1].partition("_")[2]
        assert walked == everything

    @scenario
    async def test_a_page_holds_only_what_was_wanted(self, store: Store) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, scribe.message("by ana"), scribe.message("by bob", sender="bob")))
        await add(store, scribe.turn(ANA, scribe.message("imported"), source="import"))
        scope = Scope(subject="ana")
        await put(store, scribe.revision(scope, "open"))
        await put(store, scribe.revision(scope, "private", plane=Plane.PRIVATE))
        await put(store, scribe.revision(scope, "doubtful", status=Status.QUARANTINED, source="import"))
        cases = [
            (ListFilter(kind=HitKind.MESSAGE), ["imported", "by bob", "by ana"]),
            (ListFilter(kind=HitKind.MEMORY), ["doubtful", "private", "open"]),
            (ListFilter(planes=frozenset({Plane.PRIVATE})), ["private", "imported", "by bob", "by ana"]),
            (ListFilter(planes=frozenset({Plane.PRIVATE}), kind=HitKind.MEMORY), ["private"]),
            (ListFilter(sender="bob"), ["by bob"]),
            (ListFilter(source="import"), ["doubtful", "imported"]),
            (ListFilter(status=Status.QUARANTINED), ["doubtful"]),
            (ListFilter(sender="nobody"), []),
        ]
        for wanted, expected in cases:
            assert await texts(store, wanted=wanted) == expected

    # --- what search reads ---

    @scenario
    async def test_a_delta_from_nothing_is_the_whole_partition(self, store: Store) -> None:
        scribe = Scribe()
        message = scribe.message("two pieces", vectors=[vector(1, 0), vector(0, 1)], role=Role.TOOL)
        turn = scribe.turn(replace(ANA, app="app"), message, source="s")
        await add(store, turn)
        memory = scribe.revision(Scope(subject="ana"), "fact", vectors=(), validity=Validity(message.said_at))
        await put(store, memory)
        await add(store, scribe.turn(BOB, "not Ana's"))
        whole = await delta(store)
        said, learned = await number_of(store, message.id), await number_of(store, memory.id)
        rows = {row.number: row for row in whole.rows}
        assert set(rows) == {said, learned}
        row = rows[said]
        assert (row.kind, row.plane, row.status, row.sender, row.role, row.source, row.position) == (
            0, None, "accepted", "ana", "tool", "s", 0,
        )  # fmt: skip
        assert (row.said_at, row.recorded_at) == (to_micros(message.said_at), to_micros(turn.recorded_at))
        assert (row.superseded_at, row.valid_from, row.valid_to) == (None, None, None)
        assert (row.flags, row.length, bytes(row.terms)) == (0, 2, b"")
        assert row.conversation_id is not None
        assert whole.scopes[row.scope_id] == replace(ANA, app="app")
        other = rows[learned]
        assert (other.kind, other.plane, other.conversation_id, other.sender, other.role) == (
            1, "long_term", None, None, None,
        )  # fmt: skip
        assert (other.valid_from, other.trust) == (to_micros(message.said_at), Trust.STATED)
        assert whole.scopes[other.scope_id] == Scope(subject="ana")
        vectors = [(each.number, each.piece, bytes(each.vector)) for each in whole.vectors]
        assert sorted(vectors) == [(said, 0, vector(1, 0)), (said, 1, vector(0, 1))]
        assert list(whole.removed) == []

    @scenario
    async def test_a_delta_holds_what_changed_since(self, store: Store) -> None:
        scribe = Scribe()
        first = scribe.revision(Scope(subject="ana"), "one")
        await put(store, first)
        start = (await delta(store)).change
        nothing = await delta(store, since=start)
        assert (nothing.change, list(nothing.rows), list(nothing.vectors), list(nothing.removed)) == (start, [], [], [])
        old = await number_of(store, first.id)
        message = scribe.message("new")
        await add(store, scribe.turn(ANA, message))
        new = await number_of(store, message.id)
        second = await delta(store, since=start)
        assert [row.number for row in second.rows] == [new]
        assert [each.number for each in second.vectors] == [new]
        await put(store, scribe.revision(Scope(subject="ana"), "two", of=first, supersedes=1))
        third = await delta(store, since=second.change)
        # The revision that was superseded has changed as well, and comes with all of its vectors.
        current = await number_of(store, first.id)
        assert {row.number for row in third.rows} == {old, current}
        assert {each.number for each in third.vectors} == {old, current}
        assert {row.number: row.superseded_at is None for row in third.rows} == {old: False, current: True}
        assert {row.number for row in (await delta(store)).rows} == {old, new, current}

    @scenario
    async def test_a_delta_names_what_was_removed(self, store: Store) -> None:
        scribe = Scribe()
        kept, gone = scribe.message("kept"), scribe.message("gone")
        await add(store, scribe.turn(ANA, kept, gone))
        number, start = await number_of(store, gone.id), (await delta(store)).change
        await forget(store, ForgetTarget(ids=(gone.id,)), writing(ANA), scribe.clock.step())
        change = await delta(store, since=start)
        assert (list(change.removed), list(change.rows)) == ([number], [])
        assert change.change > start
        whole = await delta(store)
        assert number not in [row.number for row in whole.rows]
        assert number not in [each.number for each in whole.vectors]
        assert list((await delta(store, since=change.change)).removed) == []

    @scenario
    async def test_new_vectors_are_a_change_and_others_are_not_given(self, store: Store) -> None:
        scribe = Scribe()
        message = scribe.message("hello", vectors=())
        await add(store, scribe.turn(ANA, message))
        number, start = await number_of(store, message.id), (await delta(store)).change
        entry = Indexed(number, [vector(0, 1), vector(1, 0)])
        await store.write(writing(ANA), lambda t: t.index([entry], EMBEDDER, ANALYZER))
        change = await delta(store, since=start)
        assert [row.number for row in change.rows] == [number]
        assert [bytes(each.vector) for each in change.vectors] == [vector(0, 1), vector(1, 0)]
        assert list((await delta(store, embedder="another")).vectors) == []
        # Fewer pieces than before: the old ones are gone.
        await store.write(writing(ANA), lambda t: t.index([Indexed(number, [vector()])], EMBEDDER, ANALYZER))
        assert [bytes(each.vector) for each in (await delta(store)).vectors] == [vector()]

    @scenario
    async def test_change_numbers_grow_and_other_partitions_are_not_moved(self, store: Store) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(BOB, "Bob's"))
        memory, message = scribe.revision(Scope(subject="ana"), "one"), scribe.message("hello")

        async def changes() -> tuple[int, int]:
            return await store.read(SPACE, lambda r: (r.change_of(ANA.partition), r.change_of(BOB.partition)))

        before = await changes()
        assert before[0] == 0
        assert before[1] > 0
        steps: list[Callable[[], Awaitable[object]]] = [
            lambda: add(store, scribe.turn(ANA, message)),
            lambda: put(store, memory),
            lambda: put(store, scribe.revision(Scope(subject="ana"), "two", of=memory, supersedes=1)),
            lambda: forget(store, ForgetTarget(ids=(message.id,)), writing(ANA), scribe.clock.step()),
            lambda: forget(store, ForgetTarget(subject="ana"), writing(Scope(subject="ana")), scribe.clock.step()),
        ]
        for step in steps:
            await step()
            after = await changes()
            assert after[0] > before[0]
            assert after[1] == before[1]
            before = after

    @scenario
    async def test_a_failed_write_moves_no_change_number(self, store: Store) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, "hello"))
        before = await delta(store)

        def fail(transaction: Transaction) -> None:
            transaction.add_turn(scribe.turn(ANA, "never"), EMBEDDER, ANALYZER)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await store.write(writing(ANA), fail)
        assert await delta(store) == before

    @scenario
    async def test_deltas_put_together_are_the_whole(self, store: Store) -> None:
        scribe = Scribe()
        rows: dict[int, object] = {}
        since = 0
        memory = scribe.revision(Scope(subject="ana"), "one")
        messages = [scribe.message(f"message {number}") for number in range(4)]
        steps: list[Callable[[], Awaitable[object]]] = [
            lambda: add(store, scribe.turn(ANA, *messages[:2])),
            lambda: put(store, memory),
            lambda: add(store, scribe.turn(ANA, *messages[2:])),
            lambda: put(store, scribe.revision(Scope(subject="ana"), "two", of=memory, supersedes=1)),
            lambda: forget(store, ForgetTarget(ids=(messages[0].id,)), writing(ANA), scribe.clock.step()),
            lambda: forget(store, ForgetTarget(ids=(memory.id,)), writing(Scope(subject="ana")), scribe.clock.step()),
        ]
        for step in steps:
            await step()
            part = await delta(store, since=since)
            for number in part.removed:
                rows.pop(number, None)
            rows.update((row.number, row) for row in part.rows)
            since = part.change
            assert rows == {row.number: row for row in (await delta(store)).rows}
        assert len(rows) == 3

    # --- retries ---

    @scenario
    async def test_an_answer_is_kept_for_its_partition_and_key(self, store: Store) -> None:
        scribe = Scribe()
        answer = Answer("digest", ("msg_1", None), "turn_1")
        await add(store, scribe.turn(BOB, "hello"))
        await store.write(writing(ANA), lambda t: t.keep_answer(ANA.partition, "key", answer, scribe.clock.now()))
        answers = await store.read(
            SPACE,
            lambda r: [r.answer(ANA.partition, "key"), r.answer(ANA.partition, "k"), r.answer(BOB.partition, "key")],
        )
        assert answers == [answer, None, None]

    # --- flushing ---

    @scenario
    async def test_what_was_said_since_the_last_seal_is_unsealed(self, store: Store) -> None:
        scribe = Scribe()
        messages = [scribe.message(f"message {number}") for number in range(4)]
        await add(store, scribe.turn(ANA, *messages[:3]))
        await add(store, scribe.turn(replace(ANA, conversation="other"), "elsewhere"))

        async def unsealed() -> list[str]:
            return list(await store.read(reading(ANA), lambda r: r.unsealed(ANA)))

        assert await unsealed() == [message.id for message in messages[:3]]
        await forget(store, ForgetTarget(ids=(messages[1].id,)), writing(ANA), scribe.clock.step())
        assert await unsealed() == [messages[0].id, messages[2].id]
        await store.write(writing(ANA), lambda t: t.seal(ANA))
        assert await unsealed() == []
        await add(store, scribe.turn(ANA, messages[3]))
        assert await unsealed() == [messages[3].id]
        other = replace(ANA, conversation="other")
        assert len(await store.read(reading(other), lambda r: r.unsealed(other))) == 1
        assert await store.write(writing(BOB), lambda t: t.seal(BOB)) == 0

    # --- forgetting ---

    @scenario
    async def test_what_is_forgotten_is_nowhere(self, store: Store) -> None:
        scribe = Scribe()
        message, kept = scribe.message("gone"), scribe.message("kept")
        await add(store, scribe.turn(ANA, message, kept))
        memory = scribe.revision(Scope(subject="ana"), "gone too")
        await put(store, memory)
        await put(store, scribe.revision(Scope(subject="ana"), "gone as well", of=memory, supersedes=1))
        known = scribe.clock.step()
        numbers = [await number_of(store, message.id), await number_of(store, memory.id)]
        target = ForgetTarget(ids=(message.id, memory.id))
        doomed = await store.read(reading(Scope(subject="ana")), lambda r: r.doomed(target))
        assert (doomed.message_ids, doomed.memory_ids) == ((message.id,), (memory.id,))
        assert (doomed.revisions, doomed.derived_ids, doomed.weakened, doomed.conversations) == (2, (), 0, 1)
        ended = await store.write(writing(Scope(subject="ana")), lambda t: t.forget(doomed, scribe.clock.now()))
        assert ended == (3, 0)
        for record_id in (message.id, memory.id):
            assert await found(store, record_id) is None
            assert await found(store, record_id, known) is None
            assert await store.read(SPACE, lambda r, record_id=record_id: list(r.revisions(record_id))) == []  # type: ignore[misc]
        assert await store.read(SPACE, lambda r: r.fetch(numbers)) == {}
        assert await texts(store) == await texts(store, wanted=ListFilter(as_of=known)) == ["kept"]
        assert (await store.read(SPACE, lambda r: r.counts(EMBEDDER)))["tombstones"] == 3
        again = await store.write(writing(Scope(subject="ana")), lambda t: t.forget(doomed, scribe.clock.now()))
        assert again == (0, 0)

    @scenario
    async def test_memories_that_rest_on_forgotten_messages_alone_go_with_them(self, store: Store) -> None:
        scribe = Scribe()
        one, two = scribe.message("one"), scribe.message("two")
        await add(store, scribe.turn(ANA, one, two))
        scope = Scope(subject="ana")
        alone = scribe.revision(scope, "on one", evidence=[one.id])
        both = scribe.revision(scope, "on both", evidence=[one.id, two.id])
        free = scribe.revision(scope, "on nothing")
        for memory in (alone, both, free):
            await put(store, memory)
        since = (await delta(store)).change
        target = ForgetTarget(ids=(one.id,))
        doomed = await store.read(reading(ANA), lambda r: r.doomed(target))
        assert (doomed.derived_ids, doomed.weakened, doomed.revisions) == ((alone.id,), 1, 1)
        assert await forget(store, target, writing(scope), scribe.clock.step()) == (2, 0)
        assert await texts(store) == ["on nothing", "on both", "two"]
        weakened = await found(store, both.id)
        assert isinstance(weakened, Memory)
        assert [link.text for link in weakened.evidence] == ["two"]
        # It lost a link: whoever holds a copy must learn of it.
        assert await number_of(store, both.id) in [row.number for row in (await delta(store, since=since)).rows]

    @scenario
    async def test_a_memory_with_other_evidence_in_any_revision_is_only_weakened(self, store: Store) -> None:
        scribe = Scribe()
        one, two = scribe.message("one"), scribe.message("two")
        await add(store, scribe.turn(ANA, one, two))
        memory = scribe.revision(Scope(subject="ana"), "first", evidence=[one.id])
        await put(store, memory)
        await put(store, scribe.revision(Scope(subject="ana"), "second", of=memory, supersedes=1, evidence=[two.id]))
        for message in (one, two):
            doomed = await store.read(
                reading(ANA),
                lambda r, message=message: r.doomed(ForgetTarget(ids=(message.id,))),  # type: ignore[misc]
            )
            assert (doomed.derived_ids, doomed.weakened) == ((), 1)

    @pytest.mark.parametrize(
        ("target", "left"),
        [
            (ForgetTarget(conversation="chat"), ["memory", "elsewhere"]),
            (ForgetTarget(subject="ana"), []),
            (ForgetTarget(source="import"), ["memory", "elsewhere", "said"]),
        ],
    )
    @scenario
    async def test_whole_conversations_subjects_and_sources_are_forgotten(
        self, store: Store, target: ForgetTarget, left: list[str]
    ) -> None:
        scribe = Scribe()
        for scope in (ANA, BOB):
            await add(store, scribe.turn(scope, "said"))
            await add(store, scribe.turn(scope, "imported", source="import"))
            await add(store, scribe.turn(replace(scope, conversation="other"), "elsewhere"))
            await put(store, scribe.revision(Scope(subject=scope.subject), "memory"))
        theirs = await texts(store, reading(Scope(subject="bob")))
        await forget(store, target, writing(Scope(subject="ana")), scribe.clock.step())
        assert await texts(store, reading(Scope(subject="ana"))) == left
        assert await texts(store, reading(Scope(subject="bob"))) == theirs

    @scenario
    async def test_the_fingerprint_changes_with_what_would_be_forgotten(self, store: Store) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, "one"))
        memory = scribe.revision(Scope(subject="ana"), "fact")
        await put(store, memory)
        target, grant = ForgetTarget(subject="ana"), reading(Scope(subject="ana"))
        seen = [(await store.read(grant, lambda r: r.doomed(target))).fingerprint]
        assert (await store.read(grant, lambda r: r.doomed(target))).fingerprint == seen[0]
        await add(store, scribe.turn(ANA, "two"))
        seen.append((await store.read(grant, lambda r: r.doomed(target))).fingerprint)
        await put(store, scribe.revision(Scope(subject="ana"), "corrected", of=memory, supersedes=1))
        seen.append((await store.read(grant, lambda r: r.doomed(target))).fingerprint)
        await add(store, scribe.turn(BOB, "not Ana's"))
        assert (await store.read(grant, lambda r: r.doomed(target))).fingerprint == seen[-1]
        assert len(set(seen)) == 3

    @scenario
    async def test_many_records_are_forgotten_at_once(self, store: Store) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, *(f"message {number}" for number in range(1_200))))
        target = ForgetTarget(subject="ana")
        assert await forget(store, target, writing(Scope(subject="ana")), scribe.clock.step()) == (1_200, 0)
        assert await texts(store) == []

    @scenario
    async def test_forgotten_records_are_nobodys_work(self, store: Store) -> None:
        scribe = Scribe()
        gone, kept = scribe.message("gone"), scribe.message("kept")
        await add(store, scribe.turn(ANA, gone, kept))
        await enqueue(store, scribe, scribe.job(record_ids=(gone.id, kept.id)))
        await forget(store, ForgetTarget(ids=(gone.id,)), writing(ANA), scribe.clock.step())
        assert [job.record_ids for job in await store.read(SPACE, lambda r: r.jobs())] == [(kept.id,)]

    @scenario
    async def test_scrubbing_leaves_everything_that_was_kept(self, store: Store) -> None:
        scribe = Scribe()
        message, kept = scribe.message("gone"), scribe.message("kept")
        await add(store, scribe.turn(ANA, message, kept))
        await forget(store, ForgetTarget(ids=(message.id,)), writing(ANA), scribe.clock.step())
        assert await store.scrub() is True
        assert await texts(store) == ["kept"]

    # --- indexing ---

    @scenario
    async def test_what_waits_for_vectors_or_analysis_is_found_in_order(self, store: Store) -> None:
        scribe = Scribe()
        done, bare = scribe.message("done"), scribe.message("bare", vectors=())
        await add(store, scribe.turn(ANA, done, bare))
        await put(store, scribe.revision(Scope(subject="ana"), "memory", vectors=()))

        async def unindexed(embedder: str = EMBEDDER, analyzer: int = ANALYZER, after: int = 0) -> list[str]:
            return [
                record.text for record in await store.read(SPACE, lambda r: r.unindexed(embedder, analyzer, after, 10))
            ]

        assert await unindexed() == ["bare", "memory"]
        assert await unindexed(after=await number_of(store, bare.id)) == ["memory"]
        assert await unindexed(embedder="another") == await unindexed(analyzer=2) == ["done", "bare", "memory"]
        waiting = await store.read(SPACE, lambda r: r.waiting([done.id, bare.id, "msg_0"], EMBEDDER, ANALYZER))
        assert [(each.id, each.text) for each in waiting] == [(bare.id, "bare")]
        limited = await store.read(SPACE, lambda r: r.unindexed("another", 1, 0, 2))
        assert [each.text for each in limited] == ["done", "bare"]
        entry = Indexed(await number_of(store, bare.id), [vector()], analysis("bare"))
        await store.write(writing(ANA), lambda t: t.index([entry], EMBEDDER, ANALYZER))
        assert await unindexed() == ["memory"]

    @scenario
    async def test_everything_can_be_marked_stale_while_search_goes_on(self, store: Store) -> None:
        scribe = Scribe()
        message = scribe.message("hello")
        await add(store, scribe.turn(ANA, message))
        memory = scribe.revision(Scope(subject="ana"), "one")
        await put(store, memory)
        await put(store, scribe.revision(Scope(subject="ana"), "two", of=memory, supersedes=1))
        await add(store, scribe.turn(replace(ANA, space="other"), "not ours"))
        before = await delta(store)
        assert await store.write(SPACE, lambda t: t.mark_stale()) == 3
        after = await delta(store)
        assert (after.rows, after.vectors) == (before.rows, before.vectors)
        stale = await store.read(EVERYTHING, lambda r: r.unindexed(EMBEDDER, ANALYZER, 0, 10))
        assert sorted(each.text for each in stale) == ["hello", "one", "two"]
        entries = [Indexed(each.number, [vector(0, 1)], analysis(each.text)) for each in stale]
        await store.write(SPACE, lambda t: t.index(entries, EMBEDDER, ANALYZER))
        assert await store.read(EVERYTHING, lambda r: list(r.unindexed(EMBEDDER, ANALYZER, 0, 10))) == []
        assert {bytes(each.vector) for each in (await delta(store)).vectors} == {vector(0, 1)}

    @scenario
    async def test_indexing_brings_a_new_analysis(self, store: Store) -> None:
        scribe = Scribe()
        message = scribe.message("hello")
        await add(store, scribe.turn(ANA, message))
        terms = struct.pack("<QH", 2**63 + 5, 3)
        made = Analysis(terms=terms, length=7, flags=Flag.LONG | Flag.QUESTION_ONLY, pieces=("hello",))
        entry = Indexed(await number_of(store, message.id), [vector()], made)
        await store.write(writing(ANA), lambda t: t.index([entry], EMBEDDER, 2))
        (row,) = (await delta(store)).rows
        assert (bytes(row.terms), row.length, Flag(row.flags)) == (terms, 7, Flag.LONG | Flag.QUESTION_ONLY)
        assert await store.read(SPACE, lambda r: list(r.unindexed(EMBEDDER, 2, 0, 10))) == []

    @scenario
    async def test_indexing_what_was_forgotten_meanwhile_does_nothing(self, store: Store) -> None:
        scribe = Scribe()
        message = scribe.message("hello", vectors=())
        await add(store, scribe.turn(ANA, message))
        entry = Indexed(await number_of(store, message.id), [vector()], analysis("hello"))
        await forget(store, ForgetTarget(ids=(message.id,)), writing(ANA), scribe.clock.step())
        await store.write(writing(ANA), lambda t: t.index([entry], EMBEDDER, ANALYZER))
        whole = await delta(store)
        assert (list(whole.rows), list(whole.vectors)) == ([], [])

    @scenario
    async def test_facts_about_the_store_are_kept_and_replaced(self, store: Store) -> None:
        await store.write(EVERYTHING, lambda t: t.put_fact("made_by", "one"))
        await store.write(EVERYTHING, lambda t: t.put_fact("made_by", "two"))
        assert await store.read(SPACE, lambda r: (r.fact("made_by"), r.fact("other"))) == ("two", None)

    # --- jobs ---

    @scenario
    async def test_the_oldest_due_job_of_the_wanted_kinds_is_claimed(self, store: Store) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, "hello"))
        now = scribe.clock.now()
        later = await enqueue(store, scribe, scribe.job(), now + timedelta(seconds=5))
        second = await enqueue(store, scribe, scribe.job(), now)
        third = await enqueue(store, scribe, scribe.job(JobKind.EXTRACT), now)
        first = await enqueue(store, scribe, scribe.job(record_ids=("msg_1",)), now - timedelta(seconds=5))
        assert not await store.read(EVERYTHING, lambda r: r.due(now - timedelta(hours=1)))
        assert await store.read(EVERYTHING, lambda r: r.due(now))
        job = await claimed(store, now)
        assert (job.id, job.kind, job.scope, job.record_ids) == (first, JobKind.INDEX, ANA, ("msg_1",))
        assert (job.status, job.attempt, job.token, job.lease_until, job.started_at) == (
            JobStatus.RUNNING, 1, 1, now + LEASE, now,
        )  # fmt: skip
        extraction = await claim(store, now, frozenset({JobKind.EXTRACT}))
        assert extraction is not None
        assert extraction.id == third
        assert (await claimed(store, now)).id == second
        assert await claim(store, now) is None
        assert (await claimed(store, now + timedelta(seconds=5))).id == later

    @scenario
    async def test_a_job_is_claimed_by_one_worker_only(self, store: Store) -> None:
        scribe = Scribe()
        ids = {await enqueue(store, scribe, scribe.job()) for _ in range(5)}
        got = await asyncio.gather(*(claim(store, scribe.clock.now()) for _ in range(12)))
        taken = [job.id for job in got if job is not None]
        assert len(taken) == 5
        assert set(taken) == ids

    @scenario
    async def test_a_job_whose_lease_ran_out_is_claimed_again_under_a_new_token(self, store: Store) -> None:
        scribe = Scribe()
        await enqueue(store, scribe, scribe.job())
        now = scribe.clock.now()
        first = await claimed(store, now)
        assert await claim(store, now + LEASE - timedelta(microseconds=1)) is None
        second = await claimed(store, now + LEASE)
        assert (second.id, second.token, second.started_at) == (first.id, first.token + 1, now)

    @scenario
    async def test_a_heartbeat_keeps_the_lease_and_tells_progress(self, store: Store) -> None:
        scribe = Scribe()
        await enqueue(store, scribe, scribe.job())
        now = scribe.clock.now()
        job = await claimed(store, now)
        halfway = now + LEASE / 2
        await store.write(EVERYTHING, lambda t: t.extend(job, halfway, LEASE, 3, 9))
        assert await claim(store, now + LEASE) is None
        (seen,) = await store.read(EVERYTHING, lambda r: r.jobs())
        assert (seen.done, seen.total, seen.lease_until) == (3, 9, halfway + LEASE)

    @scenario
    async def test_who_lost_the_lease_commits_nothing(self, store: Store) -> None:
        scribe = Scribe()
        await enqueue(store, scribe, scribe.job())
        now = scribe.clock.now()
        lost = await claimed(store, now)
        held = await claimed(store, now + LEASE)

        def effect(transaction: Transaction, ending: Callable[[Transaction], None]) -> None:
            transaction.add_turn(scribe.turn(ANA, "an effect"), EMBEDDER, ANALYZER)
            ending(transaction)

        endings: list[Callable[[Transaction], None]] = [
            lambda t: t.finish(lost, JobStatus.SUCCEEDED, now),
            lambda t: t.extend(lost, now, LEASE, 1, 1),
            lambda t: t.retry(lost, now, now, "error"),
        ]
        for ending in endings:
            with pytest.raises(LeaseLost):
                await store.write(EVERYTHING, lambda t, ending=ending: effect(t, ending))  # type: ignore[misc]
        assert await texts(store) == []
        assert await store.read(EVERYTHING, lambda r: r.job_counts()) == {"running": 1}
        await store.write(EVERYTHING, lambda t: effect(t, lambda t: t.finish(held, JobStatus.SUCCEEDED, now)))
        assert await texts(store) == ["an effect"]
        with pytest.raises(LeaseLost):
            await store.write(EVERYTHING, lambda t: t.finish(held, JobStatus.SUCCEEDED, now))

    @scenario
    async def test_a_finished_job_is_not_claimed_and_says_how_it_ended(self, store: Store) -> None:
        scribe = Scribe()
        now = scribe.clock.now()
        for status, error in ((JobStatus.SUCCEEDED, None), (JobStatus.FAILED, "broken"), (JobStatus.CANCELLED, None)):
            await enqueue(store, scribe, scribe.job())
            job = await claimed(store, now)
            await store.write(EVERYTHING, lambda t, j=job, s=status, e=error: t.finish(j, s, now, e))  # type: ignore[misc]
        assert await claim(store, now + 10 * LEASE) is None
        jobs = await store.read(EVERYTHING, lambda r: r.jobs())
        assert [(job.status, job.error, job.finished_at) for job in jobs] == [
            (JobStatus.CANCELLED, None, now),
            (JobStatus.FAILED, "broken", now),
            (JobStatus.SUCCEEDED, None, now),
        ]
        assert [job.error for job in await store.read(EVERYTHING, lambda r: r.jobs(JobStatus.FAILED))] == ["broken"]
        assert len(await store.read(EVERYTHING, lambda r: r.jobs(limit=2))) == 2

    @scenario
    async def test_a_retry_is_another_attempt_later(self, store: Store) -> None:
        scribe = Scribe()
        await enqueue(store, scribe, scribe.job(record_ids=("msg_1",)))
        now = scribe.clock.now()
        seen: list[tuple[int, int]] = []
        ids: set[str] = set()
        for _ in range(12):
            job = await claimed(store, now)
            ids.add(job.id)
            seen.append((job.attempt, job.token))
            assert job.record_ids == ("msg_1",)
            again = now + timedelta(seconds=2)
            await store.write(EVERYTHING, lambda t, j=job, n=now, a=again: t.retry(j, n, a, "no answer"))  # type: ignore[misc]
            assert await claim(store, now) is None
            now = again
        assert seen == [(attempt, 1) for attempt in range(1, 13)]
        assert len(ids) == 12
        counts = await store.read(EVERYTHING, lambda r: r.job_counts())
        assert counts == {"failed": 12, "queued": 1}

    @scenario
    async def test_a_job_given_back_is_claimed_again_at_once(self, store: Store) -> None:
        scribe = Scribe()
        await enqueue(store, scribe, scribe.job())
        now = scribe.clock.now()
        job = await claimed(store, now)
        await store.write(EVERYTHING, lambda t: t.release(job))
        again = await claimed(store, now)
        assert (again.id, again.token) == (job.id, job.token + 1)
        # Too late: somebody else holds it.
        await store.write(EVERYTHING, lambda t: t.release(job))
        assert await claim(store, now) is None

    @pytest.mark.parametrize("kind", [JobKind.REEMBED, JobKind.SCRUB])
    @scenario
    async def test_work_that_is_idempotent_is_queued_once(self, store: Store, kind: JobKind) -> None:
        scribe = Scribe()
        everywhere = Scope(space=EVERYWHERE)
        first = await enqueue(store, scribe, scribe.job(kind, everywhere))
        assert await enqueue(store, scribe, scribe.job(kind, everywhere)) == first
        job = await claimed(store, scribe.clock.now())
        # What runs already may have passed what is new: so it is queued again.
        second = await enqueue(store, scribe, scribe.job(kind, everywhere))
        assert second != first
        await store.write(EVERYTHING, lambda t: t.finish(job, JobStatus.SUCCEEDED, scribe.clock.now()))
        assert (await claimed(store, scribe.clock.now())).id == second

    @scenario
    async def test_other_work_is_queued_each_time(self, store: Store) -> None:
        scribe = Scribe()
        for kind in (JobKind.INDEX, JobKind.INDEX, JobKind.EXTRACT, JobKind.EXTRACT):
            await enqueue(store, scribe, scribe.job(kind))
        assert await store.read(EVERYTHING, lambda r: r.job_counts()) == {"queued": 4}

    @scenario
    async def test_a_job_exists_only_if_what_caused_it_does(self, store: Store) -> None:
        scribe = Scribe()

        def fail(transaction: Transaction) -> None:
            transaction.enqueue(scribe.job_id(), scribe.job(), scribe.clock.now())
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await store.write(EVERYTHING, fail)
        assert await claim(store, scribe.clock.now()) is None

    # --- audit ---

    @scenario
    async def test_an_operation_commits_with_its_write(self, store: Store) -> None:
        scribe = Scribe()
        operation = replace(
            scribe.operation(ANA, Action.ADD, touched=2),
            actor=Actor(ActorKind.AGENT, "bot"),
            outcome=Outcome.FAILED,
            error_code="store_full",
        )

        def write(transaction: Transaction) -> None:
            transaction.add_turn(scribe.turn(ANA, "hello"), EMBEDDER, ANALYZER)
            transaction.record(operation)

        await store.write(writing(ANA), write)
        assert list(await store.read(SPACE, lambda r: r.operations())) == [operation]

        def fail(transaction: Transaction) -> None:
            transaction.record(scribe.operation(ANA))
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await store.write(writing(ANA), fail)
        assert len(await store.read(SPACE, lambda r: r.operations())) == 1

    @scenario
    async def test_the_audit_row_of_a_read_is_written_soon(self, store: Store) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, "hello"))
        rows = [scribe.operation(ANA) for _ in range(3)]
        for row in rows:
            await store.audit(row)

        async def written() -> bool:
            return list(await store.read(EVERYTHING, lambda r: r.operations())) == rows[::-1]

        await until(written)
        assert len(await store.read(EVERYTHING, lambda r: r.operations(limit=2))) == 2

    @scenario
    async def test_very_many_audit_rows_are_all_written(self, store: Store) -> None:
        scribe = Scribe()
        for _ in range(3_000):
            await store.audit(scribe.operation(ANA))

        async def written() -> bool:
            return len(await store.read(EVERYTHING, lambda r: r.operations(limit=5_000))) == 3_000

        await until(written)

    @scenario
    async def test_an_audit_row_that_cannot_be_written_spoils_nothing_else(self, store: Store) -> None:
        scribe = Scribe()
        good, twice = scribe.operation(ANA), scribe.operation(ANA)
        for row in (twice, twice, good):
            await store.audit(row)
        await add(store, scribe.turn(ANA, "hello"))

        async def written() -> bool:
            return len(await store.read(EVERYTHING, lambda r: r.operations())) == 2

        await until(written)
        assert await texts(store) == ["hello"]

    # --- transactions ---

    @scenario
    async def test_a_failing_write_is_rolled_back_alone(self, store: Store) -> None:
        scribe = Scribe()
        turns = [scribe.turn(ANA, f"message {number}") for number in range(30)]

        def work(number: int) -> Callable[[Transaction], int]:
            def write(transaction: Transaction) -> int:
                transaction.add_turn(turns[number], EMBEDDER, ANALYZER)
                if number % 3 == 0:
                    raise ValueError(number)
                return number

            return write

        ended = await asyncio.gather(
            *(store.write(writing(ANA), work(number)) for number in range(30)), return_exceptions=True
        )
        for number, outcome in enumerate(ended):
            if number % 3 == 0:
                # Each caller gets its own.
                assert isinstance(outcome, ValueError)
                assert outcome.args == (number,)
            else:
                assert outcome == number
        kept = {f"message {number}" for number in range(30) if number % 3}
        assert set(await texts(store)) == kept
        positions = sorted(record.position for record in await page(store) if isinstance(record, Message))
        assert positions == list(range(20))

    @scenario
    async def test_what_breaks_the_stores_own_rules_is_an_error_of_holdfast(self, store: Store) -> None:
        scribe = Scribe()
        memory = scribe.revision(Scope(subject="ana"), "one")
        await put(store, memory)

        def clash(transaction: Transaction) -> None:
            transaction.add_turn(scribe.turn(ANA, "never"), EMBEDDER, ANALYZER)
            transaction.add_revision(replace(memory, text="the same id again"), EMBEDDER, ANALYZER)

        ended = await asyncio.gather(
            store.write(writing(ANA), clash), add(store, scribe.turn(ANA, "hello")), return_exceptions=True
        )
        assert isinstance(ended[0], HoldfastError)
        assert await texts(store) == ["hello", "one"]

    @scenario
    async def test_a_write_sees_what_it_wrote_and_others_only_what_is_committed(self, store: Store) -> None:
        scribe = Scribe()
        message = scribe.message("hello")
        turn = scribe.turn(ANA, message)

        def write(transaction: Transaction) -> list[Record]:
            transaction.add_turn(turn, EMBEDDER, ANALYZER)
            assert transaction.find(message.id) is not None
            return list(transaction.page(ListFilter(), None, 10))

        assert [record.text for record in await store.write(writing(ANA), write)] == ["hello"]

    @scenario
    async def test_a_reader_sees_one_moment(self, store: Store) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, "before"))
        looked, written = threading.Event(), threading.Event()

        def look(reader: Reader) -> tuple[int, int]:
            first = reader.counts(EMBEDDER)["messages"]
            looked.set()
            # A store may make the writer wait until the reader is done: then nothing is written meanwhile.
            written.wait(0.5)
            return first, reader.counts(EMBEDDER)["messages"]

        async def write() -> None:
            await asyncio.to_thread(looked.wait, _PATIENCE_SECONDS)
            await add(store, scribe.turn(ANA, "after"))
            written.set()

        seen, _ = await asyncio.gather(store.read(SPACE, look), write())
        assert seen == (1, 1)
        assert await texts(store) == ["after", "before"]

    @scenario
    async def test_a_failing_read_tells_its_caller_and_spoils_nothing(self, store: Store) -> None:
        def fail(reader: Reader) -> None:
            reader.page(ListFilter(), None, 1)
            raise ValueError("mine")

        ended = await asyncio.gather(
            *(store.read(SPACE, fail) for _ in range(10)), texts(store), return_exceptions=True
        )
        assert [str(outcome) for outcome in ended[:10]] == ["mine"] * 10
        assert ended[10] == []

    @scenario
    async def test_a_cancelled_write_is_whole_or_not_there_and_the_store_goes_on(self, store: Store) -> None:
        scribe = Scribe()
        started, go_on = threading.Event(), threading.Event()

        def slow(transaction: Transaction) -> None:
            started.set()
            go_on.wait(_PATIENCE_SECONDS)
            transaction.add_turn(scribe.turn(ANA, "slow 1", "slow 2"), EMBEDDER, ANALYZER)

        running = asyncio.create_task(store.write(writing(ANA), slow))
        await asyncio.to_thread(started.wait, _PATIENCE_SECONDS)
        queued = asyncio.create_task(add(store, scribe.turn(BOB, "queued 1", "queued 2")))
        await asyncio.sleep(0)
        for task in (running, queued):
            task.cancel()
        go_on.set()
        for task in (running, queued):
            with pytest.raises(asyncio.CancelledError):
                await task
        await add(store, scribe.turn(ANA, "after"))
        said = await texts(store)
        assert "after" in said
        assert len([text for text in said if text.startswith("slow")]) in (0, 2)
        assert len([text for text in said if text.startswith("queued")]) in (0, 2)

    @scenario
    async def test_integrity_finds_nothing_wrong_after_all_of_it(self, store: Store) -> None:
        scribe = Scribe()
        for scope in (ANA, BOB, SHARED):
            await self._populate(store, scribe, scope)
        memory = scribe.revision(Scope(subject="ana"), "one")
        await put(store, memory)
        await put(store, scribe.revision(Scope(subject="ana"), "two", of=memory, supersedes=1))
        checked, findings = await store.read(EVERYTHING, lambda r: r.integrity(EMBEDDER))
        assert list(findings) == []
        assert checked["records"] == 8

    # --- closing ---

    @scenario
    async def test_a_closed_store_says_so(self, store: Store) -> None:
        scribe = Scribe()
        await store.close()
        for _ in range(2):
            with pytest.raises(StoreClosed):
                await store.read(SPACE, lambda r: r.partitions())
            with pytest.raises(StoreClosed):
                await store.write(SPACE, lambda t: t.partitions())
            with pytest.raises(StoreClosed):
                await store.audit(scribe.operation(ANA))
            with pytest.raises(StoreClosed):
                await store.scrub()
        await store.close()

    @scenario
    async def test_writes_that_were_accepted_are_finished_on_closing(self, store: Store) -> None:
        scribe = Scribe()
        writes = [asyncio.ensure_future(add(store, scribe.turn(ANA, f"message {number}"))) for number in range(20)]
        await asyncio.sleep(0)
        await store.close()
        assert all(len(stored.new) == 1 for stored in await asyncio.gather(*writes))

    @scenario
    async def test_a_store_says_where_it_is(self, store: Store) -> None:
        assert store.location


class DurableStoreContract(StoreContract):
    """For stores that outlive their closing: the `store` factory opens the same one again."""

    def test_what_was_written_is_there_after_reopening(self, store: StoreFactory) -> None:
        async def whole() -> None:
            scribe = Scribe()
            message, memory = scribe.message("hello", external_id="m1"), scribe.revision(Scope(subject="ana"), "fact")
            first = await store()
            await add(first, scribe.turn(ANA, message))
            await put(first, memory)
            await put(first, scribe.revision(Scope(subject="ana"), "corrected", of=memory, supersedes=1))
            await enqueue(first, scribe, scribe.job())
            before = await page(first), await delta(first)
            await first.close()
            second = await store()
            assert (await page(second), await delta(second)) == before
            assert len(await second.read(SPACE, lambda r: r.revisions(memory.id))) == 2
            assert await claim(second, scribe.clock.now()) is not None
            assert (await add(second, scribe.turn(ANA, scribe.message("hello", external_id="m1")))).new == frozenset()
            await second.close()

        asyncio.run(whole())

    def test_audit_rows_are_written_on_closing(self, store: StoreFactory) -> None:
        async def whole() -> None:
            scribe = Scribe()
            first = await store()
            await add(first, scribe.turn(ANA, "hello"))
            rows = [scribe.operation(ANA) for _ in range(50)]
            for row in rows:
                await first.audit(row)
            await first.close()
            second = await store()
            assert list(await second.read(EVERYTHING, lambda r: r.operations())) == rows[::-1]
            await second.close()

        asyncio.run(whole())

    def test_two_stores_on_one_place_see_each_others_writes(self, store: StoreFactory) -> None:
        async def whole() -> None:
            scribe = Scribe()
            first, second = await store(), await store()
            turns = [scribe.turn(ANA, f"message {number}") for number in range(40)]
            await asyncio.gather(*(add((first, second)[at % 2], turn) for at, turn in enumerate(turns)))
            assert sorted(await texts(first)) == sorted(await texts(second))
            messages = [record for record in await page(first) if isinstance(record, Message)]
            assert sorted(message.position for message in messages) == list(range(40))
            await enqueue(first, scribe, scribe.job())
            got = await asyncio.gather(*(claim(each, scribe.clock.now()) for each in (first, second) * 4))
            assert len([job for job in got if job is not None]) == 1
            await first.close()
            assert len(await texts(second)) == 40
            await second.close()

        asyncio.run(whole())
