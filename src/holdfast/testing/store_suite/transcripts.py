"""Turns: in order and without gaps, with all their metadata; memories derived from them, and lists of threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.ids import TurnId
from holdfast.domain.memory import Plane
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import (
    PLANES,
    ActorAttribution,
    Authority,
    ConversationKey,
    DeliveryStatus,
    HostOpaqueRef,
    HostRefVisibility,
    Relation,
    TranscriptMessage,
    TranscriptState,
    TranscriptTurn,
    Utterance,
)
from holdfast.errors import DuplicateId
from holdfast.ports import NewTurn, Reader, Store
from holdfast.testing.full_repr import full_repr
from holdfast.testing.store_suite.scribe import (
    ANA,
    BOB,
    SHARED,
    SPACE,
    Scribe,
    add,
    forget,
    put,
    read_grant,
    scenario,
    write_grant,
)

T = TypeVar("T")
EVERYBODY = ActorAttribution("ana", "human", "ana", "bot", "guest", "agent", "timer")
REFS = (
    HostOpaqueRef("desk", "ticket", "7", Relation.ORIGIN, HostRefVisibility.HOST_UI, "Ticket 7: снег ❄"),
    HostOpaqueRef("shop", "order", "8", Relation.EVIDENCE_FOR, HostRefVisibility.INTERNAL),
)
# The methods that read one conversation.
OF_A_THREAD: dict[str, Callable[[Reader, Scope], object]] = {
    "tail": lambda reader, thread: list(reader.transcripts.tail(thread, 10)),
    "turn_count": lambda reader, thread: reader.transcripts.turn_count(thread),
    "turns": lambda reader, thread: list(reader.transcripts.turns(thread, 0, 10)),
    "last_turns": lambda reader, thread: list(reader.transcripts.last_turns(thread, 10)),
    "turn": lambda reader, thread: reader.transcripts.turn(thread, "t1"),
    "turn_states": lambda reader, thread: list(reader.transcripts.turn_states(thread, 0, 10)),
    "derived_from": lambda reader, thread: list(reader.transcripts.derived_from(thread, [1], 10)),
    "check_transcript": lambda reader, thread: reader.transcripts.check(thread, 10).checked_turns,
}


async def read_thread(store: Store, work: Callable[[Reader], T], thread: Scope = ANA) -> T:
    return await store.read(read_grant(thread), work)


async def turns(store: Store, thread: Scope = ANA, after: int = 0, limit: int = 100) -> list[TranscriptTurn]:
    return list(await read_thread(store, lambda r: r.transcripts.turns(thread, after, limit), thread))


async def sequences(store: Store, thread: Scope = ANA) -> list[int]:
    return [turn.sequence for turn in await turns(store, thread)]


def with_host_fields(turn: NewTurn, external_id: str | None = None) -> NewTurn:
    return replace(
        turn, external_id=external_id, delivery=DeliveryStatus.DELIVERED, attribution=EVERYBODY, host_refs=REFS
    )


class TranscriptContract:
    # --- turns ---

    @scenario
    async def test_a_turn_comes_back_as_it_was_given(self, store: Store) -> None:
        scribe, thread = Scribe(), replace(ANA, channel="mail", app="app")
        asked_for = replace(scribe.message("what?\n🏙"), authority=Authority.USER_ASSERTED)
        answer = replace(scribe.message("that", role=Role.ASSISTANT), authority=Authority.ASSISTANT_SELF_CLAIM)
        given = with_host_fields(scribe.turn(thread, asked_for, answer), "host/1")
        assert (await add(store, given)).sequence == 1
        assert await turns(store, thread) == [
            TranscriptTurn(
                id=TurnId("host/1"),
                sequence=1,
                key=ConversationKey("default", "mail", "chat"),
                state=TranscriptState.ACTIVE,
                messages=(
                    TranscriptMessage(asked_for.id, Role.USER, "what?\n🏙", Authority.USER_ASSERTED),
                    TranscriptMessage(answer.id, Role.ASSISTANT, "that", Authority.ASSISTANT_SELF_CLAIM),
                ),
                committed_at=given.recorded_at,
                host_refs=REFS,
                attribution=EVERYBODY,
                delivery=DeliveryStatus.DELIVERED,
            )
        ]

    @scenario
    async def test_what_is_simply_added_is_a_turn_too(self, store: Store) -> None:
        scribe = Scribe()
        given = scribe.turn(ANA, "one", "two")
        await add(store, given)
        (turn,) = await turns(store)
        assert (turn.id, turn.key, turn.delivery) == (given.id, ConversationKey("default", "local", "chat"), None)
        assert [(m.text, m.authority) for m in turn.messages] == [
            ("one", Authority.LEGACY_TRANSCRIPT),
            ("two", Authority.LEGACY_TRANSCRIPT),
        ]
        assert (turn.attribution, turn.host_refs) == (ActorAttribution(), ())

    @scenario
    async def test_pages_put_together_are_the_whole_in_order(self, store: Store) -> None:
        scribe = Scribe()
        for number in range(7):
            await add(store, scribe.turn(ANA, *(f"{number}.{part}" for part in range(number % 3 + 1))))
            await add(store, scribe.turn(BOB, "somebody else's"))
        whole = await turns(store)
        assert [turn.sequence for turn in whole] == list(range(1, 8))
        assert [[m.text for m in turn.messages] for turn in whole] == [
            [f"{number}.{part}" for part in range(number % 3 + 1)] for number in range(7)
        ]
        for size in (1, 2, 3, 7, 8):
            pages, after = [], 0
            while page := await turns(store, after=after, limit=size):
                assert len(page) <= size
                pages += page
                after = page[-1].sequence
            assert pages == whole
        assert await turns(store, after=7) == []
        assert await turns(store, limit=0) == []

    @scenario
    async def test_the_last_turns_and_messages_come_oldest_first(self, store: Store) -> None:
        scribe = Scribe()
        for number in range(4):
            await add(store, scribe.turn(ANA, f"{number}a", scribe.message(f"{number}b", role=Role.ASSISTANT)))
        whole = await turns(store)
        for limit in (1, 3, 4, 9):
            assert await read_thread(store, lambda r, n=limit: list(r.transcripts.last_turns(ANA, n))) == whole[-limit:]  # type: ignore[misc]
        assert await read_thread(store, lambda r: list(r.transcripts.tail(ANA, 3))) == [
            Utterance(Role.ASSISTANT, "2b"),
            Utterance(Role.USER, "3a"),
            Utterance(Role.ASSISTANT, "3b"),
        ]

    @scenario
    async def test_the_last_messages_say_which_are_private(self, store: Store) -> None:
        scribe = Scribe()
        said = [replace(scribe.message(authority), authority=authority) for authority in Authority]
        await add(store, scribe.turn(ANA, *said))
        tail = await read_thread(store, lambda r: list(r.transcripts.tail(ANA, len(said))))
        assert tail == [Utterance(Role.USER, authority, authority in PLANES) for authority in Authority]

    @scenario
    async def test_a_turn_is_found_by_the_hosts_id_and_by_ours(self, store: Store) -> None:
        scribe = Scribe()
        first, second = with_host_fields(scribe.turn(ANA, "one"), "t1"), scribe.turn(ANA, "two", "three")
        await add(store, first)
        await add(store, second)
        one, two = await turns(store)
        for name, turn in (("t1", one), (first.id, one), (second.id, two)):
            assert await read_thread(store, lambda r, name=name: r.transcripts.turn(ANA, name)) == turn  # type: ignore[misc]
        assert await read_thread(store, lambda r: r.transcripts.turn(ANA, "t2")) is None
        assert await read_thread(store, lambda r: r.transcripts.turn(BOB, first.id), BOB) is None
        states = await read_thread(store, lambda r: list(r.transcripts.turn_states(ANA, 0, 10)))
        assert [(s.sequence, s.id, s.state, s.messages) for s in states] == [
            (1, "t1", TranscriptState.ACTIVE, 1),
            (2, second.id, TranscriptState.ACTIVE, 2),
        ]
        assert states[0].recorded_at == first.recorded_at

    @scenario
    async def test_a_hosts_id_names_one_turn_of_a_conversation(self, store: Store) -> None:
        scribe = Scribe()
        first = with_host_fields(scribe.turn(ANA, "one"), "t1")
        await add(store, first)
        for taken in ("t1", first.id):
            with pytest.raises(DuplicateId):
                await add(store, with_host_fields(scribe.turn(ANA, "two"), taken))
        assert await sequences(store) == [1]
        other = replace(ANA, conversation="other")
        assert (await add(store, with_host_fields(scribe.turn(other, "two"), "t1"))).sequence == 1

    @scenario
    async def test_what_is_known_already_makes_no_turn(self, store: Store) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, scribe.message("one", external_id="m1")))
        again = await add(store, scribe.turn(ANA, scribe.message("one", external_id="m1")))
        assert (again.sequence, again.new) == (None, frozenset())
        more = await add(store, scribe.turn(ANA, scribe.message("one", external_id="m1"), "two"))
        assert more.sequence == 2
        assert [[m.text for m in turn.messages] for turn in await turns(store)] == [["one"], ["two"]]

    @scenario
    async def test_many_writers_at_once_leave_no_gap_and_take_no_place_twice(self, store: Store) -> None:
        scribe = Scribe()
        given = [scribe.turn(thread, f"{number}a", f"{number}b") for number in range(20) for thread in (ANA, SHARED)]
        stored = await asyncio.gather(*(add(store, turn) for turn in given))
        for thread in (ANA, SHARED):
            told = [s.sequence for turn, s in zip(given, stored, strict=True) if turn.scope == thread]
            assert sorted(sequence or 0 for sequence in told) == list(range(1, 21))
            assert await sequences(store, thread) == list(range(1, 21))
            assert all(len(turn.messages) == 2 for turn in await turns(store, thread))

    @scenario
    async def test_a_turn_may_have_very_many_messages(self, store: Store) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, *(f"message {number}" for number in range(700))))
        await add(store, scribe.turn(ANA, "after"))
        assert [len(turn.messages) for turn in await turns(store)] == [700, 1]

    # --- isolation ---

    @pytest.mark.parametrize("method", OF_A_THREAD)
    @pytest.mark.parametrize(
        "elsewhere",
        [BOB, SHARED, replace(ANA, channel="mail"), replace(ANA, app="app"), replace(ANA, conversation="other")],
        ids=["another subject", "nobody", "another channel", "another app", "another conversation"],
    )
    @scenario
    async def test_a_thread_is_one_conversation_of_one_partition(
        self, store: Store, method: str, elsewhere: Scope
    ) -> None:
        scribe = Scribe()
        message = scribe.message("said")
        await add(store, with_host_fields(scribe.turn(ANA, message), "t1"))
        await put(store, scribe.revision(ANA, "learned", evidence=[message.id]))
        nothing = await store.read(read_grant(elsewhere), lambda r: OF_A_THREAD[method](r, elsewhere))
        # A grant that does not reach the thread reads the thread itself.
        beyond = await store.read(read_grant(elsewhere), lambda r: OF_A_THREAD[method](r, ANA))
        there = await store.read(read_grant(ANA), lambda r: OF_A_THREAD[method](r, ANA))
        assert there
        assert not nothing
        # An operator's grant without a subject reaches everybody's.
        assert bool(beyond) is (elsewhere == SHARED)

    @pytest.mark.parametrize("part", ["run", "issue"])
    @scenario
    async def test_a_grant_for_one_run_does_not_reach_the_whole_conversation(self, store: Store, part: str) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, "said"))
        narrow = read_grant(replace(ANA, **{part: "r1"}))
        assert await store.read(narrow, lambda r: list(r.transcripts.turns(ANA, 0, 10))) == []
        assert await store.read(narrow, lambda r: list(r.transcripts.threads(None, 10))) == []
        state = TranscriptState.MASKED
        assert await store.write(narrow, lambda t: t.transcripts.set_state(ANA, [1], state, scribe.clock.step())) == 0

    @scenario
    async def test_threads_are_listed_page_by_page_as_far_as_the_grant_reaches(self, store: Store) -> None:
        scribe = Scribe()
        agent = Scope(agent="bot", conversation="chat")
        places = [ANA, BOB, SHARED, agent, replace(ANA, channel="mail"), replace(ANA, conversation="other", app="app")]
        for thread in places:
            await add(store, scribe.turn(replace(thread, run="r"), "one"))
            await add(store, scribe.turn(thread, "two"))
        south = replace(ANA, space="south")
        await add(store, scribe.turn(south, "beyond"))
        gone = replace(ANA, conversation="gone")
        message = scribe.message("to go")
        await add(store, scribe.turn(gone, message))
        await forget(store, ForgetTarget(ids=(message.id,)), write_grant(gone), scribe.clock.step())
        found, after = [], None
        while page := await store.read(SPACE, lambda r, after=after: list(r.transcripts.threads(after, 2))):  # type: ignore[misc]
            found += page
            after = page[-1].thread
        assert sorted(full_repr(each.thread) for each in found) == sorted(map(full_repr, places))
        assert {each.turns for each in found} == {2}
        of_ana = await store.read(read_grant(Scope(subject="ana")), lambda r: list(r.transcripts.threads(None, 10)))
        assert {each.thread for each in of_ana} == {place for place in places if place.subject == "ana"} | {SHARED}
        mail = await store.read(read_grant(Scope(channel="mail")), lambda r: list(r.transcripts.threads(None, 10)))
        assert [each.thread for each in mail] == [places[4]]

    # --- after a forget ---

    @scenario
    async def test_a_forgotten_turns_place_is_not_given_again(self, store: Store) -> None:
        scribe = Scribe()
        said = [scribe.message(f"message {number}") for number in range(4)]
        for message in said:
            await add(store, scribe.turn(ANA, message))
        for gone, left in ((said[1], [1, 3, 4]), (said[3], [1, 3])):
            await forget(store, ForgetTarget(ids=(gone.id,)), write_grant(ANA), scribe.clock.step())
            assert await sequences(store) == left
            assert await read_thread(store, lambda r: r.transcripts.turn_count(ANA)) == len(left)
        assert (await add(store, scribe.turn(ANA, "after"))).sequence == 5
        assert await sequences(store) == [1, 3, 5]
        await forget(store, ForgetTarget(conversation="chat"), write_grant(ANA), scribe.clock.step())
        assert await read_thread(store, lambda r: r.transcripts.turn_count(ANA)) == 0
        assert (await add(store, scribe.turn(ANA, "begun anew"))).sequence == 6
        assert await read_thread(store, lambda r: r.transcripts.turn_count(ANA)) == 1

    @scenario
    async def test_a_turn_that_loses_a_message_keeps_the_others(self, store: Store) -> None:
        scribe = Scribe()
        said = [scribe.message(f"message {number}") for number in range(3)]
        await add(store, with_host_fields(scribe.turn(ANA, *said), "t1"))
        await add(store, scribe.turn(ANA, "next"))
        for gone, left in ((said[0], 2), (said[2], 1)):
            await forget(store, ForgetTarget(ids=(gone.id,)), write_grant(ANA), scribe.clock.step())
            turn = (await turns(store))[0]
            assert (turn.id, turn.host_refs, len(turn.messages)) == ("t1", REFS, left)
            assert (await read_thread(store, lambda r: r.transcripts.turn_states(ANA, 0, 1)))[0].messages == left
            assert (await read_thread(store, lambda r: r.transcripts.check(ANA, 10))).issues == ()
        assert (await turns(store))[0].messages[0].text == "message 1"

    @scenario
    async def test_a_forgotten_turn_of_a_host_is_not_brought_back(self, store: Store) -> None:
        scribe = Scribe()
        message = scribe.message("said")
        await add(store, with_host_fields(scribe.turn(ANA, message), "t1"))
        await forget(store, ForgetTarget(ids=(message.id,)), write_grant(ANA), scribe.clock.step())
        again = await add(store, with_host_fields(scribe.turn(ANA, "said"), "t1"))
        assert (again.ids, again.new, again.sequence) == ((None,), frozenset(), None)
        assert await turns(store) == []
        # Messages have a namespace of their own.
        assert (await add(store, scribe.turn(ANA, scribe.message("said", external_id="t1")))).sequence == 2

    # --- derived memories ---

    @scenario
    async def test_what_was_learned_names_the_turns_and_messages_that_it_rests_on(self, store: Store) -> None:
        scribe = Scribe()
        one, two, three = (scribe.message(text) for text in ("one", "two", "three"))
        await add(store, with_host_fields(scribe.turn(ANA, one, two), "t1"))
        second = scribe.turn(ANA, three)
        await add(store, second)
        both = scribe.revision(Scope(subject="ana"), "of both", evidence=[one.id, three.id], plane=Plane.PROCEDURAL)
        shared = scribe.revision(Scope(), "shared", evidence=[two.id])
        await put(store, both)
        await put(store, shared, write_grant(Scope(space="default")))
        old = scribe.revision(Scope(subject="ana"), "no longer", evidence=[one.id])
        await put(store, old)
        await put(store, scribe.revision(Scope(subject="ana"), "of nothing", of=old, supersedes=1))
        first, other = await read_thread(store, lambda r: r.transcripts.derived_from(ANA, [1, 2], 10))
        assert (first.store_key, first.plane, first.subject_id) == (both.id, Plane.PROCEDURAL, "ana")
        assert (first.source, first.created_at) == ("operator:local", both.recorded_at)
        assert (first.turn_ids, first.message_ids) == (("t1", second.id), (one.id, three.id))
        assert (other.store_key, other.subject_id, other.message_ids) == (shared.id, None, (two.id,))
        (alone,) = await read_thread(store, lambda r: r.transcripts.derived_from(ANA, [2], 10))
        assert (alone.store_key, alone.turn_ids) == (both.id, (second.id,))
        assert [
            ref.store_key for ref in await read_thread(store, lambda r: r.transcripts.derived_from(ANA, [1, 2], 1))
        ] == [both.id]
        assert await read_thread(store, lambda r: r.transcripts.derived_from(ANA, [3, 9], 10)) == []
        assert await read_thread(store, lambda r: r.transcripts.derived_from(ANA, [], 10)) == []

    @scenario
    async def test_a_sound_transcript_has_no_issues(self, store: Store) -> None:
        scribe = Scribe()
        message = scribe.message("said")
        await add(store, with_host_fields(scribe.turn(ANA, message, "more"), "t1"))
        await add(store, scribe.turn(ANA, "after"))
        await put(store, scribe.revision(Scope(subject="ana"), "learned", evidence=[message.id]))
        found = await read_thread(store, lambda r: r.transcripts.check(ANA, 10))
        assert (found.checked_turns, found.checked_derived_refs, found.issues) == (2, 1, ())
