"""The states of turns: archived turns are not found, masked ones are not shown, deleted ones are gone.

One table lists the states in which each method of a reader shows content.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pytest

from holdfast.domain.access import ActorKind, Grant
from holdfast.domain.costs import CostGroup
from holdfast.domain.events import Event, EventKind
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.hooks import DeliveryFilter
from holdfast.domain.ids import EventId, MemoryId, MessageId
from holdfast.domain.jobs import JobFilter
from holdfast.domain.memory import OPEN_PLANES, MemoryRecord, Plane, Status
from holdfast.domain.operations import OperationFilter
from holdfast.domain.scope import Scope
from holdfast.domain.stored_proposals import ProposalStatus
from holdfast.domain.tool_experience import ExperienceKey
from holdfast.domain.transcript import Message, Role
from holdfast.domain.transcript_turns import (
    Authority,
    HostOpaqueRef,
    HostRefVisibility,
    Relation,
    TranscriptState,
    Utterance,
)
from holdfast.errors import NotFound
from holdfast.ports import IndexUpdate, ListFilter, Reader, Store, Transaction
from holdfast.testing.full_repr import full_repr
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
    port_methods,
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
LABELLED = HostOpaqueRef("desk", "ticket", "7", Relation.ORIGIN, HostRefVisibility.HOST_UI, "a canary label")


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
    await store.write(write_grant(ANA), lambda t: t.events.append(event))
    number, learned = await number_of(store, message.id), await number_of(store, memory.id)
    since = (await delta(store)).change
    return World(scribe, message.id, number, memory.id, learned, since, scribe.clock.step())


async def move_to(store: Store, given: World, state: TranscriptState) -> int:
    at = given.scribe.clock.step()
    return await store.write(write_grant(ANA), lambda t: t.transcripts.set_state(ANA, [2], state, at))


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
    return CANARY if given.message in full_repr(value) else None


def _page_of(status: Status) -> _ASK:
    return lambda reader, given: reader.records.page(ListFilter(status=status), None, 10)


# The call of each method, and the states in which its result may hold the content.
METHODS: dict[str, tuple[_ASK, frozenset[TranscriptState]]] = {
    "index.delta": (lambda r, w: r.index.delta(ANA.partition, 0, EMBEDDER), FOUND),
    "index.delta since": (lambda r, w: r.index.delta(ANA.partition, w.since, EMBEDDER), NEVER),
    "index.delta vectors": (lambda r, w: CANARY if _has_vector(r, w) else None, FOUND),
    "records.fetch": (lambda r, w: r.records.fetch([w.number]), READ),
    "records.fetch evidence": (lambda r, w: r.records.fetch([w.learned]), FOUND),
    "records.find": (lambda r, w: r.records.find(w.message), READ),
    "records.find as_of": (lambda r, w: r.records.find(w.message, w.known_at), READ),
    "records.find evidence": (lambda r, w: r.records.find(w.memory), FOUND),
    "records.revisions": (lambda r, w: r.records.revisions(w.message), READ),
    "records.revisions evidence": (lambda r, w: r.records.revisions(w.memory), FOUND),
    "records.page": (lambda r, w: [e for e in r.records.page(ListFilter(), None, 10) if isinstance(e, Message)], READ),
    "records.page as_of": (
        lambda r, w: [e for e in r.records.page(ListFilter(as_of=w.known_at), None, 10) if isinstance(e, Message)],
        READ,
    ),
    "records.page evidence": (
        lambda r, w: [e for e in r.records.page(ListFilter(), None, 10) if isinstance(e, MemoryRecord)],
        FOUND,
    ),
    "records.page sender": (lambda r, w: r.records.page(ListFilter(sender=CANARY), None, 10), READ),
    "records.page source": (lambda r, w: r.records.page(ListFilter(source=CANARY), None, 10), READ),
    "records.page unsealed": (
        lambda r, w: [e for e in r.records.page(ListFilter(unsealed=True), None, 10) if isinstance(e, Message)],
        READ,
    ),
    **{
        f"records.page {status}": (_page_of(status), READ & {state})
        for state, status in STATUS.items()
        if status is not Status.ACCEPTED
    },
    "records.in_slot": (lambda r, w: r.records.in_slot(Scope(subject="ana"), "slot"), FOUND),
    "transcripts.unsealed_messages": (lambda r, w: _id_of(r.transcripts.unsealed_messages(ANA), w), FOUND),
    "index.backlog": (lambda r, w: r.index.backlog("another", ANALYZER, 0, 10), READ),  # an embedder may be external
    "index.backlog_of": (lambda r, w: r.index.backlog_of([w.message], "another", ANALYZER), READ),
    "transcripts.tail": (lambda r, w: r.transcripts.tail(ANA, 10), HANDED_OVER),
    "transcripts.turns": (lambda r, w: r.transcripts.turns(ANA, 0, 10), HANDED_OVER),
    "transcripts.last_turns": (lambda r, w: r.transcripts.last_turns(ANA, 10), HANDED_OVER),
    "transcripts.turn": (lambda r, w: r.transcripts.turn(ANA, "t2"), HANDED_OVER),
    "transcripts.turn_states": (lambda r, w: r.transcripts.turn_states(ANA, 0, 10), NEVER),
    "transcripts.turn_count": (lambda r, w: r.transcripts.turn_count(ANA), NEVER),
    "transcripts.derived_from": (lambda r, w: r.transcripts.derived_from(ANA, [2], 10), NEVER),
    "transcripts.check": (lambda r, w: r.transcripts.check(ANA, 10), NEVER),
    "maintenance.hosted_records": (lambda r, w: r.maintenance.hosted_records(ANA.space, 0), NEVER),
    "transcripts.resting_on_broken": (
        lambda r, w: _id_of(r.transcripts.resting_on_broken([w.message, w.memory]), w),
        NEVER,
    ),
    "transcripts.threads": (lambda r, w: r.transcripts.threads(None, 10), NEVER),
    "aliases.find": (lambda r, w: r.aliases.find(ANA, CANARY), NEVER),
    "aliases.page": (lambda r, w: r.aliases.page(ANA.partition, b"", 10), NEVER),
    "records.messages": (lambda r, w: r.records.messages([w.message]), READ),
    "records.memories": (lambda r, w: r.records.memories("", 10), FOUND),
    "records.histories": (lambda r, w: r.records.histories([w.memory]), FOUND),
    "records.resting_on": (lambda r, w: r.records.resting_on([w.message]), NEVER),
    "records.contradictions": (lambda r, w: r.records.contradictions([w.memory]), NEVER),
    "records.links": (lambda r, w: r.records.links([w.memory]), NEVER),
    "records.existing_ids": (lambda r, w: r.records.existing_ids([w.message]), NEVER),
    "records.tombstones": (lambda r, w: r.records.tombstones(ANA.partition, [w.message]), NEVER),
    "maintenance.count_repairs": (lambda r, w: r.maintenance.count_repairs(w.known_at, 10), NEVER),
    "events.page": (lambda r, w: r.events.page(10), HANDED_OVER),  # a digest, for as long as there is content
    "records.plan_forget": (lambda r, w: r.records.plan_forget(_TARGET), NEVER),
    "records.occupied_partitions": (lambda r, w: r.records.occupied_partitions(), NEVER),
    "index.partitions": (lambda r, w: r.index.partitions(), NEVER),
    "index.change_of": (lambda r, w: r.index.change_of(ANA.partition), NEVER),
    "index.nearest": (lambda r, w: r.index.nearest(ANA.partition, EMBEDDER), NEVER),
    "index.nearest_due": (lambda r, w: r.index.nearest_due(EMBEDDER, 1), NEVER),
    "records.response": (lambda r, w: r.records.response(ANA.partition, CANARY), NEVER),
    "maintenance.counts": (lambda r, w: r.maintenance.counts(EMBEDDER, ANALYZER), NEVER),
    "users.find": (lambda r, w: r.users.find(CANARY), NEVER),
    "users.find_by_key": (lambda r, w: r.users.find_by_key(b"canary"), NEVER),
    "users.page": (lambda r, w: r.users.page(None, 10), NEVER),
    "users.unproven_operators": (lambda r, w: r.users.unproven_operators(), NEVER),
    "users.names": (lambda r, w: r.users.names(ActorKind.USER), NEVER),
    "skills.states": (lambda r, w: r.skills.states([w.memory]), NEVER),
    "skills.find": (lambda r, w: r.skills.find(ANA.partition, CANARY), NEVER),
    "proposals.find": (lambda r, w: r.proposals.find(Scope(), CANARY), NEVER),
    "proposals.page": (lambda r, w: r.proposals.page(Scope(), None, 10), NEVER),
    "proposals.count": (lambda r, w: r.proposals.count(Scope(), ProposalStatus.PENDING), NEVER),
    "proposals.is_cited": (lambda r, w: r.proposals.is_cited(Scope(), w.memory, ProposalStatus.PENDING), NEVER),
    "tools.registries": (lambda r, w: r.tools.registries(Scope()), NEVER),
    "tools.snapshots": (lambda r, w: r.tools.snapshots(Scope()), NEVER),
    "tools.registry": (lambda r, w: r.tools.registry(Scope(), CANARY), NEVER),
    "tools.experience": (lambda r, w: r.tools.experience(Scope(), ExperienceKey(CANARY, "t", "s", "k")), NEVER),
    "tools.leading": (lambda r, w: list(r.tools.leading(Scope())), NEVER),
    "tools.experience_count": (lambda r, w: r.tools.experience_count(Scope()), NEVER),
    "tools.count_versions": (lambda r, w: r.tools.count_versions(Scope()), NEVER),
    "resources.find": (lambda r, w: r.resources.find(CANARY), NEVER),
    "resources.find_file": (lambda r, w: r.resources.find_file(ANA, "00", None), NEVER),
    "resources.chunks": (lambda r, w: None, NEVER),  # only memories have chunks
    "resources.page": (lambda r, w: r.resources.page(None, 10), NEVER),
    "maintenance.fact": (lambda r, w: r.maintenance.fact(CANARY), NEVER),
    "jobs.counts": (lambda r, w: r.jobs.counts(), NEVER),
    "jobs.newest": (lambda r, w: _id_of(r.jobs.newest(), w), HANDED_OVER),
    "jobs.has_due": (lambda r, w: r.jobs.has_due(w.known_at), NEVER),
    "maintenance.backups": (lambda r, w: r.maintenance.backups(), NEVER),
    "maintenance.usage": (lambda r, w: r.maintenance.usage(w.known_at), NEVER),
    "maintenance.integrity": (lambda r, w: r.maintenance.integrity(EMBEDDER), NEVER),
    "bindings.find_all": (lambda r, w: r.bindings.find_all(), NEVER),
    "bindings.targets": (lambda r, w: r.bindings.targets(), NEVER),
    "operations.find": (lambda r, w: r.operations.find(CANARY), NEVER),
    "operations.page": (lambda r, w: r.operations.page(OperationFilter(), None, 10), NEVER),
    "operations.metrics": (lambda r, w: r.operations.metrics(None, None), NEVER),
    "jobs.find": (lambda r, w: [_id_of(r.jobs.find(each.id), w) for each in r.jobs.newest()], HANDED_OVER),
    "jobs.page": (lambda r, w: _id_of(r.jobs.page(JobFilter(), w.known_at, None, 10), w), HANDED_OVER),
    "jobs.find_for_delivery": (lambda r, w: r.jobs.find_for_delivery(CANARY), NEVER),
    "jobs.retried_ids": (lambda r, w: r.jobs.retried_ids([CANARY]), NEVER),
    "deliveries.dead_letters": (lambda r, w: r.deliveries.dead_letters([CANARY]), NEVER),
    "deliveries.find": (lambda r, w: r.deliveries.find(CANARY), NEVER),
    "deliveries.find_by_hook": (lambda r, w: r.deliveries.find_by_hook(CANARY, CANARY, Scope()), NEVER),
    "deliveries.payload": (lambda r, w: r.deliveries.payload(CANARY), NEVER),
    "deliveries.page": (lambda r, w: r.deliveries.page(DeliveryFilter(), None, 10), NEVER),
    "costs.prices": (lambda r, w: r.costs.prices(), NEVER),
    "costs.page": (lambda r, w: r.costs.page(None, 10), NEVER),
    "costs.finance_page": (lambda r, w: r.costs.finance_page(None, 10), NEVER),
    "costs.summary": (lambda r, w: r.costs.summary(CostGroup.DAY, None, None), NEVER),
    "costs.finance_summary": (lambda r, w: r.costs.finance_summary(None, None), NEVER),
}


def _grant(name: str) -> Grant:
    return EVERYTHING if name in ("maintenance.count_repairs", "maintenance.usage") else SPACE


def _has_vector(reader: Reader, given: World) -> bool:
    return any(row.number == given.number for row in reader.index.delta(ANA.partition, 0, EMBEDDER).vectors)


class LifecycleContract:
    def test_every_method_of_a_reader_is_in_the_table(self) -> None:
        assert {name.split()[0] for name in METHODS} == port_methods(Reader)

    @pytest.mark.parametrize("state", _S)
    @scenario
    async def test_each_method_shows_content_in_the_states_of_the_table_alone(
        self, store: Store, state: TranscriptState
    ) -> None:
        given = await build_world(store)
        assert await move_to(store, given, state) == (0 if state is _S.ACTIVE else 1)
        shown = {
            name: CANARY in full_repr(await store.read(_grant(name), lambda r, ask=ask: ask(r, given)))  # type: ignore[misc]
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
        (turn,) = await read_thread(store, lambda r: list(r.transcripts.turns(ANA, 1, 1)))
        assert (turn.state, turn.messages[0].text) == (_S.RAW_DELETED, None)
        assert await find_record(store, given.message) is None
        number = given.number
        late = IndexUpdate(number, [vector()], analysis("the canary sings"))
        await store.write(EVERYTHING, lambda t: t.index.update([late], EMBEDDER, ANALYZER))
        assert not await store.read(SPACE, lambda r: _has_vector(r, given))
        assert (await store.read(EVERYTHING, lambda r: r.maintenance.integrity(EMBEDDER)))[1] == []

    @scenario
    async def test_of_deleted_content_ids_roles_order_and_evidence_stay(self, store: Store) -> None:
        given = await build_world(store)
        refs = await read_thread(store, lambda r: list(r.transcripts.derived_from(ANA, [2], 10)))
        await move_to(store, given, _S.RAW_DELETED)
        assert [turn.sequence for turn in await turns(store)] == [1, 2, 3]
        turn = (await turns(store))[1]
        assert (turn.id, turn.host_refs) == ("t2", (replace(LABELLED, label=None),))
        assert [(m.id, m.role, m.text) for m in turn.messages] == [(given.message, Role.USER, None)]
        assert await read_thread(store, lambda r: list(r.transcripts.derived_from(ANA, [2], 10))) == refs
        assert len(refs) == 1
        assert await read_thread(store, lambda r: list(r.transcripts.tail(ANA, 3))) == [
            Utterance(Role.USER, "before"),
            Utterance(Role.USER, None),
            Utterance(Role.USER, "after"),
        ]
        memory = await find_record(store, given.memory)
        assert isinstance(memory, MemoryRecord)
        assert (memory.text, memory.evidence, memory.status) == ("something learned", (), Status.ACCEPTED)
        counted = await store.read(SPACE, lambda r: r.maintenance.counts("another", ANALYZER))
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
        assert await read_thread(store, lambda r: r.transcripts.turn(ANA, "t2")) is None
        assert await find_record(store, given.memory) is None
        for name, (ask, _) in METHODS.items():
            answer = await store.read(_grant(name), lambda r, ask=ask: ask(r, given))  # type: ignore[misc]
            assert CANARY not in full_repr(answer), name
        assert (await store.read(EVERYTHING, lambda r: r.maintenance.integrity(EMBEDDER)))[1] == []

    @pytest.mark.parametrize("state", _S)
    @scenario
    async def test_a_transcript_is_sound_in_every_state(self, store: Store, state: TranscriptState) -> None:
        given = await build_world(store)
        await move_to(store, given, state)
        checked = await read_thread(store, lambda r: r.transcripts.check(ANA, 10))
        assert (checked.checked_turns, checked.checked_derived_refs, checked.issues) == (3, 1, ())
        assert (await store.read(EVERYTHING, lambda r: r.maintenance.integrity(EMBEDDER)))[1] == []

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
        moved = await store.write(
            write_grant(ANA), lambda t: t.transcripts.set_state(ANA, [1, 2, 4, 6, 9], _S.MASKED, at)
        )
        assert moved == 8
        states = await read_thread(
            store, lambda r: [(s.sequence, s.state) for s in r.transcripts.turn_states(ANA, 0, 10)]
        )
        assert [sequence for sequence, state in states if state is _S.MASKED] == [1, 2, 4, 6]
        assert await texts(store) == ["4b", "4a", "2b", "2a"]
        assert await store.write(write_grant(ANA), lambda t: t.transcripts.set_state(ANA, [], _S.MASKED, at)) == 0
        gone = replace(ANA, conversation="never was")
        assert await store.write(write_grant(ANA), lambda t: t.transcripts.set_state(gone, [1], _S.MASKED, at)) == 0

    @scenario
    async def test_a_change_of_state_that_fails_changes_nothing(self, store: Store) -> None:
        given = await build_world(store)
        before = await delta(store), await turns(store)

        def half(transaction: Transaction) -> None:
            transaction.transcripts.set_state(ANA, [2], _S.RAW_DELETED, given.scribe.clock.step())
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
        assert (
            given.message in await read_thread(store, lambda r: list(r.transcripts.unsealed_messages(ANA)))
        ) is not private
