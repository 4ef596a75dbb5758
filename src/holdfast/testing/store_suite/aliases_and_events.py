"""Aliases and whether they are trusted, events in order, and the queries of export, import and repair."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.domain.events import Event, EventKind
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.ids import EventId
from holdfast.domain.manifest import RepairAction
from holdfast.domain.memory import Plane, Status
from holdfast.domain.scope import Scope
from holdfast.domain.transcript_turns import TranscriptState
from holdfast.errors import AccessDenied
from holdfast.ports import Alias, Store, StoredAlias
from holdfast.testing.store_suite.scribe import (
    ANA,
    BOB,
    EVERYTHING,
    SPACE,
    Scribe,
    add,
    claim_one,
    enqueue,
    forget,
    put,
    read_grant,
    scenario,
    write_grant,
)

_OTHER = Scope(space="other", subject="ana", conversation="chat")
_WHOLE_OTHER = read_grant(Scope(space="other"))


def _event(scribe: Scribe, scope: Scope, kind: EventKind = EventKind.WRITE, **details: str | int | None) -> Event:
    return Event(
        EventId(scribe.ids.new("evt")), kind, scope, scribe.clock.step(), Plane.LONG_TERM, "mem_1", "00ff", details
    )


async def _append(store: Store, *events: Event) -> None:
    for event in events:
        await store.write(EVERYTHING, lambda t, event=event: t.events.append(event))  # type: ignore[misc]


class AliasAndEventContract:
    """The promises of every store about aliases, events, exchange and repair."""

    # --- aliases ---

    @scenario
    async def test_a_chat_id_leads_to_the_conversation_it_was_noted_for(self, store: Store) -> None:
        now = Scribe().clock.now()
        asked = replace(ANA, conversation="chat-7")
        assert await store.read(read_grant(asked), lambda r: r.aliases.find(asked, "chat-7")) is None
        noted = await store.write(write_grant(ANA), lambda t: t.aliases.put(ANA, "chat-7", now))
        again = await store.write(write_grant(ANA), lambda t: t.aliases.put(ANA, "chat-7", now))
        assert noted == again == Alias("chat", trusted=True)
        assert await store.read(read_grant(asked), lambda r: r.aliases.find(asked, "chat-7")) == noted
        assert await store.read(read_grant(asked), lambda r: r.aliases.find(asked, "chat-8")) is None

    @scenario
    async def test_a_chat_id_belongs_to_its_owner_and_channel(self, store: Store) -> None:
        now = Scribe().clock.now()
        await store.write(write_grant(ANA), lambda t: t.aliases.put(ANA, "chat-7", now))
        for elsewhere in (BOB, _OTHER, replace(ANA, channel="web"), replace(ANA, app="a"), Scope(conversation="chat")):
            assert await store.read(EVERYTHING, lambda r, at=elsewhere: r.aliases.find(at, "chat-7")) is None  # type: ignore[misc]
        for grant in (read_grant(BOB), _WHOLE_OTHER, read_grant(replace(ANA, channel="web"))):
            assert await store.read(grant, lambda r: r.aliases.find(ANA, "chat-7")) is None
            assert list(await store.read(grant, lambda r: r.aliases.page(_OTHER.partition, b"", 10))) == []
        with pytest.raises(AccessDenied):
            await store.write(write_grant(BOB), lambda t: t.aliases.put(ANA, "chat-7", now))

    @scenario
    async def test_a_chat_id_that_stood_for_two_is_never_trusted_again(self, store: Store) -> None:
        now = Scribe().clock.now()
        other = replace(ANA, conversation="other")
        await store.write(write_grant(ANA), lambda t: t.aliases.put(ANA, "chat-7", now))
        for thread in (other, ANA, other):
            found = await store.write(write_grant(thread), lambda t, at=thread: t.aliases.put(at, "chat-7", now))  # type: ignore[misc]
            assert not found.trusted
        assert await store.read(read_grant(ANA), lambda r: r.aliases.find(ANA, "chat-7")) == Alias(
            "chat", trusted=False
        )

    @scenario
    async def test_aliases_move_without_their_names(self, store: Store) -> None:
        now = Scribe().clock.now()
        other = replace(ANA, conversation="other")
        for thread, name in ((ANA, "one"), (ANA, "two"), (other, "three"), (BOB, "one")):
            await store.write(write_grant(thread), lambda t, at=thread, name=name: t.aliases.put(at, name, now))  # type: ignore[misc]
        kept = list(await store.read(SPACE, lambda r: r.aliases.page(ANA.partition, b"", 10)))
        assert [alias.key for alias in kept] == sorted(alias.key for alias in kept)
        assert sorted(alias.thread.conversation or "" for alias in kept) == ["chat", "chat", "other"]
        assert list(await store.read(SPACE, lambda r: r.aliases.page(ANA.partition, kept[0].key, 1))) == kept[1:2]
        moved = [alias._replace(thread=replace(alias.thread, space="other")) for alias in kept]
        into = write_grant(Scope(space="other", subject="ana"))
        for new in (True, False):
            for alias in moved:
                assert await store.write(into, lambda t, alias=alias: t.aliases.import_alias(alias)) is new  # type: ignore[misc]
        assert await store.read(_WHOLE_OTHER, lambda r: r.aliases.find(_OTHER, "two")) == Alias("chat", trusted=True)
        wrong = StoredAlias(replace(_OTHER, conversation="third"), moved[0].key, True, now)
        await store.write(into, lambda t: t.aliases.import_alias(wrong))
        trusted = [
            alias.trusted
            for alias in await store.read(_WHOLE_OTHER, lambda r: r.aliases.page(_OTHER.partition, b"", 9))
        ]
        assert trusted == [False, True, True]

    # --- events ---

    @scenario
    async def test_events_are_kept_as_they_were_and_listed_newest_first(self, store: Store) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, "hello"))
        events = [_event(scribe, ANA, kind, count=at, name="é", nothing=None) for at, kind in enumerate(EventKind)]
        bare = Event(EventId(scribe.ids.new("evt")), EventKind.LIFECYCLE, Scope(), scribe.clock.step())
        await _append(store, *events, bare)
        assert list(await store.read(SPACE, lambda r: r.events.page(100))) == [bare, *events[::-1]]
        assert list(await store.read(SPACE, lambda r: r.events.page(2))) == [bare, events[-1]]
        some = frozenset({EventKind.WRITE, EventKind.OPERATOR})
        assert [event.kind for event in await store.read(SPACE, lambda r: r.events.page(100, some))] == [
            EventKind.OPERATOR,
            EventKind.WRITE,
        ]

    @scenario
    async def test_events_are_seen_by_those_who_reach_what_they_are_about(self, store: Store) -> None:
        scribe = Scribe()
        for scope in (ANA, BOB, _OTHER):
            await add(store, scribe.turn(scope, "hello"))
        ours, bobs, theirs = (_event(scribe, scope) for scope in (ANA, BOB, _OTHER))
        await _append(store, ours, bobs, theirs)
        assert list(await store.read(read_grant(ANA), lambda r: r.events.page(9))) == [ours]
        assert list(await store.read(SPACE, lambda r: r.events.page(9))) == [bobs, ours]
        assert list(await store.read(_WHOLE_OTHER, lambda r: r.events.page(9))) == [theirs]
        assert len(await store.read(EVERYTHING, lambda r: r.events.page(9))) == 3
        for event in (bobs, theirs):
            with pytest.raises(AccessDenied):
                await store.write(write_grant(ANA), lambda t, event=event: t.events.append(event))  # type: ignore[misc]

    @scenario
    async def test_only_the_newest_events_of_a_space_are_left(self, store: Store) -> None:
        scribe = Scribe()
        events = [_event(scribe, scope) for scope in (ANA, BOB, _OTHER) * 4]
        await _append(store, *events)
        assert await store.write(SPACE, lambda t: t.events.prune("default", 3)) == 5
        assert await store.write(SPACE, lambda t: t.events.prune("default", 3)) == 0
        left = [event for event in events if event.scope.space == "default"][-3:]
        assert list(await store.read(SPACE, lambda r: r.events.page(9))) == left[::-1]
        assert len(await store.read(_WHOLE_OTHER, lambda r: r.events.page(9))) == 4
        with pytest.raises(AccessDenied):
            await store.write(SPACE, lambda t: t.events.prune("other", 0))

    # --- exchange ---

    @scenario
    async def test_messages_are_read_by_their_ids_but_not_what_is_withheld(self, store: Store) -> None:
        scribe = Scribe()
        turns = [scribe.turn(ANA, f"message {number}", "second") for number in range(4)]
        for turn in turns:
            await add(store, turn)
        ids = [message.id for turn in turns for message in turn.messages]
        states = {1: TranscriptState.ARCHIVED, 2: TranscriptState.MASKED, 3: TranscriptState.RAW_DELETED}
        for sequence, state in states.items():
            await store.write(
                write_grant(ANA),
                lambda t, at=sequence, state=state: t.transcripts.set_state(ANA, [at], state, scribe.clock.now()),  # type: ignore[misc]
            )
        found = await store.read(SPACE, lambda r: r.records.messages([*ids, "msg_no"]))
        assert set(found) == {*ids[:2], *ids[6:]}
        assert found[ids[0]].text == "message 0"
        for grant in (read_grant(BOB), _WHOLE_OTHER):
            assert await store.read(grant, lambda r: r.records.messages(ids)) == {}

    @scenario
    async def test_memories_come_with_all_their_revisions_in_the_order_of_their_ids(self, store: Store) -> None:
        scribe = Scribe()
        message = scribe.message("said")
        await add(store, scribe.turn(ANA, message))
        home = Scope(subject="ana")
        made = [
            scribe.revision(home, f"fact {number}", evidence=[message.id], plane=plane, status=status)
            for number, (plane, status) in enumerate(
                [
                    (Plane.LONG_TERM, Status.ACCEPTED),
                    (Plane.PRIVATE, Status.ACCEPTED),
                    (Plane.EPISODE, Status.QUARANTINED),
                ]
            )
        ]
        for revision in made:
            await put(store, revision)
        await put(store, scribe.revision(home, "fact 1, corrected", of=made[1], supersedes=1))
        await put(store, scribe.revision(Scope(space="other"), "theirs"))
        found = await store.read(SPACE, lambda r: r.records.memories("", 10))
        assert [[each.text for each in memory] for memory in found] == [
            ["fact 0"],
            ["fact 1", "fact 1, corrected"],
            ["fact 2"],
        ]
        assert [link.message_id for link in found[0][0].evidence] == [message.id]
        rest = await store.read(SPACE, lambda r: r.records.memories(made[0].id, 1))
        assert [len(memory) for memory in rest] == [2]
        assert list(await store.read(SPACE, lambda r: r.records.memories(made[2].id, 5))) == []
        assert list(await store.read(read_grant(BOB), lambda r: r.records.memories("", 10))) == []

    @scenario
    async def test_what_is_there_and_what_was_forgotten_can_be_told_apart(self, store: Store) -> None:
        scribe = Scribe()
        here, gone = scribe.message("here"), scribe.message("gone")
        fact = scribe.revision(Scope(subject="ana"))
        await add(store, scribe.turn(ANA, here, gone))
        await put(store, fact)
        await forget(store, ForgetTarget(ids=(gone.id,)), write_grant(ANA), scribe.clock.step())
        asked = [here.id, gone.id, fact.id, "msg_no"]
        assert await store.read(SPACE, lambda r: r.records.existing_ids(asked)) == {here.id, fact.id}
        assert await store.read(SPACE, lambda r: r.records.tombstones(ANA.partition, asked)) == {gone.id}
        assert await store.read(SPACE, lambda r: r.records.tombstones(BOB.partition, asked)) == frozenset()
        assert await store.read(_WHOLE_OTHER, lambda r: r.records.tombstones(ANA.partition, asked)) == frozenset()

    # --- repair ---

    @scenario
    async def test_a_sound_store_has_nothing_to_mend_and_is_not_changed(self, store: Store) -> None:
        scribe = Scribe()
        message = scribe.message("said")
        await add(store, scribe.turn(ANA, message))
        await put(store, scribe.revision(Scope(subject="ana"), evidence=[message.id]))
        nothing = {action: 0 for action in RepairAction if action is not RepairAction.RESTRICT_FILES}
        now = scribe.clock.now()
        assert await store.read(EVERYTHING, lambda r: r.maintenance.count_repairs(now, 10)) == nothing
        before = await store.read(EVERYTHING, lambda r: r.index.change_of(ANA.partition))
        assert await store.write(EVERYTHING, lambda t: t.maintenance.repair(now, 10)) == nothing
        assert await store.read(EVERYTHING, lambda r: r.index.change_of(ANA.partition)) == before
        for grant in (SPACE, read_grant(ANA)):
            with pytest.raises(AccessDenied):
                await store.read(grant, lambda r: r.maintenance.count_repairs(now, 10))
            with pytest.raises(AccessDenied):
                await store.write(grant, lambda t: t.maintenance.repair(now, 10))

    @scenario
    async def test_a_repair_releases_jobs_that_nobody_works_at_and_cuts_long_logs(self, store: Store) -> None:
        scribe = Scribe()
        await enqueue(store, scribe, scribe.job())
        job = await claim_one(store, scribe.clock.now())
        await _append(store, *(_event(scribe, scope) for scope in (ANA, _OTHER) * 5))
        held = await store.read(EVERYTHING, lambda r: r.maintenance.count_repairs(scribe.clock.now(), 3))
        assert (held[RepairAction.RELEASE_STUCK_JOBS], held[RepairAction.PRUNE_EVENTS]) == (0, 4)
        scribe.clock.step(3_600)
        done = await store.write(EVERYTHING, lambda t: t.maintenance.repair(scribe.clock.now(), 3))
        assert (done[RepairAction.RELEASE_STUCK_JOBS], done[RepairAction.PRUNE_EVENTS]) == (1, 4)
        assert (await claim_one(store, scribe.clock.now())).id == job.id
        assert len(await store.read(EVERYTHING, lambda r: r.events.page(99))) == 6
