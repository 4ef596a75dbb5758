"""Filters as JSON: their meaning as conditions, and the path in the error of an invalid filter."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.domain.conditions import AllOf, AnyOf, Compare, Field, Not, Op
from holdfast.domain.filters import condition_from
from holdfast.errors import InvalidInput, InvalidTimestamp

MS = 1_772_366_400_000
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
JUST_AFTER = NOON.replace(microsecond=1_000)


def chat(name: str) -> Compare:
    return Compare(Field.CONVERSATION, Op.EQ, name)


@pytest.mark.parametrize(
    ("filters", "condition"),
    [
        ({}, None),
        ({"session_id": "chat:a"}, chat("a")),
        ({"session_id": {"eq": "chat:a"}}, chat("a")),
        ({"session_id": {"ne": "chat:a"}}, Not(chat("a"))),
        ({"session_id": "chat:a:b"}, chat("a:b")),
        ({"session_id": "resource:ana:r_1"}, Compare(Field.SOURCE, Op.EQ, "resource:ana:r_1")),
        ({"session_id": "resource:a:b:r_1"}, Compare(Field.SOURCE, Op.EQ, "resource:a:b:r_1")),
        ({"session_id": {"in": ["chat:a", "chat:b"]}}, Compare(Field.CONVERSATION, Op.IN, ("a", "b"))),
        (
            {"session_id": {"in": ["chat:a", "resource:ana:r_1"]}},
            AnyOf((chat("a"), Compare(Field.SOURCE, Op.EQ, "resource:ana:r_1"))),
        ),
        ({"sender_id": "ana"}, Compare(Field.SENDER, Op.EQ, "ana")),
        ({"sender_id": {"in": ["ana"]}}, Compare(Field.SENDER, Op.IN, ("ana",))),
        ({"timestamp": {"gte": MS}}, Compare(Field.SAID_AT, Op.GTE, NOON)),
        ({"timestamp": {"gt": MS}}, Compare(Field.SAID_AT, Op.GTE, JUST_AFTER)),
        ({"timestamp": {"lt": MS}}, Compare(Field.SAID_AT, Op.LT, NOON)),
        ({"timestamp": {"lte": MS}}, Compare(Field.SAID_AT, Op.LT, JUST_AFTER)),
        (
            {"timestamp": MS},
            AllOf((Compare(Field.SAID_AT, Op.GTE, NOON), Compare(Field.SAID_AT, Op.LT, JUST_AFTER))),
        ),
        (
            {"sender_id": "ana", "OR": [{"session_id": "chat:a"}, {"session_id": "chat:b"}]},
            AllOf((Compare(Field.SENDER, Op.EQ, "ana"), AnyOf((chat("a"), chat("b"))))),
        ),
        ({"AND": [{"session_id": "chat:a"}, {"AND": [{"session_id": "chat:b"}]}]}, AllOf((chat("a"), chat("b")))),
    ],
)
def test_filters_mean_a_condition(filters: dict[str, Any], condition: object) -> None:
    assert condition_from(filters, "ana") == condition


def test_clients_of_everos_may_leave_out_the_prefix_and_write_times_as_texts() -> None:
    assert condition_from({"session_id": "demo-001"}, "ana", everos=True) == chat("demo-001")
    assert condition_from({"session_id": "chat:a"}, "ana", everos=True) == chat("a")
    in_text = {"timestamp": {"gt": "2026-03-01T12:00:00.0004Z"}}
    assert condition_from(in_text, "ana", everos=True) == Compare(Field.SAID_AT, Op.GTE, JUST_AFTER)
    with pytest.raises(InvalidTimestamp, match=r"^filters\.timestamp\.lte: .*9999"):
        condition_from({"timestamp": {"lte": "9999-12-31T23:59:59.9999Z"}}, "ana", everos=True)


def test_clients_of_everos_may_give_seconds_and_filter_by_parents_that_nothing_has() -> None:
    in_seconds = condition_from({"timestamp": {"gte": 1_772_366_400}}, "ana", everos=True)
    assert in_seconds == condition_from({"timestamp": {"gte": 1_772_366_400_000}}, "ana")
    never = condition_from({"parent_type": "memcell"}, "ana", everos=True)
    assert never == condition_from({"parent_id": {"in": ["a", "b"]}}, "ana", everos=True)
    assert condition_from({"parent_id": {"ne": "a"}}, "ana", everos=True) == Not(never)
    for wrong, path in (
        ({"gt": "a"}, "filters.parent_id.gt"),
        (5, "filters.parent_id"),
        ({"in": [5]}, "filters.parent_id.in[0]"),
    ):
        with pytest.raises(InvalidInput) as refused:
            condition_from({"parent_id": wrong}, "ana", everos=True)
        assert refused.value.field == path


DEEP: dict[str, Any] = {"sender_id": "x"}
for _ in range(200):
    DEEP = {"OR": [DEEP, {"sender_id": "y"}]}


@pytest.mark.parametrize(
    ("filters", "path"),
    [
        ([], "filters"),
        ("session_id", "filters"),
        ({"AND": []}, "filters.AND"),
        ({"AND": {"sender_id": "x"}}, "filters.AND"),
        ({"OR": ["x"]}, "filters.OR[0]"),
        ({"OR": [{"sender_id": "x"}, {}]}, "filters.OR[1]"),
        ({"NOT": [{"sender_id": "x"}]}, "filters['NOT']"),
        *(({"AND": [{name: "x"}]}, f"filters.AND[0].{name}") for name in ("owner_id", "owner_type", "app_id")),
        ({"project_id": "x"}, "filters.project_id"),
        ({"a b\n": "x"}, "filters['a b\\n']"),
        ({5: "x"}, "filters[5]"),
        ({"sender_id": {}}, "filters.sender_id"),
        ({"sender_id": None}, "filters.sender_id"),
        ({"sender_id": ["x"]}, "filters.sender_id"),
        ({"sender_id": ""}, "filters.sender_id"),
        ({"sender_id": "x" * 5_000}, "filters.sender_id"),
        ({"sender_id": {"gt": "x"}}, "filters.sender_id.gt"),
        ({"sender_id": {"like": "x"}}, "filters.sender_id['like']"),
        ({"sender_id": {"in": "x"}}, "filters.sender_id.in"),
        ({"sender_id": {"in": []}}, "filters.sender_id.in"),
        ({"sender_id": {"in": ["x"] * 1_001}}, "filters.sender_id.in"),
        ({"sender_id": {"in": ["x", 5]}}, "filters.sender_id.in[1]"),
        ({"session_id": 5}, "filters.session_id"),
        ({"session_id": "chat:"}, "filters.session_id"),
        ({"session_id": "resource:r_1"}, "filters.session_id"),
        ({"session_id": "resource:ana:"}, "filters.session_id"),
        ({"session_id": {"lt": "chat:a"}}, "filters.session_id.lt"),
        ({"timestamp": True}, "filters.timestamp"),
        ({"timestamp": 1.5}, "filters.timestamp"),
        ({"timestamp": -1}, "filters.timestamp"),
        ({"timestamp": 10**30}, "filters.timestamp"),
        ({"timestamp": {"gte": MS, "lt": "x"}}, "filters.timestamp.lt"),
        ({"timestamp": {"in": [MS, None]}}, "filters.timestamp.in[1]"),
        ({"timestamp": {"in": [MS] * 33}}, "filters.timestamp.in"),
        ({"OR": [{"sender_id": "x"}] * 65}, "filters.OR"),
        ({"OR": [{"AND": [{"sender_id": "x"}] * 9}] * 9}, "filters.OR"),
        (DEEP, "filters" + ".OR[0]" * 7 + ".OR"),
    ],
)
@pytest.mark.parametrize("everos", [False, True])
def test_what_cannot_be_read_is_refused_by_its_path(filters: Any, path: str, everos: bool) -> None:
    with pytest.raises(InvalidInput) as refused:
        condition_from(filters, "ana", everos=everos)
    assert refused.value.field == path


@pytest.mark.parametrize(
    ("filters", "path"),
    [
        ({"AND": [{"sender_id": "x"}, {"timestamp": "2026-03-01"}]}, "filters.AND[1].timestamp"),
        ({"session_id": "demo-001"}, "filters.session_id"),
        ({"timestamp": {"gte": 1_772_366_400}}, "filters.timestamp.gte"),
        ({"parent_id": "x"}, "filters.parent_id"),
        ({"session_id": {"in": ["chat:a", "b"]}}, "filters.session_id.in[1]"),
    ],
)
def test_what_only_clients_of_everos_may_write_is_refused_to_others(filters: Any, path: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        condition_from(filters, "ana")
    assert refused.value.field == path
    assert condition_from(filters, "ana", everos=True) is not None


def test_seconds_are_refused_with_a_hint() -> None:
    with pytest.raises(InvalidTimestamp, match="multiply by 1,000"):
        condition_from({"timestamp": {"gte": 1_772_366_400}}, "ana")
    assert condition_from({"timestamp": {"gte": 0}}, "ana") is not None


def test_a_session_without_its_prefix_is_refused_with_what_to_write() -> None:
    with pytest.raises(InvalidInput, match="chat:<conversation> or resource:ana:<id>"):
        condition_from({"session_id": "demo-001"}, "ana")
