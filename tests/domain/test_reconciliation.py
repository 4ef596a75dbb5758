"""Decisions on proposed facts: what is the same, what ends what, and what is only marked."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.ids import MemoryId, MessageId, TurnId
from holdfast.domain.memory import (
    ALWAYS,
    Candidate,
    Evidence,
    FactRelation,
    MemoryRecord,
    Plane,
    Status,
    Trust,
    Validity,
)
from holdfast.domain.reconciliation import (
    Decision,
    DecisionReason,
    decide,
    decide_in_slot,
    normalize_statement,
    was_learned_before,
)
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Message, Role

NEW, DUPLICATE, UPDATE, CONTRADICTION = FactRelation
MARCH = datetime(2026, 3, 1, tzinfo=UTC)
ANA = Scope(subject="ana")


def said(text: str = "…", *, at: datetime = MARCH, role: Role = Role.USER) -> Message:
    return Message(
        id=MessageId("msg_new"), turn_id=TurnId("turn_1"), scope=ANA, position=1, text=text, sender=None, role=role,
        said_at=at, recorded_at=at, external_id=None, source=None, metadata={},
    )  # fmt: skip


def memory(
    text: str, *, trust: Trust = Trust.MODEST, validity: Validity = ALWAYS, evidence: bool = True
) -> MemoryRecord:
    at = MARCH - timedelta(days=30)
    links = (Evidence(MessageId("msg_old"), "…", None, at, None),) if evidence else ()
    return MemoryRecord(
        id=MemoryId(f"mem_{text}"), revision=1, scope=ANA, plane=Plane.LONG_TERM, text=text, trust=trust,
        status=Status.ACCEPTED, validity=validity, recorded_at=at, superseded_at=None, source=None, author="test",
        reason=None, evidence=links,
    )  # fmt: skip


def propose(
    text: str, claim: FactRelation | None, target: MemoryRecord | None, *, trust: Trust = Trust.MODEST, **more: object
) -> Candidate:
    return replace(
        Candidate(text, (MessageId("msg_new"),), trust, ALWAYS, "", relation=claim, target=target and target.id),
        **more,  # type: ignore[arg-type]
    )


def judge(known: str, text: str, claim: FactRelation | None, *, trust: Trust = Trust.MODEST) -> Decision:
    old = memory(known, trust=trust)
    return decide(propose(text, claim, old), [said()], [old], subject="ana")


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ("Ana is allergic to peanuts.", "Ana has a peanut allergy."),
        ("Ana works as a nurse.", "Ana is a nurse."),
        ("Ana has two kids, Max and Ida.", "Ana has 2 kids called Max and Ida."),
        ("Ana dislikes horror films.", "Ana hates horror films."),
        ("El cumpleaños de Ana es el 21 de agosto.", "Ana cumple años el 21 de agosto."),
        ("Ana wants answers in bullet points.", "Ana wants bullet points in answers."),
    ],
)
def test_a_claimed_duplicate_that_says_nothing_else_is_one(known: str, text: str) -> None:
    assert judge(known, text, DUPLICATE).relation is DUPLICATE
    # Without a claim, likeness merges nothing.
    assert judge(known, text, NEW).relation is NEW


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ("Ana's son Max plays football.", "Ana's son Theo plays football."),
        ("Ana's friend Erik Andersen sings.", "Ana's friend Erik Anderson sings."),
        ("Max plays football.", "Theo plays football."),
        ("Ana's mother likes opera.", "Ana's father likes opera."),
        ("Ana's number is 555 0134.", "Ana's number is 555 0143."),
        ("Ana keeps four hens.", "Ana keeps two hens."),
        ("Ana fährt im März nach Rom.", "Ana fährt im Mai nach Rom."),
        ("La cita de Ana es en marzo.", "La cita de Ana es en mayo."),
        ("Ana loves tea.", "Ana hates tea."),
        ("Ana prefers tea over coffee.", "Ana prefers coffee over tea."),
        ("Ana drinks tea.", "Ana drinks coffee."),
        ("Ana codes in C.", "Ana codes in C#."),
        ("Ana pays 5 $ a day.", "Ana pays 5 € a day."),
        ("It was -5 degrees at Ana's.", "It was 5 degrees at Ana's."),
        ("Ana has a son Max.", "Ana has a son Max who is allergic to nuts."),
        ("安娜住在北京。", "安娜住在东京。"),
    ],
)
def test_a_claimed_duplicate_with_other_details_is_kept_beside(known: str, text: str) -> None:
    assert judge(known, text, DUPLICATE).relation is NEW


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ("Ana drinks coffee.", "Ana does not drink coffee any more."),
        ("Ana eats fish on Fridays.", "Ana never eats fish on Fridays."),
        ("Ana has no car.", "Ana has a car."),
    ],
)
@pytest.mark.parametrize("claim", [DUPLICATE, NEW, None])
def test_a_negated_sentence_is_never_merged_but_marked(known: str, text: str, claim: FactRelation | None) -> None:
    assert judge(known, text, claim).relation is CONTRADICTION


@pytest.mark.parametrize("text", ["ana plays  the cello", "Ana plays the cello!", "ANA PLAYS THE CELLO."])
@pytest.mark.parametrize("claim", [*FactRelation, None])
def test_the_same_words_are_a_duplicate_whatever_is_claimed(text: str, claim: FactRelation | None) -> None:
    assert judge("Ana plays the cello.", text, claim).relation is DUPLICATE


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ("Ana works at Spotify as a designer.", "Ana works at Zalando."),
        ("Ana is single.", "Ana's girlfriend is called Noor."),
        ("Ana has no pets.", "Ana has a puppy called Biscuit."),
        ("Ana's boss is Hannah.", "Ana's boss is Viktor."),
        ("Ana flies to Lima on 2 May.", "Ana cancelled her trip to Lima."),
        ("Ana trabaja en Correos.", "Ana trabaja en un banco."),
        ("Ana prefers tea over coffee.", "Ana prefers coffee over tea."),
    ],
)
def test_a_claimed_update_of_the_same_matter_ends_what_was_known(known: str, text: str) -> None:
    decided = judge(known, text, UPDATE)
    assert (decided.relation, decided.ends_at) == (UPDATE, MARCH)


@pytest.mark.parametrize(
    ("known", "text", "reason"),
    [
        ("Ana lives in Valencia.", "Ana bought a red bike.", DecisionReason.UNRELATED),
        ("Ana is allergic to bees.", "Ana plays the trombone.", DecisionReason.UNRELATED),
        ("Ana lives in Cork.", "Ana's brother lives in Galway.", DecisionReason.UNRELATED),
        ("Ana is married to Karim.", "Ana's sister is married to Lars.", DecisionReason.UNRELATED),
        ("Ana's son Max plays football.", "Ana's son Max has a fever.", DecisionReason.UNRELATED),
        ("Ana has a daughter called Wren.", "Ana has another daughter called Lark.", DecisionReason.FURTHER),
    ],
)
def test_a_claimed_update_of_another_matter_ends_nothing(known: str, text: str, reason: DecisionReason) -> None:
    decided = judge(known, text, UPDATE)
    assert (decided.relation, decided.reason) == (NEW, reason)


def test_an_update_of_a_memory_of_higher_trust_is_a_contradiction() -> None:
    decided = judge("Ana lives in Porto.", "Ana lives in Faro.", UPDATE, trust=Trust.STATED)
    assert (decided.relation, decided.reason) == (CONTRADICTION, DecisionReason.HIGHER_TRUST)


@pytest.mark.parametrize("role", [Role.ASSISTANT, Role.TOOL, Role.SYSTEM])
def test_an_update_that_no_person_said_ends_nothing(role: Role) -> None:
    old = memory("Ana lives in Turin.")
    decided = decide(propose("Ana lives in Milan.", UPDATE, old), [said(role=role)], [old], subject="ana")
    assert (decided.relation, decided.reason) == (NEW, DecisionReason.NOT_SAID_BY_PERSON)


def test_older_words_end_nothing() -> None:
    old = memory("Ana lives in Porto.")
    before = said(at=MARCH - timedelta(days=60))
    decided = decide(propose("Ana lives in Faro.", UPDATE, old), [before], [old], subject="ana")
    assert (decided.relation, decided.reason) == (CONTRADICTION, DecisionReason.OLDER)


def test_an_update_ends_a_memory_when_it_says_so_but_not_before_it_was_last_said() -> None:
    old = memory("Ana lives in Porto.")

    def end(since: datetime) -> datetime | None:
        moved = propose("Ana lives in Faro.", UPDATE, old, validity=Validity(since=since))
        return decide(moved, [said()], [old], subject="ana").ends_at

    assert end(MARCH - timedelta(days=3)) == MARCH - timedelta(days=3)
    assert end(MARCH + timedelta(days=3)) == MARCH + timedelta(days=3)
    assert end(datetime(1970, 1, 1, tzinfo=UTC)) == MARCH


def test_a_memory_that_has_ended_is_not_repeated_but_begins_anew() -> None:
    old = memory("Ana lives in Kyoto.", validity=Validity(until=MARCH - timedelta(days=5)))
    assert decide(propose("Ana lives in Kyoto.", NEW, None), [said()], [old], subject="ana").relation is NEW
    assert decide(propose("Ana lives in Kobe.", UPDATE, old), [said()], [old], subject="ana").relation is NEW


def test_a_target_that_is_not_known_is_no_target() -> None:
    decided = decide(propose("Ana lives in Faro.", UPDATE, memory("Mimi.")), [said()], [memory("Ana works.")])
    assert (decided.relation, decided.reason) == (NEW, DecisionReason.UNKNOWN_TARGET)


def test_a_memory_that_rests_on_nothing_gets_no_evidence() -> None:
    """It would be forgotten with that evidence."""
    old = memory("Ana is vegan.", trust=Trust.STATED, evidence=False)
    assert decide(propose("Ana is vegan.", None, None), [said()], [old]).relation is None


def test_words_of_low_trust_neither_support_nor_mark_a_trusted_memory() -> None:
    old = memory("Ana is vegan.")
    for text, claim in (("Ana is vegan.", DUPLICATE), ("Ana is not vegan.", CONTRADICTION), ("Ana is a cook.", UPDATE)):
        decided = decide(propose(text, claim, old, trust=Trust.LOW), [said()], [old], subject="ana")
        assert decided.relation in (None, NEW)


def test_facts_of_one_slot_replace_each_other_unless_trust_or_time_forbids() -> None:
    old = memory("ana lives in Porto.", validity=Validity(since=MARCH))
    newer = propose("ana lives in Faro.", None, None, validity=Validity(since=MARCH + timedelta(days=1)))
    assert decide_in_slot(newer, old).relation is UPDATE
    assert decide_in_slot(newer, replace(old, trust=Trust.STATED)).relation is CONTRADICTION
    older = replace(newer, validity=Validity(since=MARCH - timedelta(days=1)))
    assert decide_in_slot(older, old) == Decision(None, DecisionReason.OLDER, old)
    assert decide_in_slot(replace(newer, text="Ana lives in Porto"), old).relation is DUPLICATE


def test_what_was_learned_before_from_the_same_messages_is_known() -> None:
    first = memory("Ana is vegan.")
    corrected = replace(first, revision=2, text="Ana is vegetarian.")
    again = replace(propose("ana is vegan", None, None), evidence=(MessageId("msg_old"),))
    assert was_learned_before(again, [[first, corrected]])
    assert not was_learned_before(replace(again, evidence=(MessageId("msg_new"),)), [[first, corrected]])
    assert not was_learned_before(replace(again, text="Ana is a vegan."), [[first, corrected]])


# --- properties -------------------------------------------------------------------------------------------------------

NAMES = ("Max", "Theo", "Anders", "Anderson", "Andersen", "Ben", "Bert", "Wien", "Graz")
DETAILS = st.fixed_dictionaries(
    {
        "who": st.sampled_from(("son", "brother", "boss", "neighbour")),
        "name": st.sampled_from(NAMES),
        "verb": st.sampled_from(("meets", "does not meet", "never meets", "likes", "hates")),
        "other": st.sampled_from(NAMES),
        "count": st.sampled_from(("2", "3", "two", "12", "21", "1.5", "15")),
        "month": st.sampled_from(("March", "may", "octubre", "Oktober")),
    }
)
FORMS = st.sampled_from(
    (
        "Ana's {who} {name} {verb} {other} on {count} {month}.",
        "On {count} {month} Ana's {who} {name} {verb} {other}",
        "{name} is Ana's {who}, {verb} {other} on {count} {month}!",
    )
)
DETAIL_NAMES = ("who", "name", "verb", "other", "count", "month")
CLAIMS = st.sampled_from([*FactRelation, None])
AGREE = {"two": "2", "does not meet": "not", "never meets": "not", "Oktober": "Oktober"}


@given(DETAILS, DETAILS, st.sets(st.sampled_from(DETAIL_NAMES), max_size=2), FORMS, FORMS, CLAIMS)
def test_nothing_with_other_details_is_merged(
    one: dict[str, str],
    others: dict[str, str],
    changed: set[str],
    form: str,
    other_form: str,
    claim: FactRelation | None,
) -> None:
    other = one | {name: others[name] for name in changed}
    decided = judge(form.format(**one), other_form.format(**other), claim)
    if decided.relation is DUPLICATE:
        assert {key: AGREE.get(value, value) for key, value in one.items()} == {
            key: AGREE.get(value, value) for key, value in other.items()
        }


@given(st.text(max_size=40), st.text(max_size=40), CLAIMS, st.sampled_from(Trust), st.sampled_from(Trust))
def test_no_text_ends_a_memory_of_higher_trust(
    known: str, text: str, claim: FactRelation | None, trust: Trust, known_trust: Trust
) -> None:
    old = memory(known, trust=known_trust)
    decided = decide(propose(text, claim, old, trust=trust), [said(text)], [old], subject="ana")
    assert decided.relation is not UPDATE or trust >= known_trust


@given(st.text(max_size=60))
def test_the_form_of_a_statement_is_its_own_form(text: str) -> None:
    assert normalize_statement(normalize_statement(text)) == normalize_statement(text)
