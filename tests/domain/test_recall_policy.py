"""The policy of recall: which of the found records a model is shown, in what order, and why not the rest."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.domain.memory import Trust
from holdfast.domain.recall_policy import (
    OWN_WORDS_RANK,
    TRUSTED_RANK,
    Omission,
    RecallItem,
    Selection,
    belief_rank,
    check_floor,
    select_hits,
    select_records,
)
from holdfast.domain.reference_message import LABEL, MessageBudget, reference_message
from holdfast.domain.repetition import read_statement
from holdfast.domain.results import Hit, HitKind
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Role
from holdfast.errors import InvalidInput

AT = datetime(2026, 3, 1, tzinfo=UTC)
TEXTS = st.sampled_from(
    [
        "I moved to Lisbon last week.", "I moved to Lisbon last week!", "So you moved to Lisbon last week?",
        "Ana moved to Lisbon last week.", "I moved to Porto last week.", "I did not move to Lisbon last week.",
        "We ship version 2 on 12 May.", "Change of plan: we now ship version 2 on 14 May.",
        "Update: we ship version 2 on 15 May.", "Got it, thanks!", "When do we ship version 2?", "👍", "…",
        "The dentist is on 3 May.", "Hi! The dentist is on 3 May, in Lisbon, and Ana comes along with her mother.",
    ]
)  # fmt: skip
TEXTS |= st.text(max_size=20)


@st.composite
def items(draw: st.DrawFn) -> list[RecallItem[int]]:
    """Draw records, best first: memories with evidence, messages of users and assistants, some from one source."""
    found = []
    for number in range(draw(st.integers(0, 10))):
        is_memory = draw(st.booleans())
        is_assistants = not is_memory and draw(st.booleans())
        found.append(
            RecallItem(
                record=number,
                id=f"r{number}",
                text=draw(TEXTS),
                is_relevant=draw(st.integers(0, 5)) > 0,
                is_memory=is_memory,
                is_assistants=is_assistants,
                source=draw(st.sampled_from([None, None, "web", "file"])),
                speaker=draw(st.sampled_from([None, "ana", "ben"])),
                evidence=frozenset(f"r{other}" for other in draw(st.lists(st.integers(0, 9), max_size=3)))
                if is_memory
                else frozenset(),
                revised=is_memory and draw(st.booleans()),
                rank=0 if is_assistants else draw(st.integers(1, 3)),
                at=draw(st.sampled_from([None, AT, AT + timedelta(days=1), AT + timedelta(days=2)])),
            )
        )
    return found


def select(found: list[RecallItem[int]], limit: int = 10, **options: Any) -> Selection[int]:
    return select_records(found, limit, query="When do we ship version 2?", **options)


@settings(max_examples=400)
@given(items(), st.integers(1, 10))
def test_what_is_shown_and_left_out_is_what_was_found_each_once(found: list[RecallItem[int]], limit: int) -> None:
    chosen = select(found, limit)
    numbers = [*chosen.records, *(record for record, _ in chosen.left_out)]
    assert len(set(numbers)) == len(numbers)
    assert set(numbers) <= set(range(len(found)))
    assert len(chosen.records) <= limit
    # Only those behind the last place have no reason: nobody looked at them.
    if len(chosen.records) < limit:
        assert set(numbers) == set(range(len(found)))
    assert sum(chosen.omission_counts.values()) == len(chosen.left_out)


@settings(max_examples=400)
@given(items(), st.integers(1, 10))
def test_no_two_shown_records_say_the_same_and_no_small_talk_is_shown(found: list[RecallItem[int]], limit: int) -> None:
    shown = [found[number] for number in select(found, limit).records]
    said = [read_statement(item.text, speaker=item.speaker) for item in shown]
    for place, (item, one) in enumerate(zip(shown, said, strict=True)):
        assert item.is_relevant
        assert item.is_memory or item.text not in ("Got it, thanks!", "👍", "…", "When do we ship version 2?")
        assert not any(one.repeats(other) for other in said[place + 1 :])


@settings(max_examples=400)
@given(items(), st.integers(1, 10))
def test_a_shown_memorys_messages_are_not_shown(found: list[RecallItem[int]], limit: int) -> None:
    shown = [found[number] for number in select(found, limit).records]
    carried = {message for item in shown for message in item.evidence}
    assert not carried & {item.id for item in shown if not item.is_memory}


@settings(max_examples=300)
@given(items())
def test_records_that_share_nothing_stand_in_the_order_of_relevance(found: list[RecallItem[int]]) -> None:
    """A record may stand higher only in the place of one that it replaces, or before one that is believed less."""
    chosen = select(found, len(found) or 1, max_source_share=1)
    replaced = {record for record, why in chosen.left_out if why is not Omission.FLOOR}
    for earlier, later in zip(chosen.records, chosen.records[1:], strict=False):
        is_trusted = any(
            each.rank == TRUSTED_RANK and (each is found[earlier] or found[earlier].id in each.evidence)
            for each in found
        )
        goes_first = is_trusted and found[later].rank < OWN_WORDS_RANK
        assert earlier < later or goes_first or any(number < earlier for number in replaced)


@given(items(), st.integers(1, 9))
def test_a_higher_limit_never_removes_a_record_of_a_lower_one_but_by_its_better(
    found: list[RecallItem[int]], limit: int
) -> None:
    few, many = select(found, limit, max_source_share=1), select(found, limit + 1, max_source_share=1)
    gone = set(few.records) - set(many.records)
    reasons = dict(many.left_out)
    assert all(reasons[number] in (Omission.REPEATED, Omission.OUTDATED) for number in gone)


def test_without_a_relevant_record_nothing_is_shown_and_each_has_its_reason() -> None:
    found = [RecallItem(number, f"r{number}", "I moved to Lisbon.", is_relevant=False) for number in range(3)]
    chosen = select(found)
    assert chosen.records == []
    assert chosen.omission_counts == {"below_floor": 3}


def item(number: int, text: str, **fields: Any) -> RecallItem[int]:
    fields = {"speaker": "Ana", "rank": 2, "at": AT + timedelta(days=number), **fields}
    return RecallItem(number, f"r{number}", text, **fields)


def test_of_the_same_sentences_the_newest_is_shown_in_the_place_of_the_best() -> None:
    chosen = select([item(0, "We ship on 12 May."), item(1, "Ben likes tea."), item(2, "Reminder: we ship on 12 May!")])
    assert chosen.records == [2, 1]
    assert chosen.left_out == [(0, Omission.REPEATED)]


def test_an_assistants_echo_never_stands_for_what_the_user_said() -> None:
    echo = item(0, "So you moved to Lisbon last week! How is it?", is_assistants=True, rank=0, speaker="bot")
    said = item(1, "I moved to Lisbon last week.", at=AT - timedelta(days=9))
    assert select([echo, said]).records == [1]
    assert select([said, echo]).records == [1]


def test_a_plan_and_its_changes_take_one_place_that_of_the_newest() -> None:
    plans = [
        item(0, "We ship version 2 on 12 May."),
        item(1, "Change of plan: we now ship version 2 on 14 May."),
        item(2, "Update: we ship version 2 on 15 May."),
    ]
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]):
        chosen = select([plans[number] for number in order])
        assert chosen.records == [2], order
        assert chosen.omission_counts == {"outdated": 2}


@pytest.mark.parametrize("fields", [{"speaker": "Eve"}, {"source": "web"}, {"rank": 1}, {"at": None}, {"at": AT}])
def test_nobody_else_and_no_document_hides_a_plan_by_a_change(fields: dict[str, Any]) -> None:
    plan = item(0, "We ship version 2 on 12 May.")
    change = item(1, "Change of plan: we now ship version 2 on 14 May.", **fields)
    assert select([plan, change]).records == [0, 1]


def test_a_message_that_says_more_than_its_memory_is_shown_instead_of_it() -> None:
    said = item(0, "Hi! The dentist is on 3 May, in Lisbon, and Ana's mother comes along to translate.")
    memory = item(1, "The dentist is on 3 May.", is_memory=True, evidence=frozenset({"r0"}), rank=3)
    assert select([said, memory]).left_out == [(1, Omission.BY_MESSAGE)]
    short = item(0, "So the dentist is on 3 May.")
    assert select([short, memory]).records == [1]
    # A revised memory makes its message out of date, whatever else it says.
    revised = item(1, "The dentist is on 5 May.", is_memory=True, evidence=frozenset({"r0"}), rank=3, revised=True)
    assert select([said, revised]).records == [1]


def test_two_messages_of_a_memory_are_judged_each_alone() -> None:
    long = item(0, "Hi! The dentist is on 3 May, in Lisbon, and Ana's mother comes along to translate.")
    other = item(1, "Wednesday's dentist costs 90 euros, which the insurance pays back within two weeks.")
    memory = item(2, "The dentist is on 3 May.", is_memory=True, evidence=frozenset({"r0", "r1"}), rank=3)
    assert select([long, other, memory]).records == [0, 1]


def test_belief_ranks_memories_then_users_then_documents_then_assistants() -> None:
    ranks = [
        belief_rank(None, Trust.STATED, source=None), belief_rank("user", None, source=None),
        belief_rank("user", None, source="mail"), belief_rank("assistant", None, source=None),
    ]  # fmt: skip
    assert belief_rank("user", None, sender="Ben", source=None, subject="ana") == ranks[2]
    assert belief_rank("user", None, sender="Ana", source=None, subject="ana") == ranks[1]
    assert ranks == sorted(ranks, reverse=True)
    assert len(set(ranks)) == 4


# --- rivals -----------------------------------------------------------------------------------------------------------


def test_a_trusted_memory_stands_before_what_resembles_it_and_is_believed_less() -> None:
    lie = item(0, "Ana's dentist is Dr Krause.", source="mail", rank=1)
    other = item(1, "The bakery opens at 7.", rank=2)
    truth = item(2, "Ana's dentist is Dr Ito.", is_memory=True, rank=3)
    assert select([lie, other, truth]).records == [2, 0, 1]


def test_versions_of_a_rival_take_one_place_and_none_of_other_records() -> None:
    truth = item(0, "Ana's dentist is Dr Ito.", is_memory=True, rank=3)
    lies = [item(at, f"Ana's dentist is Dr Krause, says directory {at}.", rank=1) for at in range(1, 7)]
    chosen = select([truth, *lies, item(7, "The dentist is near the station.", rank=2)], 3)
    assert chosen.records == [0, 1, 7]
    assert chosen.omission_counts[Omission.RIVAL] == 5


def test_a_message_stands_for_the_trusted_memory_that_was_learned_from_it() -> None:
    lie = item(0, "Ana works at Fenwick.", is_memory=True, rank=1)
    said = item(1, "I work at Zalando, in the office by the river, with Noor and Jo.", rank=2, speaker="ana")
    truth = item(2, "Ana works at Zalando.", is_memory=True, rank=3, evidence=frozenset({"r1"}), speaker="ana")
    assert select([lie, said, truth]).records == [1, 0]


def test_documents_about_the_same_thing_keep_their_places_without_a_trusted_memory() -> None:
    pages = [item(at, f"Step {at}: press the button of the dentist's chair.", rank=1) for at in range(4)]
    assert select(pages).records == [0, 1, 2, 3]


@pytest.mark.parametrize("floor", [-0.01, 1.01, float("nan"), float("inf"), "0.5", True])
def test_a_floor_outside_0_to_1_is_refused(floor: Any) -> None:
    with pytest.raises(InvalidInput, match="min_score: must be a number"):
        check_floor(floor)
    check_floor(None)


# --- budgets ----------------------------------------------------------------------------------------------------------


def hit(number: int, text: str, score: float = 0.9, *, relevant: bool = True) -> Hit:
    return Hit(
        f"msg_{number}", HitKind.MESSAGE, text, score, Scope(), (), AT, said_at=AT, role=Role.USER, relevant=relevant
    )


TOKENIZERS: list[Callable[[str], int]] = [
    len,
    lambda text: len(text.split()),
    lambda text: len(text.encode()),
    lambda text: len(text) % 97,  # a longer text may have fewer tokens
    lambda text: hash(text) % 200,
]


@settings(max_examples=300)
@given(st.lists(st.text(max_size=200), max_size=8), st.integers(1, 500), st.sampled_from(TOKENIZERS))
def test_a_budget_in_tokens_is_never_exceeded_by_any_tokenizer(
    texts: list[str], budget: int, tokenizer: Callable[[str], int]
) -> None:
    hits = [hit(number, text) for number, text in enumerate(texts)]
    shown, message = reference_message(hits, MessageBudget(tokens=budget, count_tokens=tokenizer))
    assert shown == hits[: len(shown)]
    assert bool(message) == bool(shown)
    assert not message or tokenizer(message) <= budget


@settings(max_examples=300)
@given(st.lists(st.text(max_size=200), max_size=8), st.integers(1, 1_000), st.integers(0, 500), st.booleans())
def test_a_larger_budget_never_removes_a_line(texts: list[str], budget: int, more: int, tokens: bool) -> None:
    hits = [hit(number, text) for number, text in enumerate(texts)]

    def render(size: int) -> tuple[list[Hit], str]:
        return reference_message(hits, MessageBudget(tokens=size, count_tokens=len) if tokens else MessageBudget(size))

    (few, short), (many, long) = render(budget), render(budget + more)
    assert many[: len(few)] == few
    # Only the last line may be cut, and a larger budget shows at least as much of it.
    assert long.startswith(short.removesuffix("…"))


def test_a_floor_of_ones_own_replaces_that_of_the_engine() -> None:
    found = [hit(0, "Lisbon.", 0.9), hit(1, "Porto.", 0.5, relevant=False), hit(2, "Rome.", 0.0, relevant=False)]
    for floor, expected in ((None, 1), (0.5, 2), (0.51, 1), (0, 3), (1, 0)):
        assert len(select_hits(found, 8, floor=floor).records) == expected
    assert LABEL


def test_an_echo_of_a_plan_goes_with_the_plan_when_that_is_outdated() -> None:
    echo = item(0, "Noted: you ship version 2 on 12 May.", is_assistants=True, rank=0, speaker="bot")
    plan = item(1, "We ship version 2 on 12 May.", at=AT)
    change = item(2, "Change of plan: we now ship version 2 on 14 May.")
    for order in ([echo, change, plan], [change, plan, echo], [change, echo, plan], [plan, echo, change]):
        assert select(order).records == [2]


def test_a_plan_that_changes_back_is_shown() -> None:
    plan, back = item(0, "We ship version 2 on 12 May."), item(5, "We ship version 2 on 12 May.")
    change = item(2, "Change of plan: we now ship version 2 on 14 May.")
    assert set(select([plan, change, back]).records) >= {5}


def test_an_echo_of_a_message_goes_with_it_when_a_memory_replaces_it() -> None:
    said = item(0, "I work at Contoso as a data engineer.")
    echo = item(1, "Got it, you work at Contoso as a data engineer.", is_assistants=True, rank=0, speaker="bot")
    memory = item(2, "Ana works at Fabrikam.", is_memory=True, evidence=frozenset({"r0"}), rank=3, revised=True)
    for order in ([said, echo, memory], [echo, said, memory], [memory, echo, said], [memory, said, echo]):
        assert select(order).records == [2]


def test_a_memory_without_the_words_of_the_question_does_not_replace_a_message_that_has_them() -> None:
    said = item(0, "I'm vegetarian and allergic to walnuts.")
    memory = item(1, "Ana is vegetarian.", is_memory=True, evidence=frozenset({"r0"}), rank=3)
    assert select_records([said, memory], 8, query="What am I allergic to?").records == [0]
    assert select_records([said, memory], 8, query="Is Ana a vegetarian?").records == [1]
