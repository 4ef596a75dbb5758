"""Finalizing a delivered turn: its new part, the authority of its messages, and the job that learns from it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest
from conversing import CHAT, REF, Talk, messages_of, talking

from holdfast.domain.access import Action, storewide_grant
from holdfast.domain.identity import MemoryScope
from holdfast.domain.jobs import JobKind
from holdfast.domain.lifecycle import Disposition, ModeInput, Trigger
from holdfast.domain.memory import MemoryRecord
from holdfast.domain.operations import Outcome
from holdfast.domain.redaction import AUTHORITIES
from holdfast.domain.runtime_api.transcripts import CanonicalTurnDelta, TurnMessage, TurnSource
from holdfast.domain.transcript import Message
from holdfast.domain.transcript_turns import PLANES, ActorAttribution, Authority, View
from holdfast.errors import Conflict, HoldfastError, InvalidInput
from holdfast.ports import CurationResult, ModelCallUsage
from holdfast.testing.full_repr import full_repr


@dataclass
class Listening:
    """A curator that proposes nothing and records the texts it gets."""

    name: str = "listening"
    shown: list[list[str]] = field(default_factory=list)
    max_chars: int = 16_384

    async def curate(self, messages: Sequence[Message], known: Sequence[MemoryRecord] = ()) -> CurationResult:
        self.shown.append([message.text for message in messages])
        return CurationResult((), ModelCallUsage(self.name))

    async def close(self) -> None:
        return None


@pytest.fixture
def talk(location: str, runner: asyncio.Runner) -> Iterator[Talk]:
    with talking(location, runner) as opened:
        yield opened


# --- commits ----------------------------------------------------------------------------------------------------------


def test_a_delivered_turn_is_committed_with_its_answer(talk: Talk) -> None:
    report = talk.finalize("t1", ["Where is my bicycle?"], "In the cellar.")
    commit = report.transcript_commit
    assert (commit.committed, commit.sequence, commit.turn_id) == (True, 1, "t1")
    assert (report.session_commit.committed, report.session_commit.skipped_reason) == (True, None)
    assert report.lifecycle_report.trigger is Trigger.POST_REPLY
    assert talk.texts() == ["Where is my bicycle?", "In the cellar."]
    assert "In the cellar." in talk.search("cellar")


def test_a_host_that_sends_its_whole_history_commits_each_message_once(talk: Talk) -> None:
    history: list[str] = []
    for number in range(6):
        history.append(f"Question {number}")
        report = talk.finalize(f"t{number}", history, f"Answer {number}")
        assert report.transcript_commit.sequence == number + 1
        assert len(report.transcript_commit.message_ids) == 2
        history.append(f"Answer {number}")
    assert talk.texts() == history


def test_a_delivery_made_again_is_skipped_with_the_reason(talk: Talk) -> None:
    talk.finalize("t1", ["Hello."], "Hi!")
    for turn_id in ("t1", "another"):
        again = talk.finalize(turn_id, ["Hello."], "Hi!")
        assert again.transcript_commit.skipped_reason == "canonical_turn_delta_already_committed"
        assert (again.transcript_commit.committed, again.transcript_commit.sequence) == (False, 1)
        assert again.maintenance.disposition is Disposition.SKIP
        assert not again.lifecycle_report.changed
    assert talk.texts() == ["Hello.", "Hi!"]


def test_a_turn_made_again_after_others_is_known_by_its_id(talk: Talk) -> None:
    for number in range(3):
        talk.finalize(f"t{number}", [f"Question {number}"], f"Answer {number}")
    again = talk.finalize("t0", ["Question 0"], "Answer 0")
    assert (again.transcript_commit.committed, again.transcript_commit.sequence) == (False, 1)
    assert len(talk.texts()) == 6


@pytest.mark.parametrize("status", ["user_only", "upstream_failed", "cancelled"])
def test_a_turn_that_failed_and_is_delivered_later_commits_its_answer_alone(talk: Talk, status: str) -> None:
    failed = talk.finalize("t1", ["Hello."], "Half an ans", status=status)
    assert len(failed.transcript_commit.message_ids) == 1
    talk.finalize("t2", ["Are you there?"], status="user_only")
    delivered = talk.finalize("t1", ["Hello."], "Hi!")
    assert (delivered.transcript_commit.turn_id, delivered.transcript_commit.sequence) == ("t1#part=2", 3)
    for _ in range(2):
        assert not talk.finalize("t1", ["Hello."], "Hi!").transcript_commit.committed
    assert talk.texts() == ["Hello.", "Are you there?", "Hi!"]


@pytest.mark.parametrize("status", ["incomplete_stream", "rejected_by_policy"])
def test_of_what_was_cut_off_or_refused_nothing_is_committed(talk: Talk, status: str) -> None:
    report = talk.finalize("t1", ["Hello."], "Hi!", status=status)
    assert (report.transcript_commit.committed, report.transcript_commit.skipped_reason) == (False, status)
    assert (report.transcript_commit.sequence, report.transcript_commit.after_count) == (None, 0)
    assert talk.texts() == []
    assert talk.finalize("t1", ["Hello."], "Hi!").transcript_commit.committed


def test_other_content_under_the_same_id_is_a_conflict(talk: Talk) -> None:
    talk.finalize("t1", ["Hello."], "Hi!")
    with pytest.raises(Conflict, match="t1"):
        talk.finalize("t1", ["Good bye."], "Hi!")
    assert talk.texts() == ["Hello.", "Hi!"]


@pytest.mark.parametrize("transition", ["mask", "delete_raw"])
def test_a_history_sent_again_does_not_bring_back_what_was_withheld(talk: Talk, transition: str) -> None:
    talk.finalize("t1", ["My PIN is 4711."], "I will not tell.")
    talk.finalize("t2", ["Thanks."], "Welcome.")
    talk.age(transition)
    talk.finalize("t3", ["My PIN is 4711.", "I will not tell.", "Thanks.", "Welcome.", "What now?"], "Nothing.")
    assert talk.texts() == [None, None, None, None, "What now?", "Nothing."]
    assert "4711" not in " ".join(talk.search("PIN 4711"))
    assert not talk.finalize("t1", ["My PIN is 4711."], "I will not tell.").transcript_commit.committed


INNER = TurnMessage("Poor Ana.", "assistant", authority="private_garden_internal")


@pytest.mark.parametrize("answer", [(), (TurnMessage("I will not tell.", "assistant"),)], ids=["alone", "answered"])
def test_a_history_without_its_private_messages_is_not_committed_twice(
    talk: Talk, answer: tuple[TurnMessage, ...]
) -> None:
    """A host does not send what it did not show. A copy would outlive the deletion of the first."""
    secret = TurnMessage("My PIN is 4711.")
    talk.commit("t1", secret, INNER, *answer)
    report = talk.finalize("t2", [secret, *answer, TurnMessage("What now?")], "Nothing.")
    assert len(report.transcript_commit.message_ids) == 2
    talk.age("delete_raw", "t1")
    report = talk.finalize(
        "t3", [secret, *answer, TurnMessage("What now?"), *messages_of(["", "Nothing."])[1:], secret]
    )
    assert len(report.transcript_commit.message_ids) == 1  # said anew
    talk.age("delete_raw", "t3")
    assert "4711" not in full_repr([talk.replay(view) for view in View])
    assert "4711" not in " ".join(talk.search("PIN 4711"))


def test_a_history_is_known_through_any_amount_of_tool_output(talk: Talk) -> None:
    for turn in ("one", "two"):
        results = tuple(f"{turn} {number}" for number in range(60))
        talk.finalize(turn, [f"Look for {turn}."], f"Found {turn}.", tool_observations=results)
    history = ["Look for one.", "Found one.", "Look for two.", "Found two.", "Thanks."]
    assert len(talk.finalize("three", history, "Welcome.").transcript_commit.message_ids) == 2


def test_a_message_that_is_known_by_its_id_is_not_committed_again(talk: Talk) -> None:
    talk.finalize("t1", [TurnMessage("Hello.", message_id="m1")], "Hi!")
    talk.finalize("t2", [TurnMessage("Hello.", message_id="m1"), TurnMessage("News.", message_id="m2")])
    assert talk.texts() == ["Hello.", "Hi!", "News."]


def test_tools_speak_between_question_and_answer_and_external_content_is_noted(talk: Talk) -> None:
    talk.finalize("t1", ["Weather?"], "Sunny.", tool_observations=("22 degrees",))
    talk.finalize("t2", ["News?"], "None.", tool_observations=("<html>",), external_content_used=True)
    found = [message for turn in talk.replay().slice.turns for message in turn.messages]
    assert [(message.text, message.authority) for message in found] == [
        ("Weather?", Authority.USER_ASSERTED),
        ("22 degrees", Authority.OPERATOR_DIAGNOSTIC),
        ("Sunny.", Authority.ASSISTANT_UTTERANCE),
        ("News?", Authority.USER_ASSERTED),
        ("<html>", Authority.OPERATOR_DIAGNOSTIC),
        ("None.", Authority.ASSISTANT_UTTERANCE),
    ]
    notes = [talk.run(talk.memory.get(message.id)).metadata for message in found]
    assert [note.get("source.external_content_used") for note in notes] == [None] * 3 + [True] * 3


LABELS = [None, *Authority]
TRACE = "Traceback: key 4711 in config.py"


@pytest.mark.parametrize("role", ["tool", "system", "observation"])
def test_operator_output_is_shown_only_if_the_host_labels_it(talk: Talk, role: str) -> None:
    """Unlabelled, it is in the raw view alone; labelled, it is shown as its label says."""
    spoken = "tool" if role == "observation" else role
    traces = tuple(TurnMessage(f"{TRACE} {label}", spoken, authority=label) for label in LABELS)
    if role == "observation":
        talk.finalize("t1", ["Where is my bicycle?"], "In the cellar.", tool_observations=traces)
    else:
        talk.finalize("t1", [TurnMessage("Where is my bicycle?"), *traces], "In the cellar.")
    shown = {view: talk.texts(view) for view in View}
    found = [hit.text for hit in talk.run(talk.memory.search("Traceback key 4711", top_k=50))]
    for label, trace in zip(LABELS, traces, strict=True):
        ground = Authority.OPERATOR_DIAGNOSTIC if label in (None, Authority.LEGACY_TRANSCRIPT) else label
        expected = [view for view in View if AUTHORITIES[ground][view] is None]
        assert [view for view in View if trace.text in shown[view]] == expected, label
        assert (trace.text in found) is (label is not None and label not in PLANES), label


@pytest.mark.parametrize("role", ["tool", "system"])
def test_operator_output_that_plain_add_stored_is_not_shown_either(talk: Talk, role: str) -> None:
    talk.run(talk.memory.add([{"role": role, "content": TRACE}], conversation="c1"))
    assert [view for view in View if TRACE in talk.texts(view)] == [View.RAW_OWNER_ONLY]


@pytest.mark.parametrize("label", ["runtime_observation", "operator_diagnostic"])
def test_a_turn_of_an_earlier_version_is_known_when_it_is_committed_again(talk: Talk, label: str) -> None:
    """Earlier versions gave `runtime_observation` to unlabelled output."""
    talk.commit("t1", TurnMessage(TRACE, "tool", authority=label))
    assert not talk.commit("t1", TurnMessage(TRACE, "tool")).committed
    with pytest.raises(Conflict):
        talk.commit("t1", TurnMessage(TRACE, "tool", authority="world_observation"))


def test_a_turn_keeps_what_it_came_through_and_who_took_part(talk: Talk) -> None:
    source = TurnSource(ingress="web", provider="acme", protocol="open_ai_chat", model_resolved="large-2")
    actor = ActorAttribution(speaker_id="ana-phone", agent_id="helper")
    talk.finalize("t1", ["Hello."], "Hi!", source=source, subject="ana", actor=actor, host_refs=(REF,))
    (turn,) = talk.replay().slice.turns
    assert turn.attribution == replace(actor, subject_id="ana")
    assert [shown.ref for shown in turn.host_refs] == [REF]
    found = talk.run(talk.memory.get(turn.messages[1].id))
    assert found.metadata["source.model_resolved"] == "large-2"
    assert found.sender == "helper"


def test_many_deliveries_at_once_leave_no_gap_and_no_duplicate(talk: Talk) -> None:
    async def deliver(number: int) -> bool:
        delta = CanonicalTurnDelta(
            f"t{number % 10}", "delivered", (TurnMessage(f"Question {number % 10}"),), f"Answer {number % 10}", CHAT
        )
        return (await talk.operations.finalize_turn_and_maintain(delta)).transcript_commit.committed

    async def all_at_once() -> list[bool]:
        return await asyncio.gather(*map(deliver, range(30)))

    assert sum(talk.run(all_at_once())) == 10
    assert talk.sequences() == list(range(1, 11))
    assert sorted(filter(None, talk.texts())) == sorted(
        text for number in range(10) for text in (f"Question {number}", f"Answer {number}")
    )


def test_what_turns_out_new_at_the_last_moment_is_searchable_all_the_same(talk: Talk) -> None:
    """The tail is forgotten between its read and the commit: messages that seemed known are new after all."""
    talk.finalize("t1", ["I live in Porto."], "Nice.")
    store = talk.engine._core.store
    whole = store.read

    async def read_then_forget(grant, work):  # type: ignore[no-untyped-def]
        found = await whole(grant, work)
        store.read = whole  # type: ignore[method-assign]
        await talk.memory.forget(conversation="c1")
        return found

    store.read = read_then_forget  # type: ignore[method-assign]
    report = talk.finalize("t2", ["I live in Porto.", "Nice.", "Where do I live?"], "In Porto.")
    assert len(report.transcript_commit.message_ids) == 4
    talk.run(talk.memory.drain())
    assert talk.run(talk.memory.stats()).pending_vectors == 0
    assert "I live in Porto." in talk.search("Porto")


# --- maintenance ------------------------------------------------------------------------------------------------------


def test_without_a_model_rules_learn_from_the_words_of_the_user(talk: Talk) -> None:
    told = (
        TurnMessage("I live in Porto."),
        TurnMessage("My name is Ben.", authority="external_content"),
        TurnMessage("I have a dog.", role="tool"),
    )
    report = talk.finalize("t1", told, "I live in Rome.", candidate_ids=("k1",))
    assert (report.maintenance.disposition, report.maintenance.reason) == (Disposition.EXECUTE_NOW, "learns_by_rules")
    jobs = talk.run(talk.engine._core.store.read(storewide_grant(), lambda reader: reader.jobs.newest()))
    (job,) = [job for job in jobs if job.kind is JobKind.EXTRACT]
    assert (job.id, job.record_ids) == (report.maintenance.job_id, report.transcript_commit.message_ids[:1])
    talk.run(talk.memory.drain())
    page = talk.run(talk.memory.list(kind="memory", subject="ana"))
    assert ["Porto" in each.text for each in page] == [True]
    assert (report.private_garden_self_work.performed, report.private_garden_self_work.reason) == (
        False,
        "no_private_garden_work_is_built",
    )
    assert (report.semantic_governance.candidate_ids, report.semantic_governance.verdicts) == (("k1",), ())
    assert report.semantic_governance.reason


def test_a_turn_without_words_of_the_user_teaches_rules_nothing(talk: Talk) -> None:
    report = talk.finalize("t1", (TurnMessage("I live in Porto.", authority="external_content"),), "I live in Rome.")
    assert (report.maintenance.disposition, report.maintenance.reason) == (Disposition.SKIP, "nothing_to_learn_from")
    assert report.maintenance.job_id is None


def test_with_a_model_the_turn_is_queued_to_be_learned_from(location: str, runner: asyncio.Runner) -> None:
    with talking(location, runner, curator=Listening()) as talk:
        report = talk.finalize("t1", ["Hello."], "Hi!")
        assert report.maintenance.disposition is Disposition.EXECUTE_NOW
        jobs = talk.run(talk.engine._core.store.read(storewide_grant(), lambda reader: reader.jobs.newest()))
        (job,) = [job for job in jobs if job.kind is JobKind.MAINTAIN]
        assert job.id == report.maintenance.job_id
        assert job.record_ids == report.transcript_commit.message_ids
        again = talk.finalize("t1", ["Hello."], "Hi!")
        assert again.maintenance.disposition is Disposition.SKIP


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"pressure": "critical"}, "pressure_critical"), ({"mode_input": ModeInput(booting=True)}, "booting")],
)
def test_a_busy_host_is_asked_to_maintain_later(
    location: str, runner: asyncio.Runner, options: dict[str, object], reason: str
) -> None:
    with talking(location, runner, curator=Listening()) as talk:
        maintenance = talk.finalize("t1", ["Hello."], "Hi!", **options).maintenance
        assert (maintenance.disposition, maintenance.reason, maintenance.retry_after_ms) == (
            Disposition.DEFER,
            reason,
            1_000,
        )
        assert maintenance.job_id is None
        assert talk.texts() == ["Hello.", "Hi!"]


# --- refusals ---------------------------------------------------------------------------------------------------------

GOOD = CanonicalTurnDelta("t1", "delivered", (TurnMessage("Hello."),), "Hi!", CHAT)
BAD: dict[str, tuple[CanonicalTurnDelta, str]] = {
    "an empty turn id": (replace(GOOD, turn_id=""), "turn_id"),
    "an unknown status": (replace(GOOD, delivery_status="lost"), "delivery_status"),
    "nothing": (replace(GOOD, input_messages=(), assistant_message=None), "input_messages"),
    "an answer that was not delivered": (
        replace(GOOD, input_messages=(), delivery_status="user_only"),
        "input_messages",
    ),
    "an empty answer": (replace(GOOD, assistant_message=" "), "text"),
    "a number for an answer": (replace(GOOD, assistant_message=7), "assistant_message"),  # type: ignore[arg-type]
    "numbers for messages": (replace(GOOD, input_messages=(7,)), "input_messages"),  # type: ignore[arg-type]
    "one text for the messages": (replace(GOOD, input_messages="Hello."), "input_messages"),  # type: ignore[arg-type]
    "a number for an observation": (replace(GOOD, tool_observations=(7,)), "tool_observations"),  # type: ignore[arg-type]
    "an unknown protocol": (replace(GOOD, source=TurnSource(protocol="smoke")), "source.protocol"),
    "a source of another kind": (replace(GOOD, source="web"), "source"),  # type: ignore[arg-type]
    "a word for a truth": (replace(GOOD, external_content_used="no"), "external_content_used"),  # type: ignore[arg-type]
    "two subjects": (replace(GOOD, subject="ana", actor=ActorAttribution(subject_id="ben")), "subject"),
    "an empty candidate": (replace(GOOD, candidate_ids=("",)), "candidate_ids"),
    "no conversation": (replace(GOOD, conversation=MemoryScope()), "conversation_id"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_delivery_is_refused_by_name_leaves_its_row_and_changes_nothing(talk: Talk, case: str) -> None:
    delta, field_name = BAD[case]
    with pytest.raises(InvalidInput) as refused:
        talk.run(talk.operations.finalize_turn_and_maintain(delta))
    assert refused.value.field.startswith(field_name)
    assert [(row.action, row.outcome) for row in talk.trail()] == [(Action.FINALIZE_TURN, Outcome.REFUSED)]
    assert talk.texts() == []


@pytest.mark.parametrize("options", [{"pressure": "high"}, {"mode_input": {"booting": True}}])
def test_a_bad_mode_is_refused(talk: Talk, options: dict[str, object]) -> None:
    with pytest.raises(HoldfastError, match=r"pressure|mode_input"):
        talk.finalize("t1", ["Hello."], **options)
    assert talk.texts(View.EXPORT) == []
