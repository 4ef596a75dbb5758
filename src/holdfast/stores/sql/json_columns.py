"""Convert between domain values and rows or JSON, by the types of their fields.

Times are microseconds, and decimals are text, so that they stay exact. The JSON is ASCII, so that any text from outside
can be stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from functools import cache, partial
from types import NoneType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from holdfast.domain.times import from_micros, to_micros

T = TypeVar("T")


def as_json(value: object) -> str:
    return json.dumps(to_entry(value), separators=(",", ":"))


def to_entry(value: Any) -> Any:
    """Convert a value to one for JSON. Empty fields are left out, if that is their default."""
    if is_dataclass(value):
        found = [(each, getattr(value, each.name)) for each in fields(value)]
        return {each.name: to_entry(content) for each, content in found if not _is_left_out(each, content)}
    if isinstance(value, datetime):
        return to_micros(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    return [to_entry(each) for each in value] if isinstance(value, tuple) else value


def _is_left_out(field: Field[Any], content: Any) -> bool:
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return content is None or (not content and content == default)


def column_values(value: object, names: Iterable[str]) -> list[Any]:
    """Return the values of columns that are named as fields. A compound value is stored as JSON."""
    entries = [to_entry(getattr(value, name)) for name in names]
    return [as_json(each) if isinstance(each, dict | list) else each for each in entries]


def from_entry(kind: type[T], entry: Mapping[str, Any]) -> T:
    """Build a value from its JSON. Fields that are missing or null have their default."""
    decoders = _decoders(cast(type, kind))
    return kind(**{name: decoders[name](entry[name]) for name in decoders if entry.get(name) is not None})


def builder_of(kind: type[T], columns: str) -> Callable[[Sequence[Any]], T]:
    """Return a function that builds a value from a row with these columns, which are named as its fields.

    A field whose column is NULL has its default, or None.
    """
    names = columns.split(", ")
    required = [each.name for each in fields(kind) if each.default is each.default_factory is MISSING]  # type: ignore[arg-type]

    def build(row: Sequence[Any]) -> T:
        decoders = _column_decoders(cast(type, kind))
        found = {name: decoders[name](value) for name, value in zip(names, row, strict=True) if value is not None}
        return kind(**{**dict.fromkeys(required), **found})

    return build


@cache
def _decoders(kind: type) -> dict[str, Callable[[Any], Any]]:
    return {name: _decoder(_without_none(hint)) for name, hint in get_type_hints(kind).items()}


@cache
def _column_decoders(kind: type) -> dict[str, Callable[[Any], Any]]:
    return {name: _column_decoder(_without_none(hint)) for name, hint in get_type_hints(kind).items()}


def _column_decoder(hint: Any) -> Callable[[Any], Any]:
    """Return the decoder of a column: a compound value is stored as JSON."""
    decode = _decoder(hint)
    if is_dataclass(hint) or get_origin(hint) is not None:
        return lambda text: decode(json.loads(text))
    return decode


def _without_none(hint: Any) -> Any:
    """Return the type of an optional value."""
    return next(each for each in get_args(hint) if each is not NoneType) if NoneType in get_args(hint) else hint


def _decoder(hint: Any) -> Callable[[Any], Any]:
    origin = get_origin(hint)
    if origin is Mapping:
        key = _decoder(get_args(hint)[0])
        return lambda entry: {key(name): content for name, content in entry.items()}
    if origin in (tuple, frozenset):
        one = _decoder(get_args(hint)[0])
        return lambda entry: origin(map(one, entry))
    if hint is datetime:
        return from_micros
    if is_dataclass(hint):
        return partial(from_entry, cast(type, hint))
    return hint if isinstance(hint, type) and issubclass(hint, Enum | Decimal | bool) else lambda found: found
