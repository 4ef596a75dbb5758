"""Committing turns: durable, in order, once, attributed, and searchable."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from conversing import CHAT, REF, Talk, talking

from holdfast.domain.access import Action, Actor, ActorKind
from holdfast.domain.identity import MemoryIdentity, MemoryScope
from holdfast.domain.operations import Outcome
from holdfast.domain.runtime_api.transcripts import (
    MemoryTranscriptCommitRequest,
    TranscriptTurnInput,
    TurnMessage,
)
from holdfast.domain.transcript_turns import ActorAttribution, Authority, ConversationKey, View
from holdfast.errors import (
    AccessDenied,
    AliasNotTrusted,
    CapabilityUnavailable,
    Conflict,
    DuplicateId,
    HoldfastError,
    InvalidInput,
    InvalidScope,
)


@pytest.fixture
def talk(location: str, runner: asyncio.Runner) -> Iterator[Talk]:
    with talking(location, runner) as opened:
        yield opened


# --- commits ----------------------------------------------------------------------------------------------------------


def test_a_turn_is_committed_in_order_and_found_by_search(talk: Talk) -> None:
    first = talk.commit("t1", "My bicycle is green.", "Noted.")
    second = talk.commit("t2", "And my boat is red.", "Fine.")
    assert first.key == ConversationKey("default", "local", "c1")
    assert (first.turn_id, first.sequence, first.committed) == ("t1", 1, True)
    assert (first.before_count, first.after_count) == (0, 1)
    assert (second.sequence, second.before_count, second.after_count, second.skipped_reason) == (2, 1, 2, None)
    assert len(first.message_ids) == 2
    assert (first.lifecycle_report.success, first.lifecycle_report.changed) == (True, True)
    assert talk.texts() == ["My bicycle is green.", "Noted.", "And my boat is red.", "Fine."]
    assert "My bicycle is green." in talk.search("bicycle")


def test_the_same_turn_again_changes_nothing(talk: Talk) -> None:
    first = talk.commit("t1", "Hello.", "Hi!", host_refs=(REF,))
    talk.commit("t2", "More.")
    again = talk.commit("t1", "Hello.", "Hi!", host_refs=(REF,))
    assert (again.committed, again.sequence, again.turn_id) == (False, 1, "t1")
    assert again.skipped_reason == "canonical_turn_delta_already_committed"
    assert again.message_ids == first.message_ids
    assert (again.before_count, again.after_count) == (2, 2)
    assert not again.lifecycle_report.changed
    assert talk.texts() == ["Hello.", "Hi!", "More."]


@pytest.mark.parametrize("transition", ["archive", "mask", "delete_raw"])
def test_the_same_turn_again_does_not_bring_it_back(talk: Talk, transition: str) -> None:
    talk.commit("t1", "Hello.", "Hi!", host_refs=(REF,))
    talk.age(transition)
    assert not talk.commit("t1", "Hello.", "Hi!", host_refs=(REF,)).committed
    assert talk.texts(View.MODEL_CONTEXT) == [None, None]
    assert talk.search("Hello") == []


def test_a_forgotten_turn_is_not_brought_back_and_its_sequence_is_never_given_again(talk: Talk) -> None:
    talk.commit("t1", "Hello.", "Hi!")
    talk.commit("t2", "I am called Ana.")
    talk.run(talk.memory.forget(conversation="c1"))
    again = talk.commit("t2", "I am called Ana.")
    assert (again.committed, again.skipped_reason, again.sequence) == (False, "forgotten", None)
    assert talk.commit("t3", "A new one.").sequence == 3
    assert talk.texts() == ["A new one."]


@pytest.mark.parametrize(
    "other",
    [
        ("Hello.", "Ho!"),
        ("Hello.",),
        ("Hello.", "Hi!", "More"),
        (TurnMessage("Hello.", "user", authority="world_observation"), "Hi!"),
    ],
)
def test_other_content_under_the_same_id_is_a_conflict(talk: Talk, other: tuple[str | TurnMessage, ...]) -> None:
    talk.commit("t1", "Hello.", "Hi!")
    with pytest.raises(Conflict, match="t1"):
        talk.commit("t1", *other)
    with pytest.raises(Conflict, match="t1"):
        talk.commit("t1", "Hello.", "Hi!", host_refs=(REF,))
    assert talk.texts() == ["Hello.", "Hi!"]


def test_the_same_id_in_another_conversation_is_another_turn(talk: Talk) -> None:
    elsewhere = MemoryScope(conversation_id="c2")
    talk.commit("t1", "Hello.")
    assert talk.commit("t1", "Something else.", where=elsewhere).committed
    assert talk.texts(where=elsewhere) == ["Something else."]


def test_channels_keep_conversations_of_one_name_apart(talk: Talk) -> None:
    voice = MemoryScope("voice", conversation_id="c1")
    talk.commit("t1", "In writing.")
    talk.commit("t1", "Aloud.", where=voice)
    assert (talk.texts(), talk.texts(where=voice)) == (["In writing."], ["Aloud."])


def test_a_turn_keeps_who_took_part_and_what_it_rests_on(talk: Talk) -> None:
    who = ActorAttribution("ana-7", "person", "ana", "ben", "carl", "helper", "timer")
    message = TurnMessage("It rained.", "tool", authority="world_observation", said_at=datetime(2026, 1, 2, tzinfo=UTC))
    talk.commit("t1", message, attribution=who, delivery_status="delivered", host_refs=(REF,))
    (turn,) = talk.replay().slice.turns
    assert turn.attribution == who
    assert turn.messages[0].authority is Authority.WORLD_OBSERVATION
    assert [shown.ref for shown in turn.host_refs] == [REF]


@pytest.mark.parametrize(
    ("role", "authority"),
    [
        ("user", "user_asserted"),
        ("assistant", "assistant_utterance"),
        ("tool", "operator_diagnostic"),
        ("system", "operator_diagnostic"),
    ],
)
def test_a_message_rests_on_what_its_role_says_unless_it_says_more(talk: Talk, role: str, authority: str) -> None:
    talk.commit("t1", TurnMessage("Something.", role))
    assert talk.replay().slice.turns[0].messages[0].authority == authority


def test_what_add_added_is_part_of_the_transcript(talk: Talk) -> None:
    talk.run(talk.memory.add(["Said plainly."], conversation="c1"))
    assert talk.commit("t1", "Said governed.").sequence == 2
    (plain, _) = talk.replay().slice.turns
    assert plain.messages[0].authority is Authority.LEGACY_TRANSCRIPT
    assert talk.texts() == ["Said plainly.", "Said governed."]


def test_messages_keep_the_ids_that_hosts_give_them(talk: Talk) -> None:
    talk.commit("t1", TurnMessage("One.", message_id="m1"))
    with pytest.raises(DuplicateId):
        talk.commit("t2", TurnMessage("Two.", message_id="m2"), TurnMessage("One.", message_id="m1"))
    assert talk.texts() == ["One."]


def test_the_same_words_at_the_same_moment_are_two_messages(talk: Talk) -> None:
    then = datetime(2026, 1, 2, tzinfo=UTC)
    talk.commit("t1", TurnMessage("Ha!", said_at=then), TurnMessage("Ha!", said_at=then))
    assert talk.texts() == ["Ha!", "Ha!"]


def test_the_conversation_committed_last_is_meant_where_none_is_named(talk: Talk) -> None:
    with pytest.raises(InvalidInput, match="nothing was committed"):
        talk.replay(where=None)
    talk.commit("t1", "Hello.", where=MemoryScope("voice", "chat-9"))
    assert talk.texts(where=None) == ["Hello."]
    talk.commit("t2", "And again.", where=None)
    assert talk.texts(where=MemoryScope("voice", "chat-9")) == ["Hello.", "And again."]


# --- chat aliases -----------------------------------------------------------------------------------------------------


def test_a_chat_id_leads_to_the_conversation_that_it_was_committed_with(talk: Talk) -> None:
    talk.commit("t1", "Hello.", where=MemoryScope(chat_id="chat", conversation_id="stable"))
    assert talk.texts(where=MemoryScope(chat_id="chat")) == ["Hello."]
    report = talk.commit("t2", "More.", where=MemoryScope(chat_id="chat"))
    assert (report.key.conversation_id, report.sequence) == ("stable", 2)
    assert talk.finalize("t3", ["Even more."], conversation=MemoryScope(chat_id="chat")).transcript_commit.sequence == 3
    assert talk.texts(where=MemoryScope("voice", chat_id="chat")) == []


def test_a_chat_id_that_stood_for_two_conversations_is_trusted_no_longer(talk: Talk) -> None:
    for conversation in ("one", "two"):
        talk.commit("t1", f"In {conversation}.", where=MemoryScope(chat_id="chat", conversation_id=conversation))
    alone = MemoryScope(chat_id="chat")
    calls = (
        lambda: talk.replay(where=alone),
        lambda: talk.commit("t2", "Where to?", where=alone),
        lambda: talk.finalize("t3", ["Where to?"], conversation=alone),
        lambda: talk.age("mask", where=alone),
    )
    for call in calls:
        with pytest.raises(AliasNotTrusted, match="conversation_id"):
            call()
    assert talk.texts(where=MemoryScope(conversation_id="one")) == ["In one."]


def test_a_chat_id_that_was_a_conversation_itself_stands_for_two_from_then_on(talk: Talk) -> None:
    alone = MemoryScope(chat_id="chat")
    talk.commit("t1", "Before there was a stable name.", where=alone)
    talk.commit("t2", "Since.", where=MemoryScope(chat_id="chat", conversation_id="stable"))
    with pytest.raises(AliasNotTrusted):
        talk.age("mask", where=alone)
    assert talk.texts(where=MemoryScope(conversation_id="chat")) == ["Before there was a stable name."]
    assert talk.texts(where=MemoryScope(conversation_id="stable")) == ["Since."]


@pytest.mark.parametrize("identity", [MemoryIdentity(), MemoryIdentity(agent_id="helper"), MemoryIdentity("south")])
def test_everybodys_and_an_agents_conversations_are_their_own(talk: Talk, identity: MemoryIdentity) -> None:
    talk.commit("t1", "Ana's.")
    other = talk.of(identity)
    assert other.commit("t1", "Not hers.").sequence == 1
    assert other.texts() == ["Not hers."]
    assert other.age("mask").affected_turns == 1
    assert talk.texts() == ["Ana's."]


def test_chats_of_one_subject_mean_nothing_to_another(talk: Talk) -> None:
    talk.commit("t1", "Ana's.", where=MemoryScope(chat_id="chat", conversation_id="stable"))
    ben = talk.of(MemoryIdentity(subject_id="ben"))
    assert ben.texts(where=MemoryScope(chat_id="chat")) == []
    assert ben.texts(where=MemoryScope(conversation_id="stable")) == []


# --- concurrency ------------------------------------------------------------------------------------------------------


def test_many_writers_leave_no_gap_and_no_duplicate(talk: Talk) -> None:
    writers, each = 8, 12

    async def write(writer: int) -> list[int | None]:
        reports = []
        for number in range(each):
            messages = (TurnMessage(f"Question {writer}/{number}"), TurnMessage("Yes.", "assistant"))
            turn = TranscriptTurnInput(f"t{writer}/{number}", messages, CHAT)
            reports.append(await talk.operations.commit_transcript(MemoryTranscriptCommitRequest(turn)))
        return [report.sequence for report in reports]

    async def all_at_once() -> list[list[int | None]]:
        return await asyncio.gather(*map(write, range(writers)))

    told = talk.run(all_at_once())
    assert sorted(number for found in told for number in found if number) == list(range(1, writers * each + 1))
    assert all(found == sorted(found, key=lambda number: number or 0) for found in told)
    assert talk.sequences() == list(range(1, writers * each + 1))


def test_the_same_turn_from_many_writers_is_committed_once(talk: Talk) -> None:
    turn = TranscriptTurnInput("t1", (TurnMessage("Once."),), CHAT)

    async def all_at_once() -> list[bool]:
        request = MemoryTranscriptCommitRequest(turn)
        reports = await asyncio.gather(*(talk.operations.commit_transcript(request) for _ in range(16)))
        assert {report.sequence for report in reports} == {1}
        return [report.committed for report in reports]

    assert sum(talk.run(all_at_once())) == 1
    assert talk.texts() == ["Once."]


# --- refusals ---------------------------------------------------------------------------------------------------------

GOOD = TranscriptTurnInput("t1", (TurnMessage("Hello."),), CHAT)
BAD: dict[str, tuple[TranscriptTurnInput, type[HoldfastError], str]] = {
    "an empty turn id": (replace(GOOD, turn_id=" "), InvalidInput, "turn_id"),
    "a long turn id": (replace(GOOD, turn_id="t" * 201), InvalidInput, "turn_id"),
    "no messages": (replace(GOOD, messages=()), InvalidInput, "messages"),
    "messages as a text": (replace(GOOD, messages="Hello."), InvalidInput, "messages"),  # type: ignore[arg-type]
    "a message as a text": (replace(GOOD, messages=("Hello.",)), InvalidInput, "messages"),  # type: ignore[arg-type]
    "an empty text": (replace(GOOD, messages=(TurnMessage(""),)), InvalidInput, "text"),
    "an unknown role": (replace(GOOD, messages=(TurnMessage("a", "god"),)), InvalidInput, "role"),
    "an unknown authority": (replace(GOOD, messages=(TurnMessage("a", authority="x"),)), InvalidInput, "authority"),
    "an unknown delivery": (replace(GOOD, delivery_status="lost"), InvalidInput, "delivery_status"),
    "an empty channel": (replace(GOOD, conversation=MemoryScope("", "c")), InvalidScope, "channel"),
    "an empty chat": (replace(GOOD, conversation=MemoryScope(chat_id=" ")), InvalidScope, "chat_id"),
    "an empty conversation": (
        replace(GOOD, conversation=MemoryScope(conversation_id="")),
        InvalidScope,
        "conversation",
    ),
    "an empty chat beside": (replace(GOOD, conversation=MemoryScope("x", "", "c")), InvalidScope, "chat_id"),
    "no conversation": (replace(GOOD, conversation=MemoryScope()), InvalidInput, "conversation_id"),
    "a scope of another kind": (replace(GOOD, conversation="c1"), InvalidInput, "scope"),  # type: ignore[arg-type]
    "an attribution of another kind": (replace(GOOD, attribution="ana"), InvalidInput, "attribution"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_turn_is_refused_by_name_leaves_its_row_and_changes_nothing(talk: Talk, case: str) -> None:
    turn, error, field = BAD[case]
    before = len(talk.trail())
    with pytest.raises(error) as refused:
        talk.run(talk.operations.commit_transcript(MemoryTranscriptCommitRequest(turn)))
    assert refused.value.field.startswith(field)  # type: ignore[attr-defined]
    rows = talk.trail()[before:]
    assert [(row.action, row.outcome) for row in rows] == [(Action.COMMIT_TRANSCRIPT, Outcome.REFUSED)]
    assert talk.texts() == []


@pytest.mark.parametrize(
    ("operation", "action"),
    [
        ("commit_transcript", Action.COMMIT_TRANSCRIPT),
        ("finalize_turn_and_maintain", Action.FINALIZE_TURN),
        ("replay_transcript", Action.REPLAY_TRANSCRIPT),
        ("export_transcript", Action.EXPORT_TRANSCRIPT),
        ("request_transcript_lifecycle", Action.TRANSCRIPT_LIFECYCLE),
        ("repair_transcript", Action.REPAIR_TRANSCRIPT),
        ("replay", Action.REPLAY),
    ],
)
def test_what_is_no_request_is_refused_with_its_row(talk: Talk, operation: str, action: Action) -> None:
    for wrong in ({"turn": {}}, None, b"mask", MemoryTranscriptCommitRequest(None)):  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match=r"request|turn|delta"):
            talk.run(getattr(talk.operations, operation)(wrong))
    assert {(row.action, row.outcome) for row in talk.trail()} == {(action, Outcome.REFUSED)}


def test_host_references_are_as_many_as_may_be_and_of_their_kind(talk: Talk) -> None:
    for wrong in ((REF,) * 257, ("crm:T-1",)):
        with pytest.raises(InvalidInput, match="host_refs"):
            talk.commit("t1", "Hello.", host_refs=wrong)
    assert talk.texts() == []


def test_every_commit_leaves_its_one_row(talk: Talk) -> None:
    talk.commit("t1", "Hello.", "Hi!")
    talk.commit("t1", "Hello.", "Hi!")
    rows = talk.trail()
    assert [(row.action, row.outcome, row.record_count) for row in rows] == [
        (Action.COMMIT_TRANSCRIPT, Outcome.SUCCEEDED, 2),
        (Action.COMMIT_TRANSCRIPT, Outcome.SUCCEEDED, 0),
    ]


def test_nobody_commits_into_what_is_not_theirs(talk: Talk) -> None:
    ben = talk.of(MemoryIdentity(subject_id="ana"), Actor(ActorKind.USER, "ben"))
    with pytest.raises(AccessDenied):
        ben.commit("t1", "As if I were Ana.")
    assert talk.texts() == []


def test_what_a_profile_does_not_have_is_refused_with_its_row(talk: Talk) -> None:
    gateway = talk.of(MemoryIdentity(subject_id="ana"), profile="server-linux-memory-gateway")
    with pytest.raises(CapabilityUnavailable, match="replay"):
        gateway.run(gateway.operations.replay())
    assert [(row.action, row.outcome) for row in talk.trail()] == [(Action.REPLAY, Outcome.REFUSED)]
