"""`forget`: what the preview shows is deleted, with all that rests on it, and nothing brings it back."""

from __future__ import annotations

from pathlib import Path

import pytest

import holdfast
from holdfast import Memory
from holdfast.errors import InvalidInput, InvalidScope, NotFound, PreviewOutdated, RevisionConflict
from holdfast.search.embedders.fake import FakeEmbedder
from holdfast.testing.full_repr import full_repr
from probes import SteppingClock, jobs_of, trail_of


@pytest.fixture
def known(memory: Memory) -> dict[str, str]:
    """Two messages, a memory with only the first as evidence, and one with both."""
    first, second = memory.add(
        ["I moved to Lisbon.", "I work at the port."], subject="ana", conversation="talk"
    ).message_ids
    alone = memory.remember("Ana lives in Lisbon.", evidence=[str(first)], subject="ana")
    both = memory.remember("Ana works in Lisbon.", evidence=[str(first), str(second)], subject="ana")
    return {"first": str(first), "second": str(second), "alone": alone.id, "both": both.id}


def texts(memory: Memory) -> set[str]:
    return {record.text for record in memory.list().items}


def test_a_preview_says_what_would_go_and_changes_nothing(memory: Memory, known: dict[str, str]) -> None:
    preview = memory.forget_preview(known["first"], subject="ana")
    assert (preview.messages, preview.memories, preview.derived, preview.weakened) == (1, 1, 1, 1)
    assert set(preview.ids) == {known["first"], known["alone"]}
    assert not preview.truncated
    assert not preview.empty
    assert len(texts(memory)) == 4


def test_a_forget_may_be_meant_for_one_revision(memory: Memory, known: dict[str, str]) -> None:
    memory.correct(known["alone"], "Ana lives in Porto.", subject="ana")
    with pytest.raises(RevisionConflict, match="is at revision 2, not 1"):
        memory.forget(known["alone"], subject="ana", expected_revision=1)
    with pytest.raises(InvalidInput, match="expected_revision"):
        memory.forget([known["first"], known["alone"]], subject="ana", expected_revision=1)
    assert len(texts(memory)) == 4
    assert memory.forget(known["alone"], subject="ana", expected_revision=2).memories == 1
    assert memory.forget(known["second"], subject="ana", expected_revision=1).messages == 1


def test_a_forgotten_message_takes_what_rests_on_it_alone_and_weakens_the_rest(
    memory: Memory, known: dict[str, str]
) -> None:
    preview = memory.forget_preview(known["first"], subject="ana")
    receipt = memory.forget(known["first"], subject="ana", token=preview.token)
    assert (receipt.messages, receipt.memories, receipt.remaining) == (preview.messages, preview.memories, 0)
    assert texts(memory) == {"I work at the port.", "Ana works in Lisbon."}
    assert [link.message_id for link in memory.get(known["both"]).evidence] == [known["second"]]
    assert memory.verify().ok


def test_nothing_of_it_is_found_any_more(memory: Memory, known: dict[str, str]) -> None:
    memory.search("Lisbon")  # fills the cache
    memory.forget(known["first"], subject="ana")
    for gone in (known["first"], known["alone"]):
        for look in (memory.get, memory.history, memory.forget_preview, memory.forget):
            with pytest.raises(NotFound):
                look(gone)
    shown = [memory.search("I moved to Lisbon"), memory.recall("I moved to Lisbon"), memory.list(), memory.stats()]
    assert "I moved" not in full_repr(shown)
    assert known["first"] not in full_repr(shown)


def test_as_of_does_not_bring_it_back(timed: Memory, clock: SteppingClock) -> None:
    said = str(timed.add("I moved to Lisbon.").message_ids[0])
    made = timed.remember("Lives in Lisbon.", evidence=said)
    timed.correct(made.id, "Lives in Lisbon, by the river.")
    then = clock.advance(hours=1)
    receipt = timed.forget(said)
    assert (receipt.messages, receipt.memories, receipt.revisions) == (1, 1, 2)
    assert timed.search("Lisbon", as_of=then) == ()
    assert timed.list(as_of=then).items == ()
    for gone in (said, made.id):
        with pytest.raises(NotFound):
            timed.get(gone, as_of=then)


