"""The states of turns: archived turns are not found, masked ones are not shown, deleted ones are gone.

One table lists the states in which each method of a reader shows content.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pytest

from holdfast.domain.access import Grant
from holdfast.domain.costs import CostGroup
from holdfast.domain.events import Event, EventKind
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.hooks import DeliveryFilter
from holdfast.domain.ids import EventId, MemoryId, MessageId
from holdfast.domain.jobs import JobFilter
from holdfast.domain.memory import OPEN_PLANES, MemoryRecord, Plane, Status
from holdfast.domain.operations import OperationFilter
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Message, Role
from holdfast.domain.transcript_turns import (
    Authority,
    HostOpaqueRef,
    RefVisibility,
    Relation,
    TranscriptState,
    Utterance,
)
from holdfast.errors import NotFound
from holdfast.ports import IndexUpdate, ListFilter, Reader, Store, Transaction
from holdfast.testing.store_suite.scribe import (
    ANA,
    ANALYZER,
    EMBEDDER,
    EVERYTHING,
    SPACE,
    Scribe,
    add,
    analysis,
    delta,
    enqueue,
    find_record,
    forget,
    number_of,
    page,
    put,
    read_grant,
    scenario,
    texts,
    vector,
    write_grant,
)
from holdfast.testing.store_suite.transcripts import read_thread, turns

_S = TranscriptState
STATUS = {
    _S.ACTIVE: Status.ACCEPTED,
    _S.ARCHIVED: Status.ARCHIVED,
    _S.MASKED: Status.MASKED,
    _S.RAW_DELETED: Status.RAW_DELETED,
}
PRIVATE = {Authority.PRIVATE_GARDEN_INTERNAL, Authority.OPERATOR_DIAGNOSTIC, Authority.SOUL_GOVERNANCE}
CANARY = "canary"
LABELLED = HostOpaqueRef("desk", "ticket", "7", Relation.ORIGIN, RefVisibility.HOST_UI, "a canary label")


@dataclass(frozen=True)
class World:
    """One turn full of canaries, a memory learned from it, and records that refer to either."""

    scribe: Scribe
    message: MessageId
    number: int
    memory: MemoryId
    learned: int
    since: int
    known_at: datetime


async def build_world(store: Store, authority: Authority | None = None) -> World:
    scribe = Scribe()
    await add(store, scribe.turn(ANA, "before"))
    message = scribe.message(
        "the canary sings", sender="canary", external_id="canary-1", metadata={"bird": "canary"}, said_at=None
    )
    turn = scribe.turn(ANA, replace(message, authority=authority), source="canary")
    await add(store, replace(turn, external_id="t2", host_refs=[LABELLED]))
    await add(store, scribe.turn(ANA, "after"))
    memory = scribe.revision(Scope(subject="ana"), "something learned", evidence=[message.id], slot="slot")
    await put(store, memory)
    await enqueue(store, scribe, scribe.job(record_ids=(message.id,)))
    event = Event(EventId("evt_1"), EventKind.WRITE, ANA, scribe.clock.now(), None, message.id, CANARY)
    await store.write(write_grant(ANA), lambda t: t.append_event(event))
    number, learned = await number_of(store, message.id), await number_of(store, memory.id)
    since = (await delta(store)).change
    return World(scribe, message.id, number, memory.id, learned, since, scribe.clock.step())


async def move_to(store: Store, given: World, state: TranscriptState) -> int:
    at = given.scribe.clock.step()
    return await store.write(write_grant(ANA), lambda t: t.set_state(ANA, [2], state, at))


# --- content by method ------------------------------------------------------------------------------------------------

NEVER: frozenset[TranscriptState] = frozenset()
FOUND = frozenset({_S.ACTIVE})
READ = frozenset({_S.ACTIVE, _S.ARCHIVED})
# For callers that redact or compare, and show nothing themselves.
HANDED_OVER = frozenset({_S.ACTIVE, _S.ARCHIVED, _S.MASKED})
_ASK = Callable[[Reader, World], object]
_TARGET = ForgetTarget(conversation="chat")


def _id_of(value: object, given: World) -> object:
    """For results that hold only ids: the canary if the message's id is among them."""
    return CANARY if given.message in repr(value) else None


def _page_of(status: Status) -> _ASK:
    return lambda reader, given: reader.page(ListFilter(status=status), None, 10)


