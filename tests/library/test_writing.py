"""`add`, `flush`, `remember`, `correct`: durable, searchable on return, and safe to retry."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

import holdfast
from holdfast import Draft, Memory, Role, Trust
from holdfast.domain.scope import Scope
from holdfast.errors import NotFound, RevisionConflict
from probes import SteppingClock, jobs_of

NOTED = {
    "mood": "calm", "empty": "", "blank": "  ", "count": 3, "large": 2**63 - 1, "share": 1.0, "tiny": 5e-324,
    "yes": True, "no": False, "nothing": None,
}  # fmt: skip


def test_what_was_added_is_found_by_its_words_on_return(memory: Memory) -> None:
    added = memory.add("The heron stood in the reeds.", subject="ana")
    assert [hit.id for hit in memory.search("heron", subject="ana")] == list(added.message_ids)


def test_what_was_added_is_found_by_its_meaning_on_return(meaningful: Memory) -> None:
    meaningful.add(["I bought a puppy.", "The train was late.", "We repainted the kitchen."], subject="ana")
    assert meaningful.search("a young dog", subject="ana")[0].text == "I bought a puppy."


def test_what_was_added_is_there_after_opening_again(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with holdfast.open(path, embedder="fake") as memory:
        added = memory.add("Still here.", subject="ana")
    with holdfast.open(path, embedder="fake") as memory:
        assert memory.get(str(added.message_ids[0])).text == "Still here."
        assert memory.search("still here")[0].id == added.message_ids[0]


def test_the_answer_of_add_says_what_was_stored(memory: Memory) -> None:
    added = memory.add(["One.", "Two."], subject="ana", conversation="talk")
    assert (added.stored, added.conversation, added.replayed, added.skipped) == (2, "talk", False, ())
    assert [memory.get(str(found)).text for found in added.message_ids] == ["One.", "Two."]
    assert all(memory.get(str(found)).turn_id == added.turn_id for found in added.message_ids)


def test_a_message_keeps_all_that_it_was_given(memory: Memory) -> None:
    added = memory.add(
        {
            "text": "  Spaces, \n lines and 🦆 stay.  ",
            "sender": "Zoë",
            "role": "assistant",
            "timestamp": "2026-03-01T10:00:00+02:00",
            "id": "their-1",
            "metadata": NOTED,
        },
        subject="ana", app="mail", project="p", channel="ch", run="r", issue="i", namespace="n", agent="bot",
        conversation="talk", source="import:crm",
    )  # fmt: skip
    found = memory.get(str(added.message_ids[0]))
    assert found.text == "  Spaces, \n lines and 🦆 stay.  "
    assert (found.sender, found.role, found.external_id, found.source) == ("Zoë", "assistant", "their-1", "import:crm")
    assert found.said_at == datetime(2026, 3, 1, 8, tzinfo=UTC)
    assert repr(found.metadata) == repr(memory.search("lines")[0].metadata) == repr(NOTED)
    about = memory.remember("Ana is calm.", subject="ana", metadata=NOTED)
    assert repr(about.metadata) == repr(memory.get(about.id).metadata) == repr(NOTED)
    assert found.scope == Scope(
        subject="ana", app="mail", project="p", channel="ch", run="r", issue="i", namespace="n", agent="bot",
        conversation="talk",
    )  # fmt: skip


def test_a_draft_and_a_dictionary_say_the_same(memory: Memory) -> None:
    as_draft = memory.add(Draft("Same.", sender="Ana", role=Role.TOOL), conversation="a")
    as_dict = memory.add({"text": "Same.", "sender": "Ana", "role": "tool"}, conversation="b")
    first, second = (memory.get(str(added.message_ids[0])) for added in (as_draft, as_dict))
    assert (first.text, first.sender, first.role) == (second.text, second.sender, second.role)


def test_who_speaks_as_the_user_unnamed_is_the_subject(memory: Memory) -> None:
    added = memory.add(["Mine.", {"text": "Theirs.", "role": "assistant"}], subject="ana")
    assert [memory.get(str(found)).sender for found in added.message_ids] == ["ana", None]


def test_positions_count_on_through_a_conversation_and_apart_from_others(memory: Memory) -> None:
    first = memory.add(["0", "1"], conversation="a")
    memory.add("0", conversation="b")
    second = memory.add("2", conversation="a")
    positions = [memory.get(str(found)).position for found in (*first.message_ids, *second.message_ids)]
    assert positions == [0, 1, 2]


# --- retries --------------------------------------------------------------------------------------------------------


def test_the_same_key_again_answers_with_the_same_ids(memory: Memory) -> None:
    first = memory.add(["One.", "Two."], idempotency_key="k", subject="ana")
    again = memory.add(["One.", "Two."], idempotency_key="k", subject="ana")
    assert (again.message_ids, again.turn_id, again.stored, again.replayed) == (
        first.message_ids, first.turn_id, 0, True,
    )  # fmt: skip
    assert memory.stats().messages == 2


def test_the_same_message_id_again_is_the_same_message(memory: Memory) -> None:
    first = memory.add({"text": "Once.", "id": "a"})
    again = memory.add([{"text": "Once.", "id": "a"}, "New."])
    assert again.message_ids[0] == first.message_ids[0]
    assert (again.stored, [skipped.index for skipped in again.skipped]) == (1, [0])
    assert again.skipped[0].reason.startswith("known")


def test_equal_content_is_one_message_only_with_a_time_of_its_own(memory: Memory) -> None:
    at = {"text": "Good morning.", "timestamp": "2026-03-01T08:00:00Z"}
    assert [memory.add(at).stored, memory.add(at).stored] == [1, 0]
    assert memory.add({**at, "sender": "Zoe"}).stored == 1
    assert memory.add({**at, "timestamp": "2026-03-02T08:00:00Z"}).stored == 1
    assert memory.add(at, conversation="other").stored == 1
    assert [memory.add("Good morning.").stored, memory.add("Good morning.").stored] == [1, 1]


def test_the_same_key_again_answers_with_the_memory_as_it_is_now(memory: Memory) -> None:
    first = memory.remember("Ana is 30.", subject="ana", idempotency_key="k")
    memory.correct(first.id, "Ana is 31.", subject="ana")
    again = memory.remember("Ana is 30.", subject="ana", idempotency_key="k")
    assert (again.id, again.text) == (first.id, "Ana is 31.")
    assert memory.stats(subject="ana").memories == 1


def test_a_key_whose_memory_was_forgotten_brings_nothing_back(memory: Memory) -> None:
    first = memory.remember("Ana is 30.", idempotency_key="k")
    memory.forget(first.id)
    with pytest.raises(NotFound, match="forgotten"):
        memory.remember("Ana is 30.", idempotency_key="k")
    assert memory.stats().memories == 0


# --- flush ----------------------------------------------------------------------------------------------------------


def test_flush_seals_what_was_said_since_the_last_time(memory: Memory) -> None:
    memory.add(["One.", "Two."], conversation="a")
    memory.add("Elsewhere.", conversation="b")
    assert memory.flush(conversation="a").messages == 2
    assert memory.flush(conversation="a").messages == 0
    memory.add("Three.", conversation="a")
    flushed = memory.flush(conversation="a")
    assert (flushed.messages, flushed.conversation, len(flushed.jobs)) == (1, "a", 1)


def test_flush_of_a_conversation_that_does_not_exist_seals_nothing(memory: Memory) -> None:
    flushed = memory.flush(conversation="nowhere")
    assert (flushed.messages, flushed.jobs) == (0, ())
    assert jobs_of(memory) == []


# --- remember and correct -------------------------------------------------------------------------------------------


def test_a_memory_keeps_all_that_it_was_given(memory: Memory) -> None:
    said = memory.add("I turn 30 in May.", subject="ana", app="mail").message_ids[0]
    made = memory.remember(
        "Ana turns 30.", plane="episode", evidence=[str(said)], valid_from="2026-01-01", valid_until="2027-01-01",
        metadata={"by": "hand"}, subject="ana", app="mail",
    )  # fmt: skip
    found = memory.get(made.id)
    assert found == made
    assert (found.text, found.plane, found.revision, found.trust) == (
        "Ana turns 30.",
        "episode",
        1,
        Trust.STATED,
    )
    assert [link.message_id for link in found.evidence] == [said]
    assert (found.validity.since, found.validity.until) == (
        datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    assert (found.metadata, found.scope) == ({"by": "hand"}, Scope(subject="ana", app="mail"))
    assert found.author.startswith("operator:")


def test_what_comes_from_a_source_is_trusted_less_than_what_is_stated(memory: Memory) -> None:
    assert memory.remember("Found on a page.", source="web").trust is Trust.LOW
    assert memory.remember("Stated.").trust is Trust.STATED


def test_evidence_that_does_not_exist_makes_no_memory(memory: Memory) -> None:
    with pytest.raises(NotFound, match="evidence"):
        memory.remember("Rests on nothing.", evidence=["msg_" + "0" * 32])
    made = memory.remember("A memory is no evidence.")
    with pytest.raises(NotFound, match="evidence"):
        memory.remember("Rests on a memory.", evidence=[made.id])
    assert memory.stats().memories == 1


def test_a_correction_supersedes_and_keeps_place_plane_and_evidence(timed: Memory, clock: SteppingClock) -> None:
    said = str(timed.add("My flight is on 3 May.", subject="ana").message_ids[0])
    first = timed.remember("Ana flies on 3 May.", subject="ana", plane="episode", evidence=said, metadata={"a": "b"})
    before = clock.advance(hours=1)
    second = timed.correct(first.id, "Ana flies on 5 May.", reason="rebooked")
    assert (second.id, second.revision, second.text, second.reason) == (first.id, 2, "Ana flies on 5 May.", "rebooked")
    assert (second.plane, second.scope, second.metadata) == (first.plane, first.scope, first.metadata)
    assert second.evidence == first.evidence
    assert timed.get(first.id).text == "Ana flies on 5 May."
    assert timed.get(first.id, as_of=before).text == "Ana flies on 3 May."
    assert [hit.text for hit in timed.search("when does Ana fly", kind="memory")] == ["Ana flies on 5 May."]
    assert [hit.text for hit in timed.search("when does Ana fly", kind="memory", as_of=before)] == [
        "Ana flies on 3 May."
    ]
    assert [revision.text for revision in timed.history(first.id)] == ["Ana flies on 3 May.", "Ana flies on 5 May."]
    assert timed.history(first.id)[0].superseded_at == second.recorded_at


def test_a_correction_of_something_that_was_changed_meanwhile_is_refused(memory: Memory) -> None:
    made = memory.remember("One.")
    memory.correct(made.id, "Two.", expected_revision=1)
    with pytest.raises(RevisionConflict, match="revision 2"):
        memory.correct(made.id, "Three.", expected_revision=1)
    assert memory.get(made.id).text == "Two."


def test_a_correction_can_change_when_it_was_true_and_what_it_rests_on(memory: Memory) -> None:
    said = str(memory.add("It was in May.").message_ids[0])
    made = memory.remember("It was in June.", valid_from="2026-06-01")
    corrected = memory.correct(made.id, "It was in May.", valid_from="2026-05-01", evidence=[said])
    assert corrected.validity.since == datetime(2026, 5, 1, tzinfo=UTC)
    assert [link.message_id for link in corrected.evidence] == [said]
    assert memory.correct(made.id, "In May it was.", evidence=()).evidence == ()


def test_a_memory_takes_the_place_of_a_message_that_is_corrected(timed: Memory, clock: SteppingClock) -> None:
    added = timed.add(
        {"text": "The code is 1234.", "metadata": {"k": "v"}}, subject="ana", conversation="c", idempotency_key="a"
    )
    said = str(added.message_ids[0])
    before = clock.advance(hours=1)
    clock.advance(hours=1)
    made = timed.correct(said, "The code is 4321.", subject="ana", reason="a slip")
    assert (made.text, made.plane, made.revision, made.reason) == ("The code is 4321.", "long_term", 1, "a slip")
    assert (made.scope, made.metadata, made.trust) == (timed.get(said).scope, {}, Trust.STATED)
    assert [link.message_id for link in made.evidence] == [said]
    assert [hit.id for hit in timed.search("code", subject="ana")] == [made.id]
    assert [hit.id for hit in timed.search("code", subject="ana", as_of=before)] == [said]
    assert [record.id for record in timed.list(subject="ana").items] == [made.id]
    assert [record.id for record in timed.list(subject="ana", as_of=before).items] == [said]
    kept = timed.get(said)
    assert (kept.text, kept.superseded_at) == ("The code is 1234.", made.recorded_at)
    assert timed.get(said, as_of=before).text == timed.get(said, as_of=clock.now()).text == kept.text
    assert timed.correct(made.id, "The code is 5555.").revision == 2
    assert timed.verify().ok


def test_a_message_is_corrected_at_its_only_revision(memory: Memory) -> None:
    said = str(memory.add("One.", subject="ana").message_ids[0])
    with pytest.raises(RevisionConflict, match="is at revision 1, not 2"):
        memory.correct(said, "Two.", subject="ana", expected_revision=2)
    assert memory.correct(said, "Two.", subject="ana", expected_revision=1).text == "Two."


def test_a_message_is_corrected_once_and_then_its_memory(memory: Memory) -> None:
    said = str(memory.add("One.", subject="ana").message_ids[0])
    made = memory.correct(said, "Two.", subject="ana", idempotency_key="k")
    assert memory.correct(said, "Two.", subject="ana", idempotency_key="k") == made
    with pytest.raises(RevisionConflict, match="correct the memory that replaced it"):
        memory.correct(said, "Three.", subject="ana")
    with pytest.raises(RevisionConflict, match="correct the memory that replaced it"):
        memory.correct(said, "Three.", subject="ana", expected_revision=1)
    for where in ({"subject": "bob"}, {"space": "there"}):
        with pytest.raises(NotFound):
            memory.correct(said, "Three.", **where)


def test_what_was_corrected_is_not_learned_from_and_goes_with_what_took_its_place(memory: Memory) -> None:
    said = str(memory.add("I live in Porto.", subject="ana", conversation="c").message_ids[0])
    made = memory.correct(said, "Ana lives in Lisbon.", subject="ana")
    assert memory.flush(subject="ana", conversation="c").messages == 0
    memory.drain()
    assert [record.id for record in memory.list(subject="ana").items] == [made.id]
    receipt = memory.forget(said, subject="ana")
    assert (receipt.messages, receipt.memories) == (1, 1)
    assert memory.list(subject="ana").items == ()


def test_forgetting_what_took_the_place_of_a_message_leaves_nothing_hidden(memory: Memory) -> None:
    said = str(memory.add("The code is 1234.", subject="ana", conversation="c").message_ids[0])
    learned = memory.remember("Ana has a code.", subject="ana", evidence=[said])
    made = memory.correct(said, "The code is 4321.", subject="ana")
    assert memory.forget_preview(learned.id, subject="ana").messages == 0
    memory.forget(learned.id, subject="ana")
    assert memory.get(said, subject="ana").text == "The code is 1234."
    memory.correct(made.id, "The code is 5555.", subject="ana", evidence=())
    preview = memory.forget_preview(made.id, subject="ana")
    assert (preview.messages, preview.memories, set(preview.ids)) == (1, 1, {said, made.id})
    receipt = memory.forget(made.id, subject="ana", token=preview.token)
    assert (receipt.messages, receipt.memories, receipt.revisions, receipt.remaining) == (1, 1, 2, 0)
    for gone in (said, made.id):
        for look in (memory.get, memory.history):
            with pytest.raises(NotFound):
                look(gone, subject="ana")
    assert memory.list(subject="ana").items == ()
    assert memory.search("code", subject="ana") == ()
    with pytest.raises(NotFound):
        memory.correct(said, "The code is 1.", subject="ana")
    assert memory.verify().ok


def test_what_was_said_before_a_correction_is_in_the_history_of_either(memory: Memory) -> None:
    said = str(memory.add("One.", subject="ana").message_ids[0])
    assert [record.text for record in memory.history(said, subject="ana")] == ["One."]
    made = memory.correct(said, "Two.", subject="ana")
    memory.correct(made.id, "Three.", subject="ana", evidence=())
    learned = memory.remember("Ana counts.", subject="ana", evidence=[said])
    for either in (said, made.id):
        shown = memory.history(either, subject="ana")
        assert [(record.id, record.text) for record in shown] == [
            (said, "One."),
            (made.id, "Two."),
            (made.id, "Three."),
        ]
        with pytest.raises(NotFound):
            memory.history(either, subject="bob")
    assert [record.text for record in memory.history(learned.id, subject="ana")] == ["Ana counts."]


def test_what_is_corrected_while_its_extraction_waits_is_not_learned_from(memory: Memory) -> None:
    said = str(memory.add("I live in Porto.", subject="ana", conversation="c").message_ids[0])
    memory.flush(subject="ana", conversation="c")
    made = memory.correct(said, "Ana lives in Lisbon.", subject="ana")
    memory.drain()
    assert [record.id for record in memory.list(subject="ana").items] == [made.id]


def test_a_revision_is_later_than_the_one_it_replaces_even_if_the_clock_went_back(tmp_path: Path) -> None:
    clock = SteppingClock()
    with holdfast.open(tmp_path / "m.db", embedder="fake", work=False, clock=clock) as memory:
        first = memory.remember("One.")
        clock.advance(hours=-24)
        second = memory.correct(first.id, "Two.")
        assert second.recorded_at > first.recorded_at
        assert memory.get(first.id).text == "Two."
        assert memory.verify().ok


# --- concurrency ----------------------------------------------------------------------------------------------------


def test_the_same_key_from_many_threads_has_one_effect(memory: Memory) -> None:
    with ThreadPoolExecutor(16) as threads:
        added = list(threads.map(lambda _: memory.add("Once.", idempotency_key="k"), range(48)))
        made = list(threads.map(lambda _: memory.remember("Once.", idempotency_key="m"), range(48)))
    assert len({answer.message_ids for answer in added}) == 1
    assert sum(answer.stored for answer in added) == 1
    assert len({memory_made.id for memory_made in made}) == 1
    assert (memory.stats().messages, memory.stats().memories) == (1, 1)


def test_no_update_is_lost_between_many_threads(memory: Memory) -> None:
    counter = memory.remember("0").id

    def count_up(_: int) -> None:
        while True:
            now = memory.get(counter)
            try:
                memory.correct(counter, str(int(now.text) + 1), expected_revision=now.revision)
            except RevisionConflict:
                continue
            return

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(count_up, range(32)))
    assert memory.get(counter).text == "32"
    assert [revision.text for revision in memory.history(counter)] == [str(number) for number in range(33)]


def test_a_call_that_was_cancelled_did_all_or_nothing_and_can_be_made_again(tmp_path: Path) -> None:
    async def cancelling() -> tuple[int, bool]:
        async with holdfast.open_async(tmp_path / "m.db", embedder="fake", work=False) as memory:
            for number in range(60):
                adding = asyncio.create_task(memory.add(f"Message {number}.", idempotency_key=f"k{number}"))
                for _ in range(number % 6):
                    await asyncio.sleep(0)
                adding.cancel()
                await asyncio.gather(adding, return_exceptions=True)
            for number in range(60):
                await memory.add(f"Message {number}.", idempotency_key=f"k{number}")
            return (await memory.stats()).messages, (await memory.verify()).ok

    assert asyncio.run(cancelling()) == (60, True)
