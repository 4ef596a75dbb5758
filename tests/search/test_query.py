"""Query parsing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.times import to_micros
from holdfast.search.analyzer import TextAnalyzer, split_words
from holdfast.search.query_parser import Period, find_names, parse_query, periods_in, without_names

ANALYZER = TextAnalyzer()
PEOPLE = ["Matilda", "Anna Maria Lopez", "José", "Will"]


def senders(query: str, people: list[str] = PEOPLE) -> set[str]:
    return set(find_names(split_words(query), people)[0])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What does Matilda paint?", {"Matilda"}),
        ("What is Matilda's plan?", {"Matilda"}),
        ("matilda and jose", {"Matilda", "José"}),
        ("Where does Anna live?", {"Anna Maria Lopez"}),
        ("Will it rain?", set()),
        ("What will Matilda do?", {"Matilda"}),
        ("What did Will say?", {"Will"}),
        ("What is matildaan?", set()),
        ("", set()),
    ],
)
def test_a_query_names_participants(query: str, expected: set[str]) -> None:
    assert senders(query) == expected


def test_a_first_name_that_two_share_needs_the_whole_name() -> None:
    people = ["Anna Lopez", "Anna Smith"]
    assert senders("What did Anna say?", people) == set()
    assert senders("What did Anna Smith say?", people) == {"Anna Smith"}


def test_roles_are_not_names_and_a_single_participant_is_not_told_apart() -> None:
    assert senders("what did the user say to the assistant", ["user", "assistant", "Bob"]) == set()
    assert senders("What did Matilda say?", ["Matilda"]) == set()


def test_names_are_left_out_of_the_terms_and_of_the_text_to_embed() -> None:
    assert parse_query("Matilda paints", ANALYZER, PEOPLE).terms == parse_query("paints", ANALYZER, PEOPLE).terms
    assert without_names("What is Matilda's plan for José?", PEOPLE) == "What is plan for ?"
    assert without_names("Matilda", PEOPLE) == "Matilda"
    assert without_names("what is the plan", PEOPLE) == "what is the plan"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("When did she go?", True),
        ("How long has it been?", True),
        ("What did she say when it rained?", False),
        ("¿Cuándo fue la fiesta?", True),
        ("Wann war das?", True),
        ("会议是什么时候？", True),
        ("Когда это было?", True),
        ("Where is it?", False),
        ("我喜欢什么？", False),
    ],
)
def test_queries_that_ask_for_a_time(query: str, expected: bool) -> None:
    assert parse_query(query, ANALYZER, []).wants_time is expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("on 7 May 2023", [Period(2023, 5, 7)]),
        ("May 7th, 2023", [Period(2023, 5, 7)]),
        ("the 3rd of June", [Period(None, 6, 3)]),
        ("in August", [Period(None, 8)]),
        ("in July 2022 and in March 2023", [Period(2022, 7), Period(2023, 3)]),
        ("2023-05-07", [Period(2023, 5, 7)]),
        ("2023-05", [Period(2023, 5)]),
        ("during 2021", [Period(2021)]),
        ("2023年5月7日", [Period(2023, 5, 7)]),
        ("5月7日", [Period(None, 5, 7)]),
        ("2023年", [Period(2023)]),
        ("el 7 de mayo de 2023", [Period(2023, 5, 7)]),
        ("am 7. März 2023", [Period(2023, 3, 7)]),
        ("may I march on", []),
        ("2023-13-45", []),
        ("order 20231 of 12", []),
    ],
)
def test_dates_in_a_query(query: str, expected: list[Period]) -> None:
    assert periods_in(query) == expected


def test_a_period_spans_its_days_in_the_years_it_leaves_open() -> None:
    start, end = Period(2024, 2).spans([])[0]
    assert start == to_micros(datetime(2024, 2, 1, tzinfo=UTC))
    assert end == to_micros(datetime(2024, 3, 1, tzinfo=UTC))
    assert len(Period(None, 12, 31).spans([2022, 2023])) == 2
    assert len(Period(None, 2, 29).spans([2023, 2024])) == 1


@pytest.mark.parametrize(
    "query", ["what did I buy", "mi coche", "wo ist mein Auto", "我的车", "где моя машина", "I'm lost"]
)
def test_the_first_person_is_heard(query: str) -> None:
    assert parse_query(query, ANALYZER, []).first_person


def test_stop_words_go_but_not_if_nothing_else_is_there() -> None:
    assert parse_query("what is the plan", ANALYZER, []).terms == parse_query("plan", ANALYZER, []).terms
    assert parse_query("to be or not to be", ANALYZER, []).terms


def test_an_explanation_says_how_a_query_was_read() -> None:
    described = parse_query("When did Matilda leave in May 2023?", ANALYZER, PEOPLE).describe()
    assert described == {"terms": "3", "names": "Matilda", "dates": "2023-05", "asks_for": "a time"}


@given(st.text(max_size=200), st.lists(st.text(max_size=20), max_size=5))
def test_any_query_can_be_read(query: str, people: list[str]) -> None:
    parse_query(query, ANALYZER, people)
    without_names(query, people)