# The call of each method, and the states in which its result may hold the content.
METHODS: dict[str, tuple[_ASK, frozenset[TranscriptState]]] = {
    "delta": (lambda r, w: r.delta(ANA.partition, 0, EMBEDDER), FOUND),
    "delta since": (lambda r, w: r.delta(ANA.partition, w.since, EMBEDDER), NEVER),
    "delta vectors": (lambda r, w: CANARY if _has_vector(r, w) else None, FOUND),
    "fetch": (lambda r, w: r.fetch([w.number]), READ),
    "fetch evidence": (lambda r, w: r.fetch([w.learned]), FOUND),
    "find": (lambda r, w: r.find(w.message), READ),
    "find as_of": (lambda r, w: r.find(w.message, w.known_at), READ),
    "find evidence": (lambda r, w: r.find(w.memory), FOUND),
    "revisions": (lambda r, w: r.revisions(w.message), READ),
    "revisions evidence": (lambda r, w: r.revisions(w.memory), FOUND),
    "page": (lambda r, w: [e for e in r.page(ListFilter(), None, 10) if isinstance(e, Message)], READ),
    "page as_of": (
        lambda r, w: [e for e in r.page(ListFilter(as_of=w.known_at), None, 10) if isinstance(e, Message)],
        READ,
    ),
    "page evidence": (lambda r, w: [e for e in r.page(ListFilter(), None, 10) if isinstance(e, MemoryRecord)], FOUND),
    "page sender": (lambda r, w: r.page(ListFilter(sender=CANARY), None, 10), READ),
    "page source": (lambda r, w: r.page(ListFilter(source=CANARY), None, 10), READ),
    "page unsealed": (
        lambda r, w: [e for e in r.page(ListFilter(unsealed=True), None, 10) if isinstance(e, Message)],
        READ,
    ),
    **{
        f"page {status}": (_page_of(status), READ & {state})
        for state, status in STATUS.items()
        if status is not Status.ACCEPTED
    },
    "in_slot": (lambda r, w: r.in_slot(Scope(subject="ana"), "slot"), FOUND),
    "unsealed": (lambda r, w: _id_of(r.unsealed(ANA), w), FOUND),
    "unindexed": (lambda r, w: r.unindexed("another", ANALYZER, 0, 10), READ),  # an embedder may be external
    "waiting": (lambda r, w: r.waiting([w.message], "another", ANALYZER), READ),
    "tail": (lambda r, w: r.tail(ANA, 10), HANDED_OVER),
    "turns": (lambda r, w: r.turns(ANA, 0, 10), HANDED_OVER),
    "last_turns": (lambda r, w: r.last_turns(ANA, 10), HANDED_OVER),
    "turn": (lambda r, w: r.turn(ANA, "t2"), HANDED_OVER),
    "turn_states": (lambda r, w: r.turn_states(ANA, 0, 10), NEVER),
    "turn_count": (lambda r, w: r.turn_count(ANA), NEVER),
    "derived_from": (lambda r, w: r.derived_from(ANA, [2], 10), NEVER),
    "check_transcript": (lambda r, w: r.check_transcript(ANA, 10), NEVER),
    "threads": (lambda r, w: r.threads(None, 10), NEVER),
    "alias": (lambda r, w: r.alias(ANA, CANARY), NEVER),
    "aliases": (lambda r, w: r.aliases(ANA.partition, b"", 10), NEVER),
    "messages": (lambda r, w: r.messages([w.message]), READ),
    "memories": (lambda r, w: r.memories("", 10), FOUND),
    "links": (lambda r, w: r.links([w.memory]), NEVER),
    "present": (lambda r, w: r.present([w.message]), NEVER),
    "buried": (lambda r, w: r.buried(ANA.partition, [w.message]), NEVER),
    "mendable": (lambda r, w: r.mendable(w.known_at, 10), NEVER),
    "events": (lambda r, w: r.events(10), HANDED_OVER),  # a digest, for as long as there is content
    "doomed": (lambda r, w: r.doomed(_TARGET), NEVER),
    "holding": (lambda r, w: r.holding(), NEVER),
    "partitions": (lambda r, w: r.partitions(), NEVER),
    "change_of": (lambda r, w: r.change_of(ANA.partition), NEVER),
    "nearest": (lambda r, w: r.nearest(ANA.partition, EMBEDDER), NEVER),
    "nearest_due": (lambda r, w: r.nearest_due(EMBEDDER, 1), NEVER),
    "answer": (lambda r, w: r.answer(ANA.partition, CANARY), NEVER),
    "counts": (lambda r, w: r.counts(EMBEDDER, ANALYZER), NEVER),
    "user": (lambda r, w: r.user(CANARY), NEVER),
    "user_with_key": (lambda r, w: r.user_with_key(b"canary"), NEVER),
    "users": (lambda r, w: r.users(None, 10), NEVER),
    "resource": (lambda r, w: r.resource(CANARY), NEVER),
    "resource_of": (lambda r, w: r.resource_of(ANA, "00", None), NEVER),
    "chunks_of": (lambda r, w: None, NEVER),  # only memories have chunks
    "resources": (lambda r, w: r.resources(None, 10), NEVER),
    "fact": (lambda r, w: r.fact(CANARY), NEVER),
    "job_counts": (lambda r, w: r.job_counts(), NEVER),
    "jobs": (lambda r, w: _id_of(r.jobs(), w), HANDED_OVER),
    "due": (lambda r, w: r.due(w.known_at), NEVER),
    "operations": (lambda r, w: r.operations(), NEVER),
    "integrity": (lambda r, w: r.integrity(EMBEDDER), NEVER),
    "bindings": (lambda r, w: r.bindings(), NEVER),
    "targets": (lambda r, w: r.targets(), NEVER),
    "operation": (lambda r, w: r.operation(CANARY), NEVER),
    "operations_page": (lambda r, w: r.operations_page(OperationFilter(), None, 10), NEVER),
    "metrics": (lambda r, w: r.metrics(None, None), NEVER),
    "job": (lambda r, w: [_id_of(r.job(each.id), w) for each in r.jobs()], HANDED_OVER),
    "jobs_page": (lambda r, w: _id_of(r.jobs_page(JobFilter(), w.known_at, None, 10), w), HANDED_OVER),
    "delivering": (lambda r, w: r.delivering(CANARY), NEVER),
    "tried_again": (lambda r, w: r.tried_again([CANARY]), NEVER),
    "dead_deliveries": (lambda r, w: r.dead_deliveries([CANARY]), NEVER),
    "delivery": (lambda r, w: r.delivery(CANARY), NEVER),
    "delivery_of": (lambda r, w: r.delivery_of(CANARY, CANARY, Scope()), NEVER),
    "payload_of": (lambda r, w: r.payload_of(CANARY), NEVER),
    "deliveries_page": (lambda r, w: r.deliveries_page(DeliveryFilter(), None, 10), NEVER),
    "prices": (lambda r, w: r.prices(), NEVER),
    "cost_events_page": (lambda r, w: r.cost_events_page(None, 10), NEVER),
    "finance_events_page": (lambda r, w: r.finance_events_page(None, 10), NEVER),
    "cost_summary": (lambda r, w: r.cost_summary(CostGroup.DAY, None, None), NEVER),
    "finance_summary": (lambda r, w: r.finance_summary(None, None), NEVER),
}


