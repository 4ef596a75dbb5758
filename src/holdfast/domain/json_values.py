"""The one way in which values become JSON: dataclasses by their fields, enumerations as words, times in ISO 8601 UTC.

`to_dict` and `to_json` of results, `--json` of the commands and the control plane's views are made with it. Bytes
become base64, exact decimals texts, sets sorted lists. A field that is marked as `SECRET` is left out.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from functools import cache
from math import isfinite
from typing import Any

from holdfast.domain.presentable import is_secret


def to_plain(value: Any, as_object: Callable[[Any], Any] | None = None, digits: int | None = None) -> Any:
    """Return a value as dictionaries, lists, texts, numbers, True, False and None.

    `as_object` encodes dataclasses, instead of all their fields by name. `digits` rounds floats.
    """

    def encode(value: Any) -> Any:
        if value is None or type(value) in (str, int, bool):
            return value
        if isinstance(value, Enum):
            return word_of(value)
        if isinstance(value, float):
            return _number(value, digits)
        if is_dataclass(value):
            if as_object is not None:
                return as_object(value)
            return {name: encode(getattr(value, name)) for name in shown_fields(value.__class__)}
        if isinstance(value, Mapping):
            return {str(encode(name)): encode(item) for name, item in value.items()}
        if isinstance(value, Set):
            return sorted(map(encode, value))
        if isinstance(value, Sequence) and not isinstance(value, str | bytes):
            return list(map(encode, value))
        return _text(value)

    return encode(value)


def write_json(value: object, indent: int | None = None) -> str:
    return json.dumps(to_plain(value), ensure_ascii=False, indent=indent)


def word_of(member: Enum) -> str:
    """Return the word of a member of an enumeration, also where its value is a number."""
    return member.value if isinstance(member.value, str) else member.name.lower()


@cache
def shown_fields(kind: Any) -> tuple[str, ...]:
    """Return the names of a dataclass's fields, without the secret ones."""
    return tuple(each.name for each in fields(kind) if not is_secret(each))


def format_utc(moment: datetime) -> str:
    return (moment if moment.tzinfo in (UTC, None) else moment.astimezone(UTC)).isoformat()


def _number(value: float, digits: int | None) -> float | str:
    if isfinite(value):
        return value if digits is None else round(value, digits)
    # JSON has neither; `wire.py` writes them so, too.
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _text(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_utc(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, str | int):
        return str(value) if isinstance(value, str) else int(value)
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")