def test_no_byte_of_it_is_left_in_the_files(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    secret = "xylophonic-quokka-parade"
    with holdfast.open(path, embedder="fake", work=False) as memory:
        memory.add([f"Before: {secret}.", "Something else."], subject="ana")
        made = memory.remember(f"Known: {secret}.", subject="ana", metadata={"note": secret}, source=f"src-{secret}")
        memory.correct(made.id, f"Corrected: {secret}.", reason=f"because {secret}")
        memory.search(secret)
        receipt = memory.forget(subject="ana")
        assert receipt.scrubbed
        held = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert secret.encode() not in held
    assert secret.encode() not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_a_forget_of_something_that_changed_since_its_preview_is_refused(memory: Memory, known: dict[str, str]) -> None:
    preview = memory.forget_preview(subject="ana")
    memory.add("Something new.", subject="ana")
    for token in (preview.token, "0" * 32, "none at all"):
        with pytest.raises(PreviewOutdated, match="of no preview") as refused:
            memory.forget(subject="ana", token=token)
        assert "changed" not in str(refused.value)
    assert len(texts(memory)) == 5
    again = memory.forget_preview(subject="ana")
    assert memory.forget(subject="ana", token=again.token).messages == 3


def test_a_source_goes_whole_and_alone(memory: Memory) -> None:
    memory.add("From the crm.", source="import:crm", subject="ana")
    memory.remember("From the crm too.", source="import:crm", subject="bob")
    memory.add("From elsewhere.", source="import:other", subject="ana")
    receipt = memory.forget(source="import:crm")
    assert (receipt.messages, receipt.memories) == (1, 1)
    assert texts(memory) == {"From elsewhere."}


def test_a_source_can_be_narrowed_to_a_subject(memory: Memory) -> None:
    for subject in ("ana", "bob"):
        memory.add(f"{subject} from the crm.", source="import:crm", subject=subject)
    memory.forget(source="import:crm", subject="ana")
    assert texts(memory) == {"bob from the crm."}


def test_a_conversation_goes_with_what_was_learned_from_it(memory: Memory, known: dict[str, str]) -> None:
    memory.add("Elsewhere.", subject="ana", conversation="other")
    receipt = memory.forget(conversation="talk", subject="ana")
    assert (receipt.messages, receipt.memories) == (2, 2)
    assert texts(memory) == {"Elsewhere."}


def test_some_ids_go_together_or_not_at_all(memory: Memory, known: dict[str, str]) -> None:
    with pytest.raises(NotFound, match="nothing was forgotten"):
        memory.forget([known["first"], "msg_nowhere"])
    assert len(texts(memory)) == 4
    receipt = memory.forget([known["first"], known["second"], known["first"]])
    assert (receipt.messages, receipt.memories) == (2, 2)


def test_a_forgotten_message_is_not_brought_back_by_its_id(memory: Memory) -> None:
    message = {"text": "Once.", "id": "a"}
    said = memory.add(message).message_ids[0]
    memory.forget(str(said))
    again = memory.add([message, "Another."])
    assert (again.stored, again.message_ids[0]) == (1, None)
    assert again.skipped[0].reason.startswith("forgotten")
    assert texts(memory) == {"Another."}


def test_forgetting_what_is_not_there_forgets_nothing_and_says_so(memory: Memory) -> None:
    assert memory.forget_preview(subject="nobody").empty
    receipt = memory.forget(subject="nobody")
    assert (receipt.messages, receipt.memories, receipt.tombstones) == (0, 0, 0)


def test_whether_there_was_anything_to_forget_can_be_asked(memory: Memory, known: dict[str, str]) -> None:
    assert memory.forget(conversation="talk", subject="ana", idempotency_key="k").found
    assert not memory.forget(conversation="talk", subject="ana").found
    # A replay reports the result of the first call.
    assert memory.forget(conversation="talk", subject="ana", idempotency_key="k").found
    assert not memory.forget(source="import:nothing").found
    memory.add_resource("A page.", name="page.txt", subject="eve")
    assert memory.forget(subject="eve").found


@pytest.mark.parametrize("verb", ["forget", "forget_preview"])
def test_a_conversation_that_only_others_have_is_not_forgotten_by_its_name(
    memory: Memory, known: dict[str, str], verb: str
) -> None:
    forget = getattr(memory, verb)
    with pytest.raises(InvalidScope, match=r"'(talk|…)' belongs to one subject, `ana`: name it; nothing was") as one:
        forget(conversation="talk")
    assert one.value.field == "subject"
    with pytest.raises(InvalidScope, match="to one subject"):
        forget(conversation="talk", source="import:crm")
    for name in ("bob", "eve"):
        memory.add("Hello.", subject=name, conversation="talk", app="chat")
    memory.add("Hello.", agent="bot", conversation="talk")
    with pytest.raises(InvalidScope, match="belongs to 3 subjects and 1 agent: name one") as several:
        forget(conversation="talk")
    assert not any(name in str(several.value) for name in ("ana", "bob", "eve", "bot"))
    # The other fields of a scope narrow the count, as they narrow the forget.
    with pytest.raises(InvalidScope, match="belongs to 2 subjects"):
        forget(conversation="talk", app="chat")
    assert forget(conversation="talk", app="mail").messages == 0
    assert forget(conversation="talk", space="away").messages == 0
    assert forget(conversation="nowhere").messages == 0
    assert len(texts(memory)) == 5


def test_a_conversation_that_is_nobodys_is_forgotten_by_its_name_whoever_else_has_one(
    memory: Memory, known: dict[str, str]
) -> None:
    memory.add("Nobody said this.", conversation="talk")
    assert memory.forget(conversation="talk", idempotency_key="k").messages == 1
    assert len(texts(memory)) == 4
    assert memory.forget(conversation="talk", idempotency_key="k").replayed
    memory.add("Nobody said that.", conversation="talk")
    assert not memory.forget(conversation="talk", source="import:crm").found
    assert memory.forget(conversation="talk").messages == 1
    # Only Ana's is left, so a forget without a subject is refused; once hers is gone, it finds nothing.
    with pytest.raises(InvalidScope, match="`ana`"):
        memory.forget(conversation="talk")
    memory.forget(conversation="talk", subject="ana")
    assert not memory.forget(conversation="talk").found


def test_two_targets_at_once_are_refused(memory: Memory, known: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="one target"):
        memory.forget(known["first"], source="import:crm")


def test_a_receipt_names_the_audit_row_of_the_call(memory: Memory, known: dict[str, str]) -> None:
    receipt = memory.forget(known["first"], subject="ana")
    row = trail_of(memory)[-1]
    assert (row.id, row.action, row.record_count) == (receipt.operation_id, "forget", receipt.tombstones)


def test_a_preview_of_very_much_shows_some_ids_and_counts_all(memory: Memory) -> None:
    memory.add([f"Message {number}." for number in range(250)], subject="ana")
    preview = memory.forget_preview(subject="ana")
    assert (preview.messages, len(preview.ids), preview.truncated) == (250, 100, True)
    assert memory.forget(subject="ana", token=preview.token).tombstones == 250


def test_work_that_was_queued_for_a_forgotten_message_does_not_bring_it_back(memory: Memory) -> None:
    said = str(memory.add("I live in Lisbon.", subject="ana").message_ids[0])
    memory.flush(subject="ana")
    memory.forget(said, subject="ana")
    assert all(said not in job.record_ids for job in jobs_of(memory))
    memory.drain()
    assert texts(memory) == set()


# --- learned memories -----------------------------------------------------------------------------------------------


def test_what_was_said_becomes_a_memory_with_its_evidence(memory: Memory) -> None:
    said = str(memory.add("I live in Lisbon.", subject="ana", conversation="talk").message_ids[0])
    flushed = memory.flush(subject="ana", conversation="talk")
    assert len(flushed.jobs) == 1
    assert memory.drain() == 1
    (learned,) = memory.list(kind="memory", subject="ana").items
    assert learned.text == "ana lives in Lisbon."
    assert [(link.message_id, link.text) for link in learned.evidence] == [(said, "I live in Lisbon.")]
    assert learned.author.startswith("extractor:")
    assert learned.scope.conversation is None
    assert learned.trust < holdfast.Trust.STATED


def test_forgetting_the_message_takes_what_was_learned_from_it(memory: Memory) -> None:
    said = str(memory.add("I live in Lisbon.", subject="ana").message_ids[0])
    memory.flush(subject="ana")
    memory.drain()
    assert memory.stats().memories == 1
    receipt = memory.forget(said)
    assert (receipt.messages, receipt.memories) == (1, 1)
    assert texts(memory) == set()


def test_what_is_said_anew_supersedes_what_was_learned(memory: Memory) -> None:
    for city in ("Porto", "Lisbon"):
        memory.add(f"I live in {city}.", subject="ana")
        memory.flush(subject="ana")
        memory.drain()
    (learned,) = memory.list(kind="memory", subject="ana").items
    assert (learned.text, learned.revision) == ("ana lives in Lisbon.", 2)
    assert [revision.text for revision in memory.history(learned.id)] == ["ana lives in Porto.", "ana lives in Lisbon."]


def test_what_an_assistant_says_is_not_learned(memory: Memory) -> None:
    memory.add({"text": "I live in Lisbon.", "role": "assistant"}, subject="ana")
    memory.flush(subject="ana")
    memory.drain()
    assert memory.stats().memories == 0


def test_a_flush_seals_a_conversation_whole_and_learns_from_all_its_runs(memory: Memory) -> None:
    memory.add("I live in Lisbon.", subject="ana", run="r1")
    memory.add("I love figs.", subject="ana", run="r2")
    sealed = [memory.flush(subject="ana", run=run).messages for run in ("r1", "r2")]
    memory.drain()
    assert sealed == [2, 0]
    assert {record.text for record in memory.list(kind="memory").items} == {"ana lives in Lisbon.", "ana loves figs."}


@pytest.mark.parametrize("nothing", [{"record_id": None}, {"source": None}])
def test_a_variable_that_was_never_set_does_not_forget_a_whole_subject(
    memory: Memory, nothing: dict[str, None]
) -> None:
    memory.add("I live in Lisbon.", subject="ana")
    for forget in (memory.forget, memory.forget_preview):
        with pytest.raises(InvalidInput, match="is None; leave it out"):
            forget(**nothing, subject="ana")
    assert memory.stats(subject="ana").messages == 1


def test_what_is_said_after_a_correction_contradicts_it_and_does_not_end_it(memory: Memory) -> None:
    def say(text: str) -> None:
        memory.add(text, subject="ana")
        memory.flush(subject="ana")
        memory.drain()

    say("I live in Lisbon.")
    (learned,) = memory.list(kind="memory", subject="ana").items
    memory.correct(learned.id, "ana lives in Setúbal.", subject="ana")
    say("I live in Faro now.")
    newer, corrected = memory.list(kind="memory", subject="ana").items
    assert (corrected.id, corrected.text, newer.text) == (learned.id, "ana lives in Setúbal.", "ana lives in Faro.")
    assert (newer.contradicts, corrected.contradicts) == ((corrected.id,), (newer.id,))


def test_a_fact_goes_with_the_words_that_its_current_revision_rests_on(memory: Memory) -> None:
    for text in ("I live in Lisbon.", "I live in Porto now."):
        said = memory.add(text, subject="ana").message_ids[0]
        memory.flush(subject="ana")
        memory.drain()
    assert memory.forget_preview(said, subject="ana").derived == 1
    memory.forget(said, subject="ana")
    assert not any("Porto" in hit.text for hit in memory.search("Where does Ana live?", subject="ana"))


def test_an_older_revision_goes_with_its_words_and_history_does_not_bring_it_back(memory: Memory) -> None:
    first = memory.add("I live in Lisbon.", subject="ana").message_ids[0]
    memory.flush(subject="ana")
    memory.drain()
    (learned,) = memory.list(kind="memory", subject="ana").items
    memory.add("I live in Porto now.", subject="ana")
    memory.flush(subject="ana")
    memory.drain()
    memory.forget(first, subject="ana")
    assert [revision.text for revision in memory.history(learned.id)] == ["ana lives in Porto."]
    with pytest.raises(NotFound):
        memory.get(learned.id, as_of=learned.recorded_at)


def test_a_fact_that_was_said_twice_stays_when_one_of_them_is_forgotten(memory: Memory) -> None:
    said = []
    for _ in range(2):
        said += memory.add("I live in Lisbon.", subject="ana").message_ids
        memory.flush(subject="ana")
        memory.drain()
    (learned,) = memory.list(kind="memory", subject="ana").items
    assert [link.message_id for link in learned.evidence] == said
    assert (learned.revision, memory.forget_preview(said[0]).weakened) == (2, 1)
    memory.forget(said[0])
    assert [link.message_id for link in memory.get(learned.id).evidence] == said[1:]


def test_a_place_whose_last_vector_was_forgotten_is_still_searched(tmp_path: Path) -> None:
    """With a remote embedder, the remaining records have no vectors yet."""
    with holdfast.open(tmp_path / "memory.db", embedder=FakeEmbedder(local=False), work=False) as memory:
        added = memory.add("I live in Lisbon.", subject="ana")
        memory.flush(subject="ana")
        assert memory.search("Lisbon", subject="ana")
        memory.add("I live in Porto.", subject="ana")
        memory.forget(str(added.message_ids[0]), subject="ana")
        assert [hit.text for hit in memory.search("Lisbon or Porto", subject="ana")] == ["I live in Porto."]
