"""Forgetting removes records and the memories derived only from them. Also: idempotent answers, and sealing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.memory import MemoryRecord
from holdfast.domain.scope import Scope
from holdfast.ports import (
    ListFilter,
    Store,
    StoredResponse,
)
from holdfast.testing.store_suite.scribe import (
    ANA,
    ANALYZER,
    BOB,
    EMBEDDER,
    SHARED,
    SPACE,
    Scribe,
    add,
    delta,
    enqueue,
    event_id,
    find_record,
    forget,
    number_of,
    put,
    read_grant,
    scenario,
    texts,
    write_grant,
)


class ForgettingContract:
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
        doomed = await store.read(read_grant(Scope(subject="ana")), lambda r: r.records.plan_forget(target))
        assert (doomed.message_ids, doomed.memory_ids) == ((message.id,), (memory.id,))
        assert (doomed.revisions, doomed.derived_ids, doomed.weakened, doomed.conversations) == (2, (), 0, 1)
        ended = await store.write(
            write_grant(Scope(subject="ana")), lambda t: t.records.forget(doomed, scribe.clock.now(), event_id)
        )
        assert ended == (3, 0)
        for record_id in (message.id, memory.id):
            assert await find_record(store, record_id) is None
            assert await find_record(store, record_id, known) is None
            assert await store.read(SPACE, lambda r, record_id=record_id: list(r.records.revisions(record_id))) == []  # type: ignore[misc]
        assert await store.read(SPACE, lambda r: r.records.fetch(numbers)) == {}
        assert await texts(store) == await texts(store, wanted=ListFilter(as_of=known)) == ["kept"]
        assert (await store.read(SPACE, lambda r: r.maintenance.counts(EMBEDDER, ANALYZER)))["tombstones"] == 3
        again = await store.write(
            write_grant(Scope(subject="ana")), lambda t: t.records.forget(doomed, scribe.clock.now(), event_id)
        )
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
        doomed = await store.read(read_grant(ANA), lambda r: r.records.plan_forget(target))
        assert (doomed.derived_ids, doomed.weakened, doomed.revisions) == ((alone.id,), 1, 1)
        assert await forget(store, target, write_grant(scope), scribe.clock.step()) == (2, 0)
        assert await texts(store) == ["on nothing", "on both", "two"]
        weakened = await find_record(store, both.id)
        assert isinstance(weakened, MemoryRecord)
        assert [link.text for link in weakened.evidence] == ["two"]
        # It lost a link, so the delta must include it: caches must update their copy.
        assert await number_of(store, both.id) in [row.number for row in (await delta(store, since=since)).rows]

    @scenario
    async def test_a_revision_goes_with_its_evidence_and_the_memory_with_its_current_one(self, store: Store) -> None:
        scribe = Scribe()
        scope = Scope(subject="ana")
        one, two = scribe.message("one"), scribe.message("two")
        await add(store, scribe.turn(ANA, one, two))
        memory = scribe.revision(scope, "first", evidence=[one.id])
        await put(store, memory)
        await put(store, scribe.revision(scope, "second", of=memory, supersedes=1, evidence=[two.id]))
        doomed = await store.read(read_grant(ANA), lambda r: r.records.plan_forget(ForgetTarget(ids=(two.id,))))
        assert (doomed.derived_ids, doomed.baseless, doomed.weakened, doomed.revisions) == ((memory.id,), (), 0, 2)
        doomed = await store.read(read_grant(ANA), lambda r: r.records.plan_forget(ForgetTarget(ids=(one.id,))))
        assert (doomed.derived_ids, len(doomed.baseless), doomed.weakened, doomed.revisions) == ((), 1, 1, 1)
        assert await forget(store, ForgetTarget(ids=(one.id,)), write_grant(scope), scribe.clock.step()) == (2, 0)
        left = await store.read(read_grant(scope), lambda r: r.records.revisions(memory.id))
        assert [revision.text for revision in left] == ["second"]
        assert await forget(store, ForgetTarget(ids=(two.id,)), write_grant(scope), scribe.clock.step()) == (2, 0)
        assert await texts(store) == []

    @scenario
    async def test_a_message_is_forgotten_with_the_memory_that_took_its_place(self, store: Store) -> None:
        scribe = Scribe()
        scope = Scope(subject="ana")
        one, two = scribe.message("one"), scribe.message("two")
        await add(store, scribe.turn(ANA, one, two))
        learned = scribe.revision(scope, "learned", evidence=[one.id, two.id])
        await put(store, learned)
        override = scribe.revision(ANA, "override", evidence=[one.id])
        await store.write(write_grant(ANA), lambda t: t.records.supersede(one.id, override.recorded_at))
        await put(store, override)
        # Having a corrected message as evidence is not replacing it.
        doomed = await store.read(read_grant(scope), lambda r: r.records.plan_forget(ForgetTarget(ids=(learned.id,))))
        assert (doomed.message_ids, doomed.memory_ids, doomed.derived_ids) == ((), (learned.id,), ())
        target = ForgetTarget(ids=(override.id,))
        doomed = await store.read(read_grant(scope), lambda r: r.records.plan_forget(target))
        assert (doomed.message_ids, doomed.memory_ids) == ((one.id,), (override.id,))
        assert (doomed.derived_ids, doomed.weakened, doomed.conversations) == ((), 1, 1)
        await put(store, scribe.revision(ANA, "again", of=override, supersedes=1, evidence=[two.id]))
        # Also if the override goes with its current evidence; with both messages goes the memory learned from them.
        doomed = await store.read(read_grant(scope), lambda r: r.records.plan_forget(ForgetTarget(ids=(two.id,))))
        assert doomed.message_ids == tuple(sorted([one.id, two.id]))
        assert doomed.derived_ids == tuple(sorted([override.id, learned.id]))
        assert await forget(store, target, write_grant(scope), scribe.clock.step()) == (3, 0)
        assert await find_record(store, one.id) is None
        assert await texts(store) == ["learned", "two"]

    @scenario
    async def test_revisions_of_a_message_and_of_the_memory_in_its_place_are_one_history(self, store: Store) -> None:
        scribe = Scribe()
        message, other = scribe.message("said"), scribe.message("other")
        await add(store, scribe.turn(ANA, message, other))
        learned = scribe.revision(ANA, "learned", evidence=[message.id])
        await put(store, learned)
        first = scribe.revision(ANA, "one", evidence=[message.id, other.id])
        await store.write(write_grant(ANA), lambda t: t.records.supersede(message.id, first.recorded_at))
        await put(store, first)
        await put(store, scribe.revision(ANA, "two", of=first, supersedes=1))
        history = ["said", "one", "two"]
        for record_id, expected in [
            (message.id, history),
            (first.id, history),
            (learned.id, ["learned"]),
            (other.id, ["other"]),
        ]:
            for grant in (SPACE, read_grant(ANA)):
                shown = await store.read(grant, lambda r, record_id=record_id: list(r.records.revisions(record_id)))  # type: ignore[misc]
                assert [record.text for record in shown] == expected
            for grant in (read_grant(BOB), read_grant(replace(ANA, conversation="elsewhere"))):
                shown = await store.read(grant, lambda r, record_id=record_id: list(r.records.revisions(record_id)))  # type: ignore[misc]
                assert shown == []

    @scenario
    async def test_what_is_shared_goes_with_the_words_it_rests_on(self, store: Store) -> None:
        scribe = Scribe()
        one = scribe.message("one")
        await add(store, scribe.turn(ANA, one))
        shared = scribe.revision(Scope(), "shared", evidence=[one.id])
        await put(store, shared, write_grant(Scope()))
        doomed = await store.read(
            write_grant(Scope(subject="ana")), lambda r: r.records.plan_forget(ForgetTarget(subject="ana"))
        )
        assert doomed.derived_ids == (shared.id,)
        target = ForgetTarget(subject="ana")
        assert await forget(store, target, write_grant(Scope(subject="ana")), scribe.clock.step()) == (2, 0)
        assert await texts(store, read_grant(Scope())) == []

    @scenario
    async def test_whose_conversation_it_is_can_be_seen_by_its_name(self, store: Store) -> None:
        scribe = Scribe()
        for scope in (ANA, BOB, Scope(agent="bot", conversation="chat", app="app")):
            await add(store, scribe.turn(scope, "said"))
        await add(store, scribe.turn(Scope(subject="eve", conversation="another"), "said"))
        noted = Scope(subject="dan", conversation="chat")
        await put(store, scribe.revision(noted, "noted"), write_grant(noted))

        async def holding(**where: str) -> set[str]:
            return {
                each.owner
                for each in await store.read(read_grant(Scope(**where)), lambda r: r.records.occupied_partitions())
            }

        assert await holding(conversation="chat") == {"ana", "bob", "bot", "dan"}
        assert await holding(conversation="chat", app="app") == {"bot"}
        assert await holding(conversation="chat", subject="ana") == {"ana"}
        assert await holding(conversation="nowhere") == await holding(conversation="chat", space="away") == set()
        assert await store.read(write_grant(SHARED), lambda r: r.records.occupied_partitions()) == []
        # Names of conversations stay; only records count.
        await forget(store, ForgetTarget(conversation="chat"), write_grant(ANA), scribe.clock.step())
        assert await holding(conversation="chat") == {"bob", "bot", "dan"}
        await add(store, scribe.turn(SHARED, "nobody's"), write_grant(SHARED))
        assert len(await store.read(write_grant(SHARED), lambda r: r.records.occupied_partitions())) == 1

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
        theirs = await texts(store, read_grant(Scope(subject="bob")))
        await forget(store, target, write_grant(Scope(subject="ana")), scribe.clock.step())
        assert await texts(store, read_grant(Scope(subject="ana"))) == left
        assert await texts(store, read_grant(Scope(subject="bob"))) == theirs

    @scenario
    async def test_the_fingerprint_changes_with_what_would_be_forgotten(self, store: Store) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, "one"))
        memory = scribe.revision(Scope(subject="ana"), "fact")
        await put(store, memory)
        target, grant = ForgetTarget(subject="ana"), read_grant(Scope(subject="ana"))
        seen = [(await store.read(grant, lambda r: r.records.plan_forget(target))).fingerprint]
        assert (await store.read(grant, lambda r: r.records.plan_forget(target))).fingerprint == seen[0]
        await add(store, scribe.turn(ANA, "two"))
        seen.append((await store.read(grant, lambda r: r.records.plan_forget(target))).fingerprint)
        await put(store, scribe.revision(Scope(subject="ana"), "corrected", of=memory, supersedes=1))
        seen.append((await store.read(grant, lambda r: r.records.plan_forget(target))).fingerprint)
        await add(store, scribe.turn(BOB, "not Ana's"))
        assert (await store.read(grant, lambda r: r.records.plan_forget(target))).fingerprint == seen[-1]
        assert len(set(seen)) == 3

    @scenario
    async def test_many_records_are_forgotten_at_once(self, store: Store) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, *(f"message {number}" for number in range(1_200))))
        target = ForgetTarget(subject="ana")
        assert await forget(store, target, write_grant(Scope(subject="ana")), scribe.clock.step()) == (1_200, 0)
        assert await texts(store) == []

    @scenario
    async def test_forgotten_records_are_nobodys_work(self, store: Store) -> None:
        scribe = Scribe()
        gone, kept = scribe.message("gone"), scribe.message("kept")
        await add(store, scribe.turn(ANA, gone, kept))
        await enqueue(store, scribe, scribe.job(record_ids=(gone.id, kept.id)))
        await forget(store, ForgetTarget(ids=(gone.id,)), write_grant(ANA), scribe.clock.step())
        assert [job.record_ids for job in await store.read(SPACE, lambda r: r.jobs.newest())] == [(kept.id,)]

    @scenario
    async def test_scrubbing_leaves_everything_that_was_kept(self, store: Store) -> None:
        scribe = Scribe()
        message, kept = scribe.message("gone"), scribe.message("kept")
        await add(store, scribe.turn(ANA, message, kept))
        await forget(store, ForgetTarget(ids=(message.id,)), write_grant(ANA), scribe.clock.step())
        assert await store.scrub() is True
        assert await texts(store) == ["kept"]

    # --- flushing ---

    @scenario
    async def test_what_was_said_since_the_last_seal_is_unsealed(self, store: Store) -> None:
        scribe = Scribe()
        messages = [scribe.message(f"message {number}") for number in range(4)]
        await add(store, scribe.turn(ANA, *messages[:3]))
        await add(store, scribe.turn(replace(ANA, conversation="other"), "elsewhere"))

        async def unsealed_ids() -> list[str]:
            found: list[str] = list(await store.read(read_grant(ANA), lambda r: r.transcripts.unsealed_messages(ANA)))
            listed = await store.read(read_grant(ANA), lambda r: r.records.page(ListFilter(unsealed=True), None, 10))
            assert [record.id for record in listed] == found[::-1]
            return found

        assert await unsealed_ids() == [message.id for message in messages[:3]]
        await forget(store, ForgetTarget(ids=(messages[1].id,)), write_grant(ANA), scribe.clock.step())
        assert await unsealed_ids() == [messages[0].id, messages[2].id]
        await store.write(write_grant(ANA), lambda t: t.transcripts.seal(ANA))
        assert await unsealed_ids() == []
        await add(store, scribe.turn(ANA, messages[3]))
        assert await unsealed_ids() == [messages[3].id]
        other = replace(ANA, conversation="other")
        assert len(await store.read(read_grant(other), lambda r: r.transcripts.unsealed_messages(other))) == 1
        assert await store.write(write_grant(BOB), lambda t: t.transcripts.seal(BOB)) == 0

    # --- retries ---

    @scenario
    async def test_an_answer_is_kept_for_its_partition_and_key(self, store: Store) -> None:
        scribe = Scribe()
        answer = StoredResponse("digest", '{"ids": ["msg_1", null]}')
        await add(store, scribe.turn(BOB, "hello"))
        await store.write(
            write_grant(ANA), lambda t: t.records.put_response(ANA.partition, "key", answer, scribe.clock.now())
        )
        answers = await store.read(
            SPACE,
            lambda r: [
                r.records.response(ANA.partition, "key"),
                r.records.response(ANA.partition, "k"),
                r.records.response(BOB.partition, "key"),
            ],
        )
        assert answers == [answer, None, None]
