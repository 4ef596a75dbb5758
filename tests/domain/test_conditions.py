"""Conditions: valid comparisons, size limits, and the JSON round trip."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import TypeAdapter

from holdfast.domain.conditions import (
    MAX_DEPTH,
    MAX_LEAVES,
    MAX_VALUES,
    AllOf,
    AnyOf,
    Compare,
    Condition,
    Field,
    Not,
    Op,
)
from holdfast.domain.memory import Plane
from holdfast.errors import InvalidInput

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANA: Any = Compare(Field.SENDER, Op.EQ, "Ana")


def compare(field: Any, op: Any, value: Any) -> Compare:
    return Compare(field, op, value)


def test_plain_texts_are_read_as_what_they_mean() -> None:
    assert compare("plane", "eq", "resource") == Compare(Field.PLANE, Op.EQ, Plane.RESOURCE)
    assert compare("said_at", "gte", "2026-03-01T12:00:00Z") == Compare(Field.SAID_AT, Op.GTE, NOON)
    assert compare("sender", "in", ["a", "b"]).value == ("a", "b")
    assert AllOf([ANA]) == AllOf((ANA,))


@pytest.mark.parametrize(
    ("field", "op", "value", "named"),
    [
        ("age", "eq", "x", "condition.field"),
        (None, "eq", "x", "condition.field"),
        ("sender", "like", "x", "condition.op"),
        ("sender", "gt", "x", "condition.op"),
        ("plane", "lte", "resource", "condition.op"),
        ("sender", "eq", 5, "condition.value"),
        ("sender", "eq", "", "condition.value"),
        ("sender", "eq", ["x"], "condition.value"),
        ("sender", "in", "x", "condition.value"),
        ("sender", "in", [], "condition.value"),
        ("sender", "in", ["x", None], "condition.value"),
        ("sender", "in", ["x"] * (MAX_VALUES + 1), "condition.value"),
        ("source", "eq", "x" * 5_000, "condition.value"),
        ("plane", "eq", "attic", "condition.value"),
        ("said_at", "gt", 1_700_000_000_000_000, "condition.value"),
        ("said_at", "in", ["noon"], "condition.value"),
    ],
)
def test_what_cannot_be_compared_is_refused_by_name(field: Any, op: Any, value: Any, named: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        compare(field, op, value)
    assert refused.value.field == named


@pytest.mark.parametrize("wrong", [None, "x", 5, [], (), [None], [ANA, "x"], {"a": 1}, iter([ANA])])
@pytest.mark.parametrize("join", [AllOf, AnyOf])
def test_only_conditions_are_joined(join: Any, wrong: Any) -> None:
    with pytest.raises(InvalidInput):
        join(wrong)


@pytest.mark.parametrize("wrong", [None, "x", [ANA], ()])
def test_only_a_condition_is_negated(wrong: Any) -> None:
    with pytest.raises(InvalidInput):
        Not(wrong)


def test_conditions_are_bounded_in_depth_and_number() -> None:
    nested: Condition = ANA
    for _ in range(MAX_DEPTH - 1):
        nested = Not(nested)
    with pytest.raises(InvalidInput, match="deeper"):
        Not(nested)
    many = AnyOf((ANA,) * (MAX_LEAVES // 2))
    assert AllOf((many, many))
    with pytest.raises(InvalidInput, match="more than"):
        AllOf((many, many, ANA))


def test_a_condition_survives_being_written_as_json() -> None:
    whole: Condition = AllOf(
        (
            AnyOf((ANA, Compare(Field.PLANE, Op.NE, Plane.RESOURCE), Compare(Field.SENDER, Op.EQ, "2026-03-01"))),
            Not(Compare(Field.SAID_AT, Op.IN, (NOON,))),
            AnyOf((Compare(Field.CHANNEL, Op.IN, ("mail", "2026-03-01T00:00:00Z")),)),
        )
    )
    written: TypeAdapter[Condition] = TypeAdapter(Condition)
    assert written.validate_json(written.dump_json(whole)) == whole
