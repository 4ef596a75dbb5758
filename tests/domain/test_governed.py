"""Transcripts: keys and citations, validation, turn states, and the part of a delivery that is committed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.domain.ids import MessageId, TurnId
from holdfast.domain.redaction import TranscriptGovernanceBudget, redact_turn
from holdfast.domain.resent_history import CommitDecision, decide_commit, overlap
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import (
    MAX_LABEL_CHARS,
    MAX_NAME_CHARS,
    MAX_TURN_HOST_REFS,
    MAX_TURN_MESSAGES,
    TRANSITIONS,
    ActorAttribution,
    Authority,
    ConversationKey,
    DeliveryStatus,
    HostOpaqueRef,
    HostRefVisibility,
    Relation,
    SkippedReason,
    TranscriptMessage,
    TranscriptState,
    TranscriptTurn,
    Transition,
    TurnDelta,
    Utterance,
    View,
    checked_member,
    citation,
    state_after,
)
from holdfast.errors import InvalidInput, InvalidScope, InvalidText

AT = datetime(2026, 3, 1, tzinfo=UTC)
KEY = ConversationKey("home", "chat", "1")
REF = HostOpaqueRef("desk", "ticket", "T-1", Relation.ORIGIN, HostRefVisibility.HOST_UI, "Broken heating")
SAID = TranscriptMessage(MessageId("m1"), Role.USER, "It is cold.", Authority.USER_ASSERTED)
TURN = TranscriptTurn(TurnId("t1"), 1, KEY, TranscriptState.ACTIVE, (SAID,), AT, (REF,))
# Few characters, so that the separators of citations are drawn often.
NAMES = st.text(st.sampled_from("a/#%25=é"), min_size=1, max_size=6)

# --- keys and citations -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["memory_space_id", "channel_id", "conversation_id"])
@pytest.mark.parametrize("wrong", ["", "  ", "a\nb", "\ud800", "x" * 257, None, 5])
def test_each_part_of_a_key_is_a_plain_name(part: str, wrong: Any) -> None:
    with pytest.raises(InvalidScope) as refused:
        replace(KEY, **{part: wrong})
    assert refused.value.field == part


def test_a_key_begins_the_citation_of_its_turns_and_messages() -> None:
    assert str(KEY) == "transcript:home/chat/1"
    assert citation(KEY, TurnId("t1")) == "transcript:home/chat/1#turn=t1"
    assert citation(KEY, TurnId("t1"), MessageId("m1")) == "transcript:home/chat/1#turn=t1#message=m1"
    assert str(ConversationKey("a/b", "#c", "50%")) == "transcript:a%2Fb/%23c/50%25"


def parts_of(cited: str) -> list[str]:
    """Split a citation into its parts."""
    key, *ids = cited.removeprefix("transcript:").split("#")
    named = [text.removeprefix(name) for text, name in zip(ids, ("turn=", "message="), strict=False)]
    return [unquote(part) for part in [*key.split("/"), *named]]


@settings(max_examples=300, deadline=None)
@given(NAMES, NAMES, NAMES, NAMES, st.none() | NAMES)
def test_a_citation_says_all_parts_so_that_no_two_things_share_one(
    space: str, channel: str, conversation: str, turn: str, message: str | None
) -> None:
    key = ConversationKey(space, channel, conversation)
    cited = citation(key, TurnId(turn), None if message is None else MessageId(message))
    assert cited.startswith(str(key))
    assert parts_of(cited) == [space, channel, conversation, turn, *([] if message is None else [message])]


def test_the_parts_of_names_that_look_alike_do_not_run_together() -> None:
    alike = [("a/b", "c", "d"), ("a", "b/c", "d"), ("a", "b", "c/d"), ("a%2Fb", "c", "d"), ("a", "b", "c#turn=t1")]
    assert len({citation(ConversationKey(*parts), TurnId("t1")) for parts in alike}) == len(alike)


# --- values -----------------------------------------------------------------------------------------------------------


def test_who_took_part_is_kept_apart() -> None:
    parts = {
        "speaker_id": "ana",
        "speaker_kind": "person",
        "subject_id": "ben",
        "actor_subject_id": "cai",
        "mounted_subject_id": "dee",
        "agent_id": "eve",
        "triggered_by": "schedule",
    }
    whole = ActorAttribution(**parts)
    assert {name: getattr(whole, name) for name in parts} == parts
    for name, value in parts.items():
        alone = ActorAttribution(**{name: value})
        assert [other for other in parts if getattr(alone, other) is not None] == [name]
        with pytest.raises(InvalidText) as refused:
            ActorAttribution(**{name: " "})
        assert refused.value.field == name


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("host_kind", ""),
        ("business_ref_type", "x" * (MAX_NAME_CHARS + 1)),
        ("business_ref_id", "a\x00"),
        ("relation", "cousin"),
        ("visibility", "everybody"),
        ("label", " "),
        ("label", "x" * (MAX_LABEL_CHARS + 1)),
    ],
)
def test_a_host_reference_is_bounded_and_of_a_known_kind(field: str, wrong: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        replace(REF, **{field: wrong})
    assert refused.value.field == field


def test_names_of_members_are_taken_for_the_members() -> None:
    ref = replace(REF, relation="trigger", visibility="export")  # type: ignore[arg-type]
    assert (ref.relation, ref.visibility) == (Relation.TRIGGER, HostRefVisibility.EXPORT)
    message = replace(SAID, role="tool", authority="external_content")  # type: ignore[arg-type]
    assert (message.role, message.authority) == (Role.TOOL, Authority.EXTERNAL_CONTENT)


@pytest.mark.parametrize("wrong", ["everything", "", None, 1, [], "HOST_UI"])
def test_a_view_that_is_not_known_is_refused_by_name(wrong: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked_member(View, wrong, "view")
    assert refused.value.field == "view"
    assert all(view in refused.value.problem for view in View)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("id", ""),
        ("sequence", -1),
        ("sequence", True),
        ("state", "lost"),
        ("committed_at", "yesterday"),
        ("messages", ()),
        ("messages", (SAID, SAID)),
        ("messages", (replace(SAID, text=None),)),
        ("host_refs", (REF,) * (MAX_TURN_HOST_REFS + 1)),
    ],
)
def test_a_turn_that_cannot_be_is_not_built(field: str, wrong: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        replace(TURN, **{field: wrong})
    assert refused.value.field == {"id": "turn_id"}.get(field, field)


@pytest.mark.parametrize(("field", "wrong"), [("id", " "), ("role", "god"), ("authority", "mine"), ("text", "")])
def test_a_message_that_cannot_be_is_not_built(field: str, wrong: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        replace(SAID, **{field: wrong})
    assert refused.value.field == {"id": "message_id"}.get(field, field)


def test_only_a_turn_whose_raw_content_was_deleted_may_lack_its_texts() -> None:
    bare = replace(SAID, text=None)
    assert replace(TURN, state=TranscriptState.RAW_DELETED, messages=(bare,)).messages == (bare,)
    for state in set(TranscriptState) - {TranscriptState.RAW_DELETED}:
        with pytest.raises(InvalidInput, match=state):
            replace(TURN, state=state, messages=(bare,))


# --- turn states ------------------------------------------------------------------------------------------------------

# The table written out again: by state, the results of archive, restore, mask, delete_raw and review.
LIFE = {
    "active": ("archived", "active", "masked", "raw_deleted", "active"),
    "archived": ("archived", "active", "masked", "raw_deleted", "archived"),
    "masked": (None, "active", "masked", "raw_deleted", "masked"),
    "raw_deleted": (None, None, None, "raw_deleted", "raw_deleted"),
}


@pytest.mark.parametrize("state", TranscriptState)
def test_a_transition_leads_where_it_should_or_nowhere(state: TranscriptState) -> None:
    assert tuple(state_after(state, transition) for transition in Transition) == LIFE[state]
    assert list(Transition) == ["archive", "restore", "mask", "delete_raw", "review"]


def test_every_state_has_a_life() -> None:
    assert set(TRANSITIONS) == set(TranscriptState) == set(LIFE)


@given(st.sampled_from(TranscriptState), st.lists(st.sampled_from(Transition), max_size=12))
def test_what_was_deleted_stays_deleted_whatever_is_asked_then(state: TranscriptState, asked: list[Transition]) -> None:
    deleted = False
    for transition in asked:
        state = state_after(state, transition) or state
        deleted = deleted or state is TranscriptState.RAW_DELETED
        assert deleted == (state is TranscriptState.RAW_DELETED)


def shown(state: TranscriptState) -> set[tuple[str, str]]:
    """Return everything that any view shows of a turn in that state, as pairs of view and item."""
    turn = replace(TURN, state=state, host_refs=tuple(replace(REF, visibility=each) for each in HostRefVisibility))
    budget = TranscriptGovernanceBudget(9, 9, 9, 9, 9)
    seen = {view: redact_turn(turn, view, budget) for view in View}
    texts = {(view, f"m{m.id}") for view, result in seen.items() for m in result.messages if m.text}
    refs = {(view, f"r{r.index}") for view, result in seen.items() for r in result.host_refs}
    return texts | refs | {(v, f"l{r.index}") for v, result in seen.items() for r in result.host_refs if r.ref.label}


@pytest.mark.parametrize("state", TranscriptState)
@pytest.mark.parametrize("transition", [each for each in Transition if each is not Transition.RESTORE])
def test_only_a_restore_ever_shows_more(state: TranscriptState, transition: Transition) -> None:
    then = state_after(state, transition)
    assert then is None or shown(then) <= shown(state)


# --- committing a delivery --------------------------------------------------------------------------------------------

U1, A1, U2, A2 = (
    Utterance(Role.USER, "Hello."),
    Utterance(Role.ASSISTANT, "Hi!"),
    Utterance(Role.USER, "It is cold."),
    Utterance(Role.ASSISTANT, "Heat it."),
)
SPOKEN = st.builds(Utterance, st.sampled_from([Role.USER, Role.ASSISTANT]), st.sampled_from("ab"), st.just(False))
PAIRS = st.lists(SPOKEN, max_size=9)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("delivered", CommitDecision((U2, A2))),
        ("user_only", CommitDecision((U2,))),
        ("upstream_failed", CommitDecision((U2,))),
        ("cancelled", CommitDecision((U2,))),
        ("incomplete_stream", CommitDecision((), SkippedReason.INCOMPLETE_STREAM)),
        ("rejected_by_policy", CommitDecision((), SkippedReason.REJECTED_BY_POLICY)),
    ],
)
def test_a_status_says_what_is_committed(status: str, expected: CommitDecision) -> None:
    delta = TurnDelta(DeliveryStatus(status), (U1, A1, U2), A2.text)
    assert decide_commit(delta, (U1, A1)) == expected


def test_every_status_is_decided() -> None:
    for status in DeliveryStatus:
        found = decide_commit(TurnDelta(status, (U1,), A1.text), ())
        assert bool(found.messages) == (found.skipped_reason is None)


def test_what_was_committed_before_is_skipped_with_the_reason() -> None:
    again = decide_commit(TurnDelta(DeliveryStatus.DELIVERED, (U1,), A1.text), (U2, A2, U1, A1))
    assert again == CommitDecision((), SkippedReason.ALREADY_COMMITTED)
    assert again.skipped_reason == "canonical_turn_delta_already_committed"


def test_a_turn_that_failed_and_is_delivered_then_commits_its_answer_alone() -> None:
    assert decide_commit(TurnDelta(DeliveryStatus.UPSTREAM_FAILED, (U1,)), ()).messages == (U1,)
    assert decide_commit(TurnDelta(DeliveryStatus.DELIVERED, (U1,), A1.text), (U1,)).messages == (A1,)


def test_a_host_that_sends_a_window_of_its_history_adds_what_is_new_alone() -> None:
    assert decide_commit(TurnDelta(DeliveryStatus.DELIVERED, (A1, U2), A2.text), (U1, A1)).messages == (U2, A2)
    assert decide_commit(TurnDelta(DeliveryStatus.DELIVERED, (U2,), A2.text), (U1, A1)).messages == (U2, A2)


def test_the_same_words_of_another_role_are_another_message() -> None:
    assert overlap([Utterance(Role.USER, "Yes.")], [Utterance(Role.ASSISTANT, "Yes.")]) == 0


@pytest.mark.parametrize("status", ["user_only", "upstream_failed", "cancelled", "incomplete_stream"])
def test_a_delivery_of_nothing_is_refused(status: str) -> None:
    with pytest.raises(InvalidInput, match="input_messages"):
        TurnDelta(DeliveryStatus(status), (), "An answer that was not delivered.")
    assert decide_commit(TurnDelta(DeliveryStatus.DELIVERED, (), "Good morning!"), ()).messages


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("input_messages", ()),
        ("input_messages.text", (Utterance(Role.USER, ""),)),
        ("input_messages.role", (Utterance("god", "Hello."),)),  # type: ignore[arg-type]
        ("input_messages", (U1,) * MAX_TURN_MESSAGES),
    ],
)
def test_a_delivery_names_what_is_wrong_with_it(field: str, wrong: tuple[Utterance, ...]) -> None:
    with pytest.raises(InvalidInput) as refused:
        TurnDelta(DeliveryStatus.USER_ONLY, wrong)
    assert refused.value.field == field
    with pytest.raises(InvalidInput, match="delivery_status"):
        TurnDelta("lost", (U1,))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="assistant_message"):
        TurnDelta(DeliveryStatus.DELIVERED, (U1,), " ")


def slow_overlap(tail: Sequence[Utterance], incoming: Sequence[Utterance]) -> int:
    lengths = range(min(len(tail), len(incoming)) + 1)
    return max(length for length in lengths if list(tail[len(tail) - length :]) == list(incoming[:length]))


def test_the_overlap_is_the_longest_there_is() -> None:
    """All pairs of histories of up to seven messages with two texts: enough to cover every way a match can fail."""
    two = (Utterance(Role.USER, "a"), Utterance(Role.USER, "b"))
    histories = [history for length in range(8) for history in product(two, repeat=length)]
    wrong = [pair for pair in product(histories, histories) if overlap(*pair) != slow_overlap(*pair)]
    assert not wrong


@settings(max_examples=300, deadline=None)
@given(PAIRS, PAIRS)
def test_the_overlap_of_any_histories_is_the_longest_too(tail: list[Utterance], incoming: list[Utterance]) -> None:
    assert overlap(tail, incoming) == slow_overlap(tail, incoming)


@settings(max_examples=200, deadline=None)
@given(PAIRS, PAIRS.filter(bool))
def test_a_delivery_made_again_commits_nothing_and_leaves_no_gap(
    tail: list[Utterance], given_now: list[Utterance]
) -> None:
    delta = TurnDelta(DeliveryStatus.USER_ONLY, tuple(given_now))
    now = [*tail, *decide_commit(delta, tail).messages]
    assert now[: len(tail)] == tail
    assert now[len(now) - len(given_now) :] == given_now
    assert decide_commit(delta, now) == CommitDecision((), SkippedReason.ALREADY_COMMITTED)


def test_the_overlap_of_long_histories_that_nearly_repeat_takes_steps_like_their_length() -> None:
    """Count the comparisons; comparing every length anew would take about fifty million."""
    compared = 0

    class Counted(Utterance):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return tuple.__eq__(self, other)

        def __ne__(self, other: object) -> bool:
            return not self == other

        __hash__ = Utterance.__hash__

    size = 10_000
    repeated = [Counted(Role.USER, "a")] * (size - 1)
    assert overlap([*repeated, Counted(Role.USER, "a")], [*repeated, Counted(Role.USER, "b")]) == size - 1
    assert compared < 10 * size
