"""Records round-trip: messages, memories, their revisions, and the two times."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from holdfast.domain.checks import Metadata
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.memory import ALWAYS, Evidence, MemoryRecord, Plane, Status, Trust, Validity
from holdfast.domain.results import HitKind
from holdfast.domain.scope import CONVERSATION_PARTS, Scope
from holdfast.domain.transcript import Message, Role
from holdfast.errors import DuplicateId, RevisionConflict
from holdfast.ports import (
    ListFilter,
    Reader,
    Store,
    StoredMessages,
)
from holdfast.testing.fakes import FixedClock
from holdfast.testing.store_suite.scribe import (
    ANA,
    ANALYZER,
    BOB,
    EMBEDDER,
    EVERYTHING,
    SPACE,
    Scribe,
    add,
    delta,
    find_record,
    forget,
    number_of,
    page,
    put,
    read_grant,
    scenario,
    texts,
    write_grant,
)

METADATA: Metadata = {"k": "v", "empty": "", "ключ": "значение", "n": -3, "r": 1.5, "yes": True, "none": None}


class RecordContract:
    # --- round trips ---

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
            metadata=METADATA,
        )
        turn = scribe.turn(full, given, source="import")
        stored = await add(store, turn)
        assert stored == StoredMessages((given.id,), frozenset({0}), sequence=1)
        assert await find_record(store, given.id) == Message(
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
            metadata=METADATA,
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
            metadata=METADATA,
        )
        assert await put(store, given) == 1
        assert await find_record(store, given.id) == MemoryRecord(
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
            metadata=METADATA,
        )

    @scenario
    async def test_fetch_gives_by_number_what_find_gives_by_id(self, store: Store) -> None:
        scribe = Scribe()
        message, memory = scribe.message("a message"), scribe.revision(Scope(subject="ana"), "a memory")
        await add(store, scribe.turn(ANA, message))
        await put(store, memory)
        numbers = [await number_of(store, message.id), await number_of(store, memory.id)]
        records = await store.read(SPACE, lambda r: r.records.fetch([*numbers, 999_999]))
        assert records == {
            numbers[0]: await find_record(store, message.id),
            numbers[1]: await find_record(store, memory.id),
        }

    @scenario
    async def test_an_id_that_is_not_there_is_found_nowhere(self, store: Store) -> None:
        for unknown in ("msg_1", "mem_1", "", "'; DROP TABLE records", "%"):
            assert await find_record(store, unknown) is None
            assert await store.read(SPACE, lambda r, unknown=unknown: list(r.records.revisions(unknown))) == []  # type: ignore[misc]

    @scenario
    async def test_an_empty_store_answers_every_question(self, store: Store) -> None:
        partition = ANA.partition

        def ask(reader: Reader) -> list[object]:
            return [
                list(reader.index.partitions()),
                reader.index.change_of(partition),
                reader.index.delta(partition, 0, EMBEDDER).change,
                reader.records.fetch([]),
                list(reader.records.page(ListFilter(), None, 10)),
                reader.records.response(partition, "key"),
                list(reader.transcripts.unsealed_messages(ANA)),
                list(reader.index.backlog(EMBEDDER, ANALYZER, 0, 10)),
                list(reader.index.backlog_of(["msg_1"], EMBEDDER, ANALYZER)),
                reader.records.in_slot(ANA, "slot"),
                reader.maintenance.fact("name"),
                reader.jobs.counts(),
                reader.jobs.has_due(FixedClock().now()),
                list(reader.jobs.newest()),
                list(reader.operations.page()),
            ]

        nothing = [[], 0, 0, {}, [], None, [], [], [], None, None, {}, False, [], []]
        assert await store.read(SPACE, ask) == nothing
        assert set((await store.read(SPACE, lambda r: r.maintenance.counts(EMBEDDER, ANALYZER))).values()) == {0}

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
        others = [replace(ANA, **{part: "other"}) for part in ("space", "subject", *CONVERSATION_PARTS)]
        for scope in (ANA, *others):
            stored = await add(store, scribe.turn(scope, scribe.message("hello", external_id="m1")))
            assert len(stored.new) == 1

    @scenario
    async def test_a_conversation_is_one_over_its_runs_and_issues(self, store: Store) -> None:
        scribe = Scribe()
        scopes = [replace(ANA, run="1"), replace(ANA, run="2"), replace(ANA, issue="3"), ANA]
        messages = [scribe.message(f"message {number}", external_id=f"m{number}") for number in range(4)]
        for scope, message in zip(scopes, messages, strict=True):
            await add(store, scribe.turn(scope, message))
        records = [await find_record(store, message.id) for message in messages]
        assert [record.position for record in records if isinstance(record, Message)] == [0, 1, 2, 3]
        assert [record.scope for record in records if record] == scopes
        again = scribe.message("message 0", external_id="m0")
        assert (await add(store, scribe.turn(scopes[1], again))).ids == (messages[0].id,)
        unsealed = await store.read(read_grant(ANA), lambda r: list(r.transcripts.unsealed_messages(ANA)))
        assert unsealed == [message.id for message in messages]

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
        await forget(store, ForgetTarget(ids=(message.id,)), write_grant(ANA), scribe.clock.step())
        replay = [scribe.message("hello", external_id="m1"), scribe.message("new", external_id="m2")]
        stored = await add(store, scribe.turn(ANA, *replay))
        assert stored == StoredMessages((None, replay[1].id), frozenset({1}), sequence=2)
        # Nor with another text: the id itself was forgotten.
        assert (await add(store, scribe.turn(ANA, scribe.message("other", external_id="m1")))).ids == (None,)
        assert await texts(store) == ["new"]
        # In another conversation it is another message.
        assert (await add(store, scribe.turn(BOB, scribe.message("hello", external_id="m1")))).new == frozenset({0})

    @scenario
    async def test_positions_are_consecutive_under_concurrency(self, store: Store) -> None:
        scribe = Scribe()
        turns = [scribe.turn(ANA, *(f"{turn}.{line}" for line in range(3))) for turn in range(20)]
        elsewhere = [scribe.turn(BOB, "x") for _ in range(5)]
        await asyncio.gather(*(add(store, turn) for turn in [*turns, *elsewhere]))
        messages = [record for record in await page(store, read_grant(ANA)) if isinstance(record, Message)]
        messages.sort(key=lambda message: message.position)
        assert [message.position for message in messages] == list(range(60))
        said = [message.text for message in messages]
        # A turn's messages are adjacent and in order.
        assert all(
            said[at : at + 3] == [f"{said[at].split('.')[0]}.{line}" for line in range(3)] for at in range(0, 60, 3)
        )

    @scenario
    async def test_positions_are_never_given_twice(self, store: Store) -> None:
        scribe = Scribe()
        last = scribe.message("last")
        await add(store, scribe.turn(ANA, "first", last))
        await forget(store, ForgetTarget(ids=(last.id,)), write_grant(ANA), scribe.clock.step())
        newest = scribe.message("newest")
        await add(store, scribe.turn(ANA, newest))
        record = await find_record(store, newest.id)
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
        history = await store.read(SPACE, lambda r: list(r.records.revisions(first.id)))
        seen = [
            (record.revision, record.text, record.recorded_at, record.superseded_at, record.reason)
            for record in history
            if isinstance(record, MemoryRecord)
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
        history = await store.read(SPACE, lambda r: list(r.records.revisions(first.id)))
        shown = [[link.text for link in record.evidence] for record in history if isinstance(record, MemoryRecord)]
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
            await store.read(SPACE, lambda r, place=place, slot=slot: r.records.in_slot(place, slot))  # type: ignore[misc]
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
            record = await find_record(store, first.id, moment)
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
            (ListFilter(unsealed=True), ["imported", "by bob", "by ana"]),
            (ListFilter(sender="nobody"), []),
        ]
        for wanted, expected in cases:
            assert await texts(store, wanted=wanted) == expected

    @scenario
    async def test_a_superseded_message_is_found_by_its_id_alone_and_as_of_before(self, store: Store) -> None:
        scribe = Scribe()
        message, other = scribe.message("hello"), scribe.message("again")
        await add(store, scribe.turn(ANA, message, other))
        before, at = scribe.clock.step(), scribe.clock.step()
        since = (await delta(store)).change
        await store.write(write_grant(ANA), lambda t: t.records.supersede(message.id, at))
        assert await texts(store) == ["again"]
        assert await texts(store, wanted=ListFilter(as_of=before)) == ["again", "hello"]
        for moment in (None, before, scribe.clock.step()):
            record = await find_record(store, message.id, moment)
            assert isinstance(record, Message)
            assert (record.text, record.superseded_at) == ("hello", at)
        assert [row.superseded_at is None for row in (await delta(store, since=since)).rows] == [False]
        assert list(await store.read(SPACE, lambda r: r.transcripts.unsealed_messages(ANA))) == [other.id]
        for grant, named in (
            (write_grant(ANA), message.id),
            (write_grant(BOB), other.id),
            (write_grant(ANA), "msg_none"),
        ):
            with pytest.raises(RevisionConflict):
                await store.write(grant, lambda t, named=named: t.records.supersede(named, at))  # type: ignore[misc]
        assert (await store.read(EVERYTHING, lambda r: r.maintenance.integrity(EMBEDDER)))[1] == []
