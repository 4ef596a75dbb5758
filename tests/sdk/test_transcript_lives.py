"""Turn states: archived, restored, masked, raw-deleted, reviewed; effective at once and everywhere, with a report."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from conversing import CHAT, REF, Talk, talking

from holdfast.domain.access import Action, Actor, ActorKind
from holdfast.domain.events import EventKind
from holdfast.domain.identity import MemoryIdentity, MemoryScope
from holdfast.domain.operations import Outcome
from holdfast.domain.runtime_api.transcripts import (
    MemoryTranscriptLifecycleRequest,
    MemoryTranscriptRepairRequest,
)
from holdfast.domain.transcript_turns import View
from holdfast.errors import AccessDenied, InvalidInput, NotFound
from holdfast.testing.full_repr import full_repr

ELSEWHERE = MemoryScope(conversation_id="c2")
SMALL = "esp-embedded-sdk"


@pytest.fixture
def talk(location: str, runner: asyncio.Runner) -> Iterator[Talk]:
    with talking(location, runner) as opened:
        yield opened


def states(talk: Talk) -> list[str]:
    return [str(turn.state) for turn in talk.replay().slice.turns]


# --- transitions ------------------------------------------------------------------------------------------------------


def test_a_masked_turn_is_gone_everywhere_at_once_and_can_be_restored(talk: Talk) -> None:
    message = talk.commit("t1", "The giraffe is called Gina.", "Nice.").message_ids[0]
    talk.commit("t2", "The zebra is called Zoe.")
    report = talk.age("mask", "t1")
    assert (report.changed, report.affected_turns, report.affected_messages) == (True, 1, 2)
    assert report.affected_turn_ids == ("t1",)
    assert report.affected_message_ids[0] == message
    assert all(text is None for view in View for text in talk.texts(view)[:2])
    assert "The giraffe is called Gina." not in talk.search("giraffe Gina")
    with pytest.raises(NotFound):
        talk.run(talk.memory.get(message))
    assert talk.age("restore", "t1").changed
    assert "The giraffe is called Gina." in talk.search("giraffe Gina")
    assert talk.texts()[0] == "The giraffe is called Gina."


def test_an_archived_turn_can_be_read_and_is_not_searched(talk: Talk) -> None:
    message = talk.commit("t1", "The giraffe is called Gina.").message_ids[0]
    assert talk.age("archive").changed
    assert talk.search("giraffe Gina") == []
    assert talk.texts(View.HOST_UI) == ["The giraffe is called Gina."]
    assert talk.texts(View.MODEL_CONTEXT) == [None]
    assert talk.run(talk.memory.get(message)).text == "The giraffe is called Gina."


def test_what_was_deleted_stays_so(talk: Talk) -> None:
    talk.commit("t1", "The giraffe is called Gina.", host_refs=(REF,))
    report = talk.age("delete_raw")
    assert (report.changed, report.scrubbed) == (True, True)
    for transition in ("restore", "archive", "mask"):
        tried = talk.age(transition)
        assert (tried.changed, tried.affected_turns, tried.refused_turns) == (False, 0, 1)
    assert not talk.age("delete_raw").changed
    assert states(talk) == ["raw_deleted"]
    assert talk.texts() == [None]
    assert talk.search("giraffe") == []


def test_deleted_texts_and_labels_are_in_no_byte_of_the_file(tmp_path: Path, runner: asyncio.Runner) -> None:
    with talking(str(tmp_path / "memory.db"), runner) as talk:
        talk.commit("t1", "The giraffe is called Gina-4711.", host_refs=(REF,))
        talk.commit("t2", "The zebra stays.")
        assert talk.age("delete_raw", "t1").scrubbed
        held = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
        assert b"zebra" in held
        assert not [word for word in (b"Gina-4711", b"giraffe", b"complaint") if word in held]


def test_memories_outlive_deleted_evidence_and_the_report_names_them(talk: Talk) -> None:
    commit = talk.commit("t1", "The giraffe is called Gina.")
    kept = talk.run(talk.memory.remember("Gina is a giraffe.", evidence=[commit.message_ids[0]]))
    report = talk.age("delete_raw", "t1")
    (ref,) = report.derived_memory_refs
    assert (ref.store_key, ref.turn_ids, ref.message_ids) == (kept.id, ("t1",), commit.message_ids)
    assert talk.run(talk.memory.get(kept.id)).text == "Gina is a giraffe."
    assert "Gina is a giraffe." in talk.search("giraffe")


def test_a_whole_conversation_moves_and_no_other(talk: Talk) -> None:
    for number in range(5):
        talk.commit(f"t{number}", f"Here {number}")
    talk.commit("t0", "There", where=ELSEWHERE)
    talk.age("mask", "t1")
    talk.age("delete_raw", "t2")
    report = talk.age("archive")
    assert (report.affected_turns, report.refused_turns) == (3, 2)
    assert states(talk) == ["archived", "masked", "raw_deleted", "archived", "archived"]
    assert talk.texts(where=ELSEWHERE) == ["There"]


def test_a_review_looks_and_changes_nothing(talk: Talk) -> None:
    talk.commit("t1", "Hello.", host_refs=(REF,))
    report = talk.age("review")
    assert (report.changed, report.affected_turns, report.affected_turn_ids) == (False, 1, ("t1",))
    assert not report.lifecycle_report.changed
    assert talk.texts() == ["Hello."]


@pytest.mark.parametrize("transition", ["archive", "restore", "mask", "delete_raw", "review"])
def test_where_nothing_matches_nothing_changed(talk: Talk, transition: str) -> None:
    talk.commit("t1", "Hello.")
    for report in (talk.age(transition, "no such turn"), talk.age(transition, where=ELSEWHERE)):
        assert (report.changed, report.affected_turns, report.affected_turn_ids) == (False, 0, ())
        assert (report.lifecycle_report.success, report.lifecycle_report.changed) == (True, False)
    assert states(talk) == ["active"]


def test_where_nothing_moves_nothing_changed(talk: Talk) -> None:
    talk.commit("t1", "Hello.")
    assert not talk.age("restore").changed
    assert talk.age("archive").changed
    assert not talk.age("archive").changed


def test_a_turn_that_add_made_lives_as_others_do(talk: Talk) -> None:
    turn_id = talk.run(talk.memory.add(["Said plainly."], conversation="c1")).turn_id
    assert turn_id is not None
    assert talk.age("mask", turn_id).changed
    assert talk.search("plainly") == []


# --- reports ----------------------------------------------------------------------------------------------------------


def test_the_report_shows_host_references_as_they_may_be_seen_then(talk: Talk) -> None:
    talk.commit("t1", "Hello.", host_refs=(REF,))
    ana = talk.of(MemoryIdentity(subject_id="ana"), Actor(ActorKind.USER, "ana"))
    (seen,) = ana.age("review").affected_host_refs
    assert (seen.turn_id, seen.index, seen.ref) == ("t1", 0, REF)
    report = talk.age("mask")
    assert [each.ref.label for each in report.affected_host_refs] == [None]
    assert [item.host_ref for item in report.host_ref_redactions] == [0]
    assert "complaint" not in full_repr(report)
    assert report.requested_by == "operator:local"


def test_a_profile_clips_lists_and_says_so_and_counts_all(talk: Talk) -> None:
    ids = [talk.commit(f"t{number}", f"Fact {number}").message_ids[0] for number in range(6)]
    for number, message_id in enumerate(ids):
        talk.run(talk.memory.remember(f"Learned {number}.", evidence=[message_id]))
    small = talk.of(MemoryIdentity(subject_id="ana"), profile=SMALL)
    report = small.age("mask")
    assert (report.affected_turns, report.affected_messages, len(report.affected_turn_ids)) == (6, 6, 6)
    assert (len(report.affected_message_ids), len(report.derived_memory_refs)) == (4, 4)
    assert report.profile_budget_applied
    assert all(text is None for text in talk.texts())
    assert not talk.age("restore", "t1").profile_budget_applied


def test_every_request_leaves_one_event_and_one_row(talk: Talk) -> None:
    talk.commit("t1", "The giraffe is called Gina.")
    report = talk.age("delete_raw", "t1", reason="asked by the person")
    (event, *_) = talk.events()
    assert (event.kind, event.id) == (EventKind.OPERATOR, report.lifecycle_report.event_id)
    assert event.details["transition"] == "delete_raw"
    assert (event.details["reason"], event.details["sequence"], event.details["turns"]) == ("asked by the person", 1, 1)
    assert "giraffe" not in full_repr(event)
    row = talk.trail()[-1]
    assert (row.action, row.outcome, row.record_count) == (Action.TRANSCRIPT_LIFECYCLE, Outcome.SUCCEEDED, 1)
    talk.age("review")
    assert len(talk.events()) == 2


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (MemoryTranscriptLifecycleRequest("mask", "", CHAT), "reason"),
        (MemoryTranscriptLifecycleRequest("mask", None, CHAT), "reason"),  # type: ignore[arg-type]
        (MemoryTranscriptLifecycleRequest("mask", "r" * 513, CHAT), "reason"),
        (MemoryTranscriptLifecycleRequest("burn", "why not", CHAT), "transition"),
        (MemoryTranscriptLifecycleRequest("mask", "so", CHAT, ""), "turn_id"),
        (MemoryTranscriptLifecycleRequest("mask", "so", MemoryScope()), "conversation_id"),
    ],
)
def test_a_bad_request_is_refused_by_name_and_changes_nothing(
    talk: Talk, request_: MemoryTranscriptLifecycleRequest, field: str
) -> None:
    talk.commit("t1", "Hello.")
    with pytest.raises(InvalidInput) as refused:
        talk.run(talk.operations.request_transcript_lifecycle(request_))
    assert refused.value.field == field
    row = talk.trail()[-1]
    assert (row.action, row.outcome) == (Action.TRANSCRIPT_LIFECYCLE, Outcome.REFUSED)
    assert (talk.texts(), talk.events()) == (["Hello."], [])


def test_nobody_masks_what_is_not_theirs(talk: Talk) -> None:
    talk.commit("t1", "Hello.")
    with pytest.raises(AccessDenied):
        talk.of(MemoryIdentity(subject_id="ana"), Actor(ActorKind.USER, "ben")).age("mask")
    assert not talk.of(MemoryIdentity(subject_id="ben"), Actor(ActorKind.USER, "ben")).age("mask").changed
    assert talk.texts() == ["Hello."]


# --- repair -----------------------------------------------------------------------------------------------------------


def test_a_whole_transcript_has_no_issues(talk: Talk) -> None:
    commit = talk.commit("t1", "The giraffe is called Gina.")
    talk.run(talk.memory.remember("Gina is a giraffe.", evidence=[commit.message_ids[0]]))
    talk.commit("t2", "More.")
    for transition in ("review", "archive", "mask", "delete_raw"):
        talk.age(transition, "t1")
        report = talk.run(talk.operations.repair_transcript(MemoryTranscriptRepairRequest(CHAT)))
        assert (report.checked_turns, report.checked_derived_refs, report.issues) == (2, 1, ())
        assert not report.fail_closed
    talk.run(talk.memory.forget(conversation="c1"))
    assert talk.run(talk.operations.repair_transcript(MemoryTranscriptRepairRequest(CHAT))).issues == ()


def test_what_is_broken_is_named_and_fails_closed(tmp_path: Path, runner: asyncio.Runner) -> None:
    import sqlite3

    with talking(str(tmp_path / "memory.db"), runner) as talk:
        for number in range(8):
            talk.commit(f"t{number}", "Hello.")
        with sqlite3.connect(tmp_path / "memory.db") as broken:
            broken.execute("UPDATE turns SET state = 'lost' WHERE sequence < 7")
        report = talk.run(talk.operations.repair_transcript(MemoryTranscriptRepairRequest(CHAT)))
        assert report.fail_closed
        assert {issue.kind for issue in report.issues} == {"corrupt_record"}
        small = talk.of(MemoryIdentity(subject_id="ana"), profile=SMALL)
        few = small.run(small.operations.repair_transcript(MemoryTranscriptRepairRequest(CHAT)))
        assert (len(few.issues), few.profile_budget_applied) == (4, True)


def test_only_operators_check_a_transcript(talk: Talk) -> None:
    ana = talk.of(MemoryIdentity(subject_id="ana"), Actor(ActorKind.USER, "ana"))
    with pytest.raises(AccessDenied):
        ana.run(ana.operations.repair_transcript(MemoryTranscriptRepairRequest(CHAT)))
