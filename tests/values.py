"""Strategies for all values of our types, and their exact comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from holdfast.domain.arguments import Rule, unwrap_type
from holdfast.domain.checks import Scalar
from holdfast.domain.contract import SourceRef
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.memory import Validity
from holdfast.domain.scope import Scope

WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=30).filter(str.strip)
MOMENTS = st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.replace(fold=0))  # UTC has no folds
PLACES = st.builds(Scope, WORDS, conversation=WORDS, **dict.fromkeys(("app", "subject", "run"), st.none() | WORDS))
SCOPES = PLACES | st.builds(Scope, WORDS)  # users belong to a whole space
TARGETS = st.builds(ForgetTarget, ids=st.lists(WORDS, min_size=1, max_size=3).map(tuple)) | st.builds(
    ForgetTarget, conversation=WORDS, subject=st.none() | WORDS
)
TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"))
# A value of metadata: no NaN and no infinity.
SCALARS = st.one_of(
    TEXTS, st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none()
)


PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: WORDS,
    int: st.integers(1, 1_000),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    bytes: st.binary(max_size=50),
    datetime: MOMENTS,
    NoneType: st.none(),
    Mapping: st.dictionaries(WORDS, TEXTS),
    Scope: SCOPES,
    ForgetTarget: TARGETS,
    Validity: st.builds(Validity, since=st.none() | MOMENTS),
    Decimal: st.decimals(allow_nan=False, allow_infinity=False),
    Any: st.none() | st.booleans() | st.integers(-1_000, 1_000) | WORDS,
}
CURRENCIES = st.sampled_from(["USD", "EUR", "JPY"])


def is_scalar(kind: Any) -> bool:
    return set(get_args(kind)) == set(get_args(Scalar))


@cache
def anything(kind: Any) -> st.SearchStrategy[Any]:
    """A strategy for all values of a type."""
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if isinstance(kind, NewType):
        return anything(kind.__supertype__)
    if origin is Mapping and (parts[0] is not str or parts[1] is int or is_scalar(parts[1])):
        return st.dictionaries(anything(parts[0]), anything(parts[1]), max_size=3)
    if origin in PLAIN:
        return PLAIN[origin]
    if is_scalar(kind):
        return SCALARS
    if origin in (Union, UnionType):
        return st.one_of([anything(part) for part in parts])
    if origin is Sequence:
        return st.lists(anything(parts[0]), max_size=3)
    if origin is tuple and parts[-1:] == (...,):
        return st.lists(anything(parts[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*(anything(part) for part in parts))
    if origin is frozenset:
        return st.frozensets(anything(parts[0]), min_size=1, max_size=5)
    if origin is dict:
        return st.dictionaries(anything(parts[0]), anything(parts[1]), max_size=3)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(kind)
    assert is_dataclass(origin), f"no values are known of {kind}: add them here"
    values = {**dict(zip(getattr(origin, "__parameters__", ()), parts, strict=True))}
    hints = {name: values.get(hint, hint) for name, hint in get_type_hints(origin).items()}
    declared = get_type_hints(origin, include_extras=True)
    return st.deferred(
        lambda: built(origin, {each.name: valid(declared[each.name], hints[each.name]) for each in fields(origin)})
    )


@st.composite
def built(draw: st.DrawFn, kind: Any, strategies: Mapping[str, st.SearchStrategy[Any]]) -> Any:
    names = [each.name for each in fields(kind) if each.init]
    return construct(kind, **{name: draw(CURRENCIES if name == "currency" else strategies[name]) for name in names})


def valid(declared: Any, hint: Any) -> st.SearchStrategy[Any]:
    """A strategy for all values of a field; numbers are within their declared limits."""
    about: list[Any] = []
    kind, optional = unwrap_type(declared, about)
    rule = next((part for part in about if isinstance(part, Rule) and part.least is not None), None)
    if rule is None or kind not in (int, float):
        return anything(hint)
    numbers = st.integers(rule.least, rule.most) if kind is int else st.floats(rule.least, rule.most)
    return st.none() | numbers if optional else numbers


def construct(kind: Any, /, **values: Any) -> Any:
    """A value whose source, if it has one, is of the space of its scope."""
    if isinstance(scope := values.get("scope"), Scope) and isinstance(source := values.get("source"), SourceRef):
        values["source"] = replace(source, space=scope.space)
    return kind(**values)


def exact(value: Any) -> Any:
    """A value as nested tuples, lists and dictionaries, with the class of each dataclass."""
    if is_dataclass(value):
        return type(value), {each.name: exact(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return type(value), {name: exact(found) for name, found in value.items()}
    return type(value)(map(exact, value)) if isinstance(value, tuple | list) else value
