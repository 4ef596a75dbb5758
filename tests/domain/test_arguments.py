"""The declared arguments of a request: what surfaces are told about them, and what is refused by name."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, NewType

import pytest

from holdfast.domain.arguments import GROUP, Rule, arguments_of, check_arguments, text_rule, whole_number
from holdfast.errors import InvalidInput, InvalidText, InvalidTimestamp

Name = NewType("Name", str)


class Colour(StrEnum):
    RED = "red"


def check_pair(value: object, name: str) -> None:
    if not isinstance(value, tuple) or len(value) != 2:
        raise InvalidInput(name, "give two")


@dataclass(frozen=True)
class Filter:
    colour: Annotated[Colour | None, "Of this colour."] = None
    since: datetime | None = None


@dataclass(frozen=True)
class Paint:
    scope: str
    text: Annotated[str, text_rule(5), "What to paint."]
    filter: Annotated[Filter, GROUP] = field(default_factory=Filter)
    pair: Annotated[tuple[int, ...], Rule(check_pair, "PAIR")] = (1, 2)
    colours: frozenset[Colour] = frozenset()
    coats: Annotated[int | None, whole_number(1, 3)] = None
    dry: bool = False
    painter: Name | None = None


PAINT = Paint("here", "wall")


def test_arguments_are_the_fields_in_order_with_those_of_groups_and_without_the_scope() -> None:
    found = {each.name: each for each in arguments_of(Paint)}
    assert list(found) == ["text", "colour", "since", "pair", "colours", "coats", "dry", "painter"]
    assert [each.name for each in found.values() if each.required] == ["text"]
    assert [each.name for each in found.values() if each.optional] == ["colour", "since", "coats", "painter"]
    assert (found["text"].help, found["colour"].help, found["dry"].help) == ("What to paint.", "Of this colour.", "")
    assert (found["colour"].path, found["painter"].type, found["colours"].item) == (("filter", "colour"), str, Colour)
    assert found["text"].rule is not None
    assert found["text"].rule.limits == {"min_length": 1, "max_length": 5}


def test_what_is_declared_is_let_through() -> None:
    check_arguments(PAINT)
    full = Filter(Colour.RED, datetime(2026, 1, 1, tzinfo=UTC))
    check_arguments(Paint("here", "wall", full, (3, 4), frozenset(Colour), 3, True, Name("Ana")))


@pytest.mark.parametrize(
    ("wrong", "error", "name"),
    [
        ({"text": None}, InvalidText, "text"),
        ({"text": "ceiling"}, InvalidText, "text"),
        ({"filter": None}, InvalidInput, "filter"),
        ({"filter": Filter("red")}, InvalidInput, "colour"),  # type: ignore[arg-type]
        ({"filter": Filter(since=datetime(2026, 1, 1))}, InvalidTimestamp, "since"),
        ({"pair": (1,)}, InvalidInput, "pair"),
        ({"colours": [Colour.RED]}, InvalidInput, "colours"),
        ({"colours": frozenset({"blue"})}, InvalidInput, "colours"),
        ({"coats": 4}, InvalidInput, "coats"),
        ({"dry": None}, InvalidInput, "dry"),
    ],
)
def test_what_is_not_is_refused_by_its_name(wrong: dict[str, Any], error: type[InvalidInput], name: str) -> None:
    with pytest.raises(error) as caught:
        check_arguments(replace(PAINT, **wrong))
    assert caught.value.field == name
