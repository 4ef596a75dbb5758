"""The new part of a delivery after deleted texts, with tool messages, and when a turn is delivered again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.domain.resent_history import CommitDecision, count_known_messages, decide_commit, match_redelivery
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import DeliveryStatus, SkippedReason, TurnDelta, Utterance
from holdfast.errors import InvalidInput

DELIVERED = DeliveryStatus.DELIVERED


def said(*texts: str) -> tuple[Utterance, ...]:
    """Parse utterances: `u:`, `a:`, `t:` and `s:` give the role, `p:` a private answer, and `-` is a deleted text."""
    roles = {"u": Role.USER, "a": Role.ASSISTANT, "p": Role.ASSISTANT, "t": Role.TOOL, "s": Role.SYSTEM}
    found = []
    for text in texts:
        role, _, words = text.partition(":")
        found.append(Utterance(roles[role], None if words == "-" else words, role == "p"))
    return tuple(found)


def new(delta: TurnDelta, *tail: str) -> tuple[Utterance, ...]:
    return decide_commit(delta, said(*tail)).messages


# --- deleted texts ----------------------------------------------------------------------------------------------------


def test_a_deleted_exchange_does_not_come_back_with_the_history() -> None:
    delta = TurnDelta(DELIVERED, said("u:secret", "a:I see", "u:hello"), "hi")
    assert new(delta, "u:-", "a:-") == said("u:hello", "a:hi")


def test_a_history_cut_short_does_not_bring_a_deleted_exchange_back_either() -> None:
    delta = TurnDelta(DELIVERED, said("u:secret", "a:I see", "u:hello"), "hi")
    assert new(delta, "u:first", "a:second", "u:-", "a:-") == said("u:hello", "a:hi")


def test_a_deleted_question_without_an_answer_does_not_come_back_beside_messages_that_match() -> None:
    delta = TurnDelta(DELIVERED, said("u:hi", "a:hello", "u:secret", "u:and now?"), "yes")
    assert new(delta, "u:hi", "a:hello", "u:-") == said("u:and now?", "a:yes")


@pytest.mark.parametrize("status", [DeliveryStatus.DELIVERED, DeliveryStatus.USER_ONLY])
def test_a_new_message_is_not_taken_for_a_deleted_one(status: DeliveryStatus) -> None:
    delta = TurnDelta(status, said("u:something new"), "indeed")
    assert new(delta, "u:-")[0] == Utterance(Role.USER, "something new")
    assert new(delta, "u:before", "a:answered", "u:-")[0] == Utterance(Role.USER, "something new")


def test_a_new_exchange_is_not_taken_for_a_deleted_one() -> None:
    delta = TurnDelta(DELIVERED, said("u:something new"), "indeed")
    assert new(delta, "u:-", "a:-") == said("u:something new", "a:indeed")


def test_a_new_question_with_an_old_answer_is_not_taken_for_a_deleted_one() -> None:
    delta = TurnDelta(DELIVERED, said("u:something new"), "ok")
    assert new(delta, "u:-", "a:ok") == said("u:something new", "a:ok")


def test_a_deleted_message_stands_for_its_role_alone() -> None:
    delta = TurnDelta(DELIVERED, said("a:greeting", "u:hello"), "hi")
    assert new(delta, "u:-") == said("a:greeting", "u:hello", "a:hi")


ROLES = st.sampled_from([Role.USER, Role.ASSISTANT])
HISTORIES = st.lists(st.builds(Utterance, ROLES, st.sampled_from("ab"), st.just(False)), min_size=1, max_size=8)


@settings(max_examples=400, deadline=None)
@given(HISTORIES, st.data())
def test_whatever_is_deleted_of_a_history_that_is_sent_again_nothing_of_it_comes_back(
    history: list[Utterance], data: st.DataObject
) -> None:
    """The host resends the whole history, which ends with an answer as usual, and one more question."""
    whole = [*history, Utterance(Role.ASSISTANT, "a")]
    gone = data.draw(st.sets(st.integers(0, len(whole) - 1)))
    tail = [Utterance(role, None if place in gone else text) for place, (role, text, _) in enumerate(whole)]
    delta = TurnDelta(DELIVERED, (*whole, Utterance(Role.USER, "new")), "answer")
    assert decide_commit(delta, tail).messages == said("u:new", "a:answer")


@settings(max_examples=400, deadline=None)
@given(HISTORIES, st.sets(st.integers(0, 7)), st.sampled_from(list(DeliveryStatus)[:4]))
def test_the_last_question_of_a_delivery_is_never_taken_for_a_deleted_one(
    history: list[Utterance], gone: set[int], status: DeliveryStatus
) -> None:
    tail = [Utterance(role, None if place in gone else text) for place, (role, text, _) in enumerate(history)]
    delta = TurnDelta(status, (*history, Utterance(Role.USER, "never said before")), "nor this")
    assert Utterance(Role.USER, "never said before") in decide_commit(delta, tail).messages


# --- private messages -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tail", "given_now"),
    [
        (("u:cold", "p:poor ana"), ("u:cold", "u:and wet")),
        (("u:cold", "p:poor ana", "a:i see"), ("u:cold", "a:i see", "u:and wet")),
        (("u:cold", "p:poor ana", "a:i see"), ("u:cold", "a:poor ana", "a:i see", "u:and wet")),
        (
            ("u:hi", "a:yes?", "p:a", "t:1", "p:b", "u:cold", "p:c"),
            ("s:Be kind.", "u:hi", "a:yes?", "u:cold", "u:and wet"),
        ),
        (("u:-", "p:-"), ("u:cold", "u:and wet")),
        (("u:hi", "u:-", "p:-", "a:-"), ("u:cold", "a:i see", "u:and wet")),
    ],
)
def test_a_history_without_private_messages_is_known_all_the_same(
    tail: Sequence[str], given_now: Sequence[str]
) -> None:
    assert new(TurnDelta(DELIVERED, said(*given_now), "indeed"), *tail) == said("u:and wet", "a:indeed")


def test_private_messages_alone_do_not_make_a_new_message_known() -> None:
    delta = TurnDelta(DELIVERED, said("u:something new"), "indeed")
    assert new(delta, "u:hello", "p:nice", "p:so nice") == said("u:something new", "a:indeed")
    assert new(delta, "u:-", "p:-") == said("u:something new", "a:indeed")


# --- tools and instructions -------------------------------------------------------------------------------------------


def test_what_tools_told_is_committed_between_question_and_answer() -> None:
    delta = TurnDelta(DELIVERED, said("u:weather?"), "sunny", ("22 degrees",))
    assert new(delta) == said("u:weather?", "t:22 degrees", "a:sunny")


@pytest.mark.parametrize("status", ["user_only", "upstream_failed", "cancelled"])
def test_what_tools_told_on_the_way_to_an_answer_that_was_not_delivered_is_left_out(status: str) -> None:
    delta = TurnDelta(DeliveryStatus(status), said("u:weather?"), "sunny", ("22 degrees",))
    assert new(delta) == said("u:weather?")


def test_a_history_without_what_tools_told_is_known_all_the_same() -> None:
    delta = TurnDelta(DELIVERED, said("u:weather?", "a:sunny", "u:thanks"), "welcome")
    assert new(delta, "u:weather?", "t:22 degrees", "a:sunny") == said("u:thanks", "a:welcome")


def test_instructions_before_a_history_cut_short_do_not_hide_that_it_is_known() -> None:
    delta = TurnDelta(DELIVERED, said("s:Be kind.", "u:two", "a:2", "u:three"), "3")
    assert new(delta, "s:Be kind.", "u:one", "a:1", "u:two", "a:2") == said("u:three", "a:3")


def test_what_a_tool_told_last_is_not_committed_twice() -> None:
    delta = TurnDelta(DELIVERED, said("u:weather?", "t:22 degrees"), "sunny")
    assert new(delta, "u:weather?", "t:22 degrees") == said("a:sunny")
    assert new(delta, "u:hello", "t:1", "u:weather?", "t:22 degrees") == said("a:sunny")


MIXED = st.lists(
    st.builds(
        Utterance, st.sampled_from([Role.USER, Role.ASSISTANT, Role.TOOL]), st.sampled_from("ab"), st.just(False)
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=400, deadline=None)
@given(MIXED, MIXED)
def test_a_delivery_with_tools_made_again_commits_nothing(tail: list[Utterance], given_now: list[Utterance]) -> None:
    delta = TurnDelta(DeliveryStatus.USER_ONLY, tuple(given_now))
    now = [*tail, *decide_commit(delta, tail).messages]
    assert decide_commit(delta, now) == CommitDecision((), SkippedReason.ALREADY_COMMITTED)


@st.composite
def resent(draw: st.DrawFn) -> tuple[list[Utterance], list[Utterance]]:
    """A conversation, some of whose texts were deleted, and a window of it as a host may send it."""
    roles = draw(st.lists(st.tuples(st.sampled_from(Role), st.booleans(), st.booleans()), max_size=10))
    whole = [Utterance(role, str(place), private) for place, (role, private, _) in enumerate(roles)]
    tail = [message._replace(text=None) if gone else message for message, (*_, gone) in zip(whole, roles, strict=True)]
    window = whole[draw(st.integers(0, len(whole))) :]
    kept = draw(st.lists(st.booleans(), min_size=len(window), max_size=len(window)))
    dialogue = (Role.USER, Role.ASSISTANT)
    history = [
        message
        for message, keep in zip(window, kept, strict=True)
        if keep or (message.role in dialogue and not message.is_private)
    ]
    if not any(message.role in dialogue for message in history):
        history = []  # the output of tools alone says too little
    prompts = draw(st.integers(0, 1)) if history else 0
    return tail, [*[Utterance(Role.SYSTEM, "Be kind.")] * prompts, *history]


@settings(max_examples=1_000, deadline=None)
@given(resent())
def test_whatever_a_host_leaves_out_of_its_history_only_what_is_new_is_committed(
    case: tuple[list[Utterance], list[Utterance]],
) -> None:
    tail, history = case
    sent = tuple(Utterance(message.role, message.text) for message in history)
    delta = TurnDelta(DELIVERED, (*sent, Utterance(Role.USER, "new")), "answer", ("found",))
    assert decide_commit(delta, tail).messages == said("u:new", "t:found", "a:answer")


# --- repeated turns ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "given_now", "expected"),
    [
        (("u:a",), ("u:a", "a:b"), 1),
        (("u:a", "a:b"), ("u:a", "a:b"), 2),
        (("u:a", "a:b"), ("u:x", "a:y", "u:a", "a:b"), 4),
        (("u:a", "a:b", "u:c"), ("u:c", "a:d"), 1),
        (("u:a",), ("u:other",), None),
        (("u:a", "a:b"), ("u:other", "a:b"), None),
        (("u:-", "a:-"), ("u:whatever", "a:it was"), 2),
        (("u:-",), ("a:whatever",), None),
    ],
)
def test_a_turn_delivered_again_goes_on_where_it_was_left(
    known: Sequence[str], given_now: Sequence[str], expected: int | None
) -> None:
    assert match_redelivery(said(*known), said(*given_now)) == expected


def test_too_many_messages_are_refused_whoever_they_are_of() -> None:
    with pytest.raises(InvalidInput, match="input_messages"):
        TurnDelta(DELIVERED, said("u:a", "u:b"), "c", ("told",) * 498)
    with pytest.raises(InvalidInput, match="tool_observations"):
        TurnDelta(DELIVERED, said("u:a"), "c", (" ",))


def test_nothing_is_seen_in_an_empty_conversation() -> None:
    assert count_known_messages(TurnDelta(DELIVERED, said("u:a"), "b"), ()) == 0
