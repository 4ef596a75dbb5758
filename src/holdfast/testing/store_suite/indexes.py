"""Data for search: the changes of a partition, its vectors, and records that wait for vectors."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.memory import Trust, Validity
from holdfast.domain.scope import Scope
from holdfast.domain.times import to_micros
from holdfast.domain.transcript import Role
from holdfast.ports import (
    Analysis,
    IndexUpdate,
    Store,
    TextFlag,
    Transaction,
)
from holdfast.testing.store_suite.scribe import (
    ANA,
    ANALYZER,
    BOB,
    EMBEDDER,
    EVERYTHING,
    SPACE,
    Scribe,
    add,
    analysis,
    delta,
    forget,
    number_of,
    put,
    scenario,
    vector,
    write_grant,
)


class IndexContract:
    # --- deltas ---

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
        assert (row.flags, row.length, bytes(row.terms)) == (0, 2, analysis("two pieces").terms)
        assert row.conversation_id is not None
        assert whole.scopes[row.scope_id] == replace(ANA, app="app")
        other = rows[learned]
        assert (other.kind, other.plane, other.conversation_id, other.sender, other.role) == (
            1, "long_term", None, None, None,
        )  # fmt: skip
        assert (other.valid_from, other.trust) == (to_micros(message.said_at), Trust.STATED.level)
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
        # The superseded revision has changed as well, and comes with all of its vectors.
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
        await forget(store, ForgetTarget(ids=(gone.id,)), write_grant(ANA), scribe.clock.step())
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
        entry = IndexUpdate(number, [vector(0, 1), vector(1, 0)])
        await store.write(write_grant(ANA), lambda t: t.index.update([entry], EMBEDDER, ANALYZER))
        change = await delta(store, since=start)
        assert [row.number for row in change.rows] == [number]
        assert [bytes(each.vector) for each in change.vectors] == [vector(0, 1), vector(1, 0)]
        assert list((await delta(store, embedder="another")).vectors) == []
        # Fewer pieces than before: the old ones are gone.
        await store.write(
            write_grant(ANA), lambda t: t.index.update([IndexUpdate(number, [vector()])], EMBEDDER, ANALYZER)
        )
        assert [bytes(each.vector) for each in (await delta(store)).vectors] == [vector()]

    @scenario
    async def test_change_numbers_grow_and_other_partitions_are_not_moved(self, store: Store) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(BOB, "Bob's"))
        memory, message = scribe.revision(Scope(subject="ana"), "one"), scribe.message("hello")

        async def changes() -> tuple[int, int]:
            return await store.read(
                SPACE, lambda r: (r.index.change_of(ANA.partition), r.index.change_of(BOB.partition))
            )

        before = await changes()
        assert before[0] == 0
        assert before[1] > 0
        steps: list[Callable[[], Awaitable[object]]] = [
            lambda: add(store, scribe.turn(ANA, message)),
            lambda: put(store, memory),
            lambda: put(store, scribe.revision(Scope(subject="ana"), "two", of=memory, supersedes=1)),
            lambda: forget(store, ForgetTarget(ids=(message.id,)), write_grant(ANA), scribe.clock.step()),
            lambda: forget(store, ForgetTarget(subject="ana"), write_grant(Scope(subject="ana")), scribe.clock.step()),
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
            transaction.transcripts.add_turn(scribe.turn(ANA, "never"), EMBEDDER, ANALYZER)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await store.write(write_grant(ANA), fail)
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
            lambda: forget(store, ForgetTarget(ids=(messages[0].id,)), write_grant(ANA), scribe.clock.step()),
            lambda: forget(
                store, ForgetTarget(ids=(memory.id,)), write_grant(Scope(subject="ana")), scribe.clock.step()
            ),
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

    # --- indexing ---

    @scenario
    async def test_what_waits_for_vectors_or_analysis_is_found_in_order(self, store: Store) -> None:
        scribe = Scribe()
        done, bare = scribe.message("done"), scribe.message("bare", vectors=())
        await add(store, scribe.turn(ANA, done, bare))
        await put(store, scribe.revision(Scope(subject="ana"), "memory", vectors=()))

        async def unindexed_texts(embedder: str = EMBEDDER, analyzer: int = ANALYZER, after: int = 0) -> list[str]:
            return [
                record.text
                for record in await store.read(SPACE, lambda r: r.index.backlog(embedder, analyzer, after, 10))
            ]

        assert await unindexed_texts() == ["bare", "memory"]
        assert await unindexed_texts(after=await number_of(store, bare.id)) == ["memory"]
        assert (
            await unindexed_texts(embedder="another") == await unindexed_texts(analyzer=2) == ["done", "bare", "memory"]
        )
        waiting = await store.read(SPACE, lambda r: r.index.backlog_of([done.id, bare.id, "msg_0"], EMBEDDER, ANALYZER))
        assert [(each.id, each.text) for each in waiting] == [(bare.id, "bare")]
        limited = await store.read(SPACE, lambda r: r.index.backlog("another", 1, 0, 2))
        assert [each.text for each in limited] == ["done", "bare"]
        entry = IndexUpdate(await number_of(store, bare.id), [vector()], analysis("bare"))
        await store.write(write_grant(ANA), lambda t: t.index.update([entry], EMBEDDER, ANALYZER))
        assert await unindexed_texts() == ["memory"]

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
        assert await store.write(SPACE, lambda t: t.index.mark_stale()) == 3
        after = await delta(store)
        assert (after.rows, after.vectors) == (before.rows, before.vectors)
        stale = await store.read(EVERYTHING, lambda r: r.index.backlog(EMBEDDER, ANALYZER, 0, 10))
        assert sorted(each.text for each in stale) == ["hello", "one", "two"]
        entries = [IndexUpdate(each.number, [vector(0, 1)], analysis(each.text)) for each in stale]
        await store.write(SPACE, lambda t: t.index.update(entries, EMBEDDER, ANALYZER))
        assert await store.read(EVERYTHING, lambda r: list(r.index.backlog(EMBEDDER, ANALYZER, 0, 10))) == []
        assert {bytes(each.vector) for each in (await delta(store)).vectors} == {vector(0, 1)}

    @scenario
    async def test_indexing_brings_a_new_analysis(self, store: Store) -> None:
        scribe = Scribe()
        message = scribe.message("hello")
        await add(store, scribe.turn(ANA, message))
        terms = struct.pack("<QH", 2**63 + 5, 3)
        made = Analysis(terms=terms, length=7, flags=TextFlag.LONG | TextFlag.QUESTION_ONLY, pieces=("hello",))
        entry = IndexUpdate(await number_of(store, message.id), [vector()], made)
        await store.write(write_grant(ANA), lambda t: t.index.update([entry], EMBEDDER, 2))
        (row,) = (await delta(store)).rows
        assert (bytes(row.terms), row.length, TextFlag(row.flags)) == (terms, 7, TextFlag.LONG | TextFlag.QUESTION_ONLY)
        assert await store.read(SPACE, lambda r: list(r.index.backlog(EMBEDDER, 2, 0, 10))) == []

    @scenario
    async def test_indexing_what_was_forgotten_meanwhile_does_nothing(self, store: Store) -> None:
        scribe = Scribe()
        message = scribe.message("hello", vectors=())
        await add(store, scribe.turn(ANA, message))
        entry = IndexUpdate(await number_of(store, message.id), [vector()], analysis("hello"))
        await forget(store, ForgetTarget(ids=(message.id,)), write_grant(ANA), scribe.clock.step())
        await store.write(write_grant(ANA), lambda t: t.index.update([entry], EMBEDDER, ANALYZER))
        whole = await delta(store)
        assert (list(whole.rows), list(whole.vectors)) == ([], [])

    @scenario
    async def test_facts_about_the_store_are_kept_and_replaced(self, store: Store) -> None:
        await store.write(EVERYTHING, lambda t: t.maintenance.put_fact("made_by", "one"))
        await store.write(EVERYTHING, lambda t: t.maintenance.put_fact("made_by", "two"))
        assert await store.read(SPACE, lambda r: (r.maintenance.fact("made_by"), r.maintenance.fact("other"))) == (
            "two",
            None,
        )