def _grant(name: str) -> Grant:
    return EVERYTHING if name == "mendable" else SPACE


def _has_vector(reader: Reader, given: World) -> bool:
    return any(row.number == given.number for row in reader.delta(ANA.partition, 0, EMBEDDER).vectors)


class LifecycleContract:
    def test_every_method_of_a_reader_is_in_the_table(self) -> None:
        methods = {name for name, _ in inspect.getmembers(Reader, inspect.isfunction) if not name.startswith("_")}
        assert {name.split()[0] for name in METHODS} == methods

    @pytest.mark.parametrize("state", _S)
    @scenario
    async def test_each_method_shows_content_in_the_states_of_the_table_alone(
        self, store: Store, state: TranscriptState
    ) -> None:
        given = await build_world(store)
        assert await move_to(store, given, state) == (0 if state is _S.ACTIVE else 1)
        shown = {
            name: CANARY in repr(await store.read(_grant(name), lambda r, ask=ask: ask(r, given)))  # type: ignore[misc]
            for name, (ask, _) in METHODS.items()
        }
        assert shown == {name: state in states for name, (_, states) in METHODS.items()}
        kept = sorted(record.text for record in await page(store))
        assert kept == sorted(["before", "after", "something learned", *(["the canary sings"] * (state in READ))])

    @pytest.mark.parametrize("state", [_S.ARCHIVED, _S.MASKED])
    @scenario
    async def test_what_is_restored_is_as_it_was(self, store: Store, state: TranscriptState) -> None:
        given = await build_world(store)

        async def snapshot() -> list[object]:
            whole = await delta(store)
            return [
                whole.rows,
                whole.vectors,
                await page(store),
                await turns(store),
                await find_record(store, given.memory),
            ]

        before = await snapshot()
        assert await move_to(store, given, state) == 1
        hidden = await delta(store, since=given.since)
        assert (list(hidden.rows), list(hidden.vectors), list(hidden.removed)) == ([], [], [given.number])
        assert await move_to(store, given, _S.ACTIVE) == 1
        back = await delta(store, since=hidden.change)
        assert [row.number for row in back.rows] == [row.number for row in back.vectors] == [given.number]
        assert list(back.removed) == []
        assert await snapshot() == before

    @scenario
    async def test_a_status_goes_with_the_message(self, store: Store) -> None:
        given = await build_world(store)
        await move_to(store, given, _S.ARCHIVED)
        message = await find_record(store, given.message)
        assert isinstance(message, Message)
        assert (message.status, message.plane) == (Status.ARCHIVED, None)

    @pytest.mark.parametrize("state", [_S.ACTIVE, _S.ARCHIVED, _S.MASKED])
    @scenario
    async def test_deleted_content_does_not_come_back(self, store: Store, state: TranscriptState) -> None:
        given = await build_world(store)
        await move_to(store, given, _S.RAW_DELETED)
        assert await move_to(store, given, state) == 0
        (turn,) = await read_thread(store, lambda r: list(r.turns(ANA, 1, 1)))
        assert (turn.state, turn.messages[0].text) == (_S.RAW_DELETED, None)
        assert await find_record(store, given.message) is None
        number = given.number
        late = IndexUpdate(number, [vector()], analysis("the canary sings"))
        await store.write(EVERYTHING, lambda t: t.index([late], EMBEDDER, ANALYZER))
        assert not await store.read(SPACE, lambda r: _has_vector(r, given))
        assert (await store.read(EVERYTHING, lambda r: r.integrity(EMBEDDER)))[1] == []

    @scenario
    async def test_of_deleted_content_ids_roles_order_and_evidence_stay(self, store: Store) -> None:
        given = await build_world(store)
        refs = await read_thread(store, lambda r: list(r.derived_from(ANA, [2], 10)))
        await move_to(store, given, _S.RAW_DELETED)
        assert [turn.sequence for turn in await turns(store)] == [1, 2, 3]
        turn = (await turns(store))[1]
        assert (turn.id, turn.host_refs) == ("t2", (replace(LABELLED, label=None),))
        assert [(m.id, m.role, m.text) for m in turn.messages] == [(given.message, Role.USER, None)]
        assert await read_thread(store, lambda r: list(r.derived_from(ANA, [2], 10))) == refs
        assert len(refs) == 1
        assert await read_thread(store, lambda r: list(r.tail(ANA, 3))) == [
            Utterance(Role.USER, "before"),
            Utterance(Role.USER, None),
            Utterance(Role.USER, "after"),
        ]
        memory = await find_record(store, given.memory)
        assert isinstance(memory, MemoryRecord)
        assert (memory.text, memory.evidence, memory.status) == ("something learned", (), Status.ACCEPTED)
        counted = await store.read(SPACE, lambda r: r.counts("another", ANALYZER))
        assert (counted["messages"], counted["pending_vectors"]) == (2, 3)

    @scenario
    async def test_a_message_whose_content_was_deleted_is_not_brought_back(self, store: Store) -> None:
        given = await build_world(store)
        await move_to(store, given, _S.RAW_DELETED)
        scribe = given.scribe
        for text in ("the canary sings", "another text"):
            again = scribe.message(text, sender="canary", external_id="canary-1")
            assert (await add(store, scribe.turn(ANA, again))).ids == (None,)
        # The same text without that id is another message.
        assert (await add(store, scribe.turn(ANA, "the canary sings"))).sequence == 4

    @pytest.mark.parametrize("state", [_S.ARCHIVED, _S.MASKED])
    @scenario
    async def test_what_is_put_away_is_known_when_it_is_given_again(self, store: Store, state: TranscriptState) -> None:
        given = await build_world(store)
        await move_to(store, given, state)
        again = given.scribe.message("the canary sings", sender="canary", external_id="canary-1")
        stored = await add(store, given.scribe.turn(ANA, again))
        assert (stored.ids, stored.sequence) == ((given.message,), None)

    @pytest.mark.parametrize("state", _S)
    @pytest.mark.parametrize(
        "target",
        [lambda w: ForgetTarget(ids=(w.message,)), lambda w: _TARGET, lambda w: ForgetTarget(source=CANARY)],
        ids=["id", "conversation", "source"],
    )
    @scenario
    async def test_a_forget_finds_a_turn_in_every_state(
        self, store: Store, state: TranscriptState, target: Callable[[World], ForgetTarget]
    ) -> None:
        given = await build_world(store)
        await move_to(store, given, state)
        ended = await forget(store, target(given), write_grant(ANA), given.scribe.clock.step())
        assert ended[0] >= 2  # with the memory learned only from it
        assert ended[1] == 0
        assert await read_thread(store, lambda r: r.turn(ANA, "t2")) is None
        assert await find_record(store, given.memory) is None
        for name, (ask, _) in METHODS.items():
            answer = await store.read(_grant(name), lambda r, ask=ask: ask(r, given))  # type: ignore[misc]
            assert CANARY not in repr(answer), name
        assert (await store.read(EVERYTHING, lambda r: r.integrity(EMBEDDER)))[1] == []

    @pytest.mark.parametrize("state", _S)
    @scenario
    async def test_a_transcript_is_sound_in_every_state(self, store: Store, state: TranscriptState) -> None:
        given = await build_world(store)
        await move_to(store, given, state)
        checked = await read_thread(store, lambda r: r.check_transcript(ANA, 10))
        assert (checked.checked_turns, checked.checked_derived_refs, checked.issues) == (3, 1, ())
        assert (await store.read(EVERYTHING, lambda r: r.integrity(EMBEDDER)))[1] == []

    @pytest.mark.parametrize("state", [_S.MASKED, _S.RAW_DELETED])
    @scenario
    async def test_what_is_withheld_is_no_evidence_of_anything_new(self, store: Store, state: TranscriptState) -> None:
        given = await build_world(store)
        await move_to(store, given, state)
        late = given.scribe.revision(Scope(subject="ana"), "too late", evidence=[given.message])
        with pytest.raises(NotFound, match="there is no message"):
            await put(store, late)

    @scenario
    async def test_many_turns_change_together(self, store: Store) -> None:
        scribe = Scribe()
        for number in range(6):
            await add(store, scribe.turn(ANA, f"{number}a", f"{number}b"))
        at = scribe.clock.step()
        moved = await store.write(write_grant(ANA), lambda t: t.set_state(ANA, [1, 2, 4, 6, 9], _S.MASKED, at))
        assert moved == 8
        states = await read_thread(store, lambda r: [(s.sequence, s.state) for s in r.turn_states(ANA, 0, 10)])
        assert [sequence for sequence, state in states if state is _S.MASKED] == [1, 2, 4, 6]
        assert await texts(store) == ["4b", "4a", "2b", "2a"]
        assert await store.write(write_grant(ANA), lambda t: t.set_state(ANA, [], _S.MASKED, at)) == 0
        gone = replace(ANA, conversation="never was")
        assert await store.write(write_grant(ANA), lambda t: t.set_state(gone, [1], _S.MASKED, at)) == 0

    @scenario
    async def test_a_change_of_state_that_fails_changes_nothing(self, store: Store) -> None:
        given = await build_world(store)
        before = await delta(store), await turns(store)

        def half(transaction: Transaction) -> None:
            transaction.set_state(ANA, [2], _S.RAW_DELETED, given.scribe.clock.step())
            raise KeyError("on purpose")

        with pytest.raises(KeyError):
            await store.write(write_grant(ANA), half)
        assert (await delta(store), await turns(store)) == before

    # --- private planes ---

    @pytest.mark.parametrize(
        ("authority", "plane"),
        [
            (Authority.PRIVATE_GARDEN_INTERNAL, Plane.PRIVATE),
            (Authority.OPERATOR_DIAGNOSTIC, Plane.PRIVATE),
            (Authority.SOUL_GOVERNANCE, Plane.SOUL_CANDIDATE),
            *((authority, None) for authority in sorted(set(Authority) - PRIVATE)),
        ],
    )
    @scenario
    async def test_a_message_of_a_private_authority_lies_on_a_guarded_plane(
        self, store: Store, authority: Authority, plane: Plane | None
    ) -> None:
        given = await build_world(store, authority)
        message = await find_record(store, given.message)
        assert isinstance(message, Message)
        assert message.plane is plane
        private = plane is not None
        assert [row.plane for row in (await delta(store)).rows if row.number == given.number] == [plane]
        opened = await texts(store, read_grant(ANA), ListFilter(planes=OPEN_PLANES))
        assert ("the canary sings" in opened) is not private
        by_name = await texts(store, read_grant(ANA), ListFilter(planes=frozenset({plane}) if plane else OPEN_PLANES))
        assert "the canary sings" in by_name
        memory: Any = await find_record(store, given.memory)
        assert bool(memory.evidence) is not private
        assert (given.message in await read_thread(store, lambda r: list(r.unsealed(ANA)))) is not private
