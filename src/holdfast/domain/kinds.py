"""What callers give where a value of ours is expected: checked behind the gate, so that a refusal has its row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from holdfast.errors import InvalidInput

K = TypeVar("K")


def checked_kind(value: object, kind: type[K], field: str = "request") -> K:
    """The value itself, if it is of that kind."""
    if not isinstance(value, kind):
        name = kind.__name__
        article = "an" if name[0] in "AEIOU" else "a"
        raise InvalidInput(field, f"expected {article} {name}, got {type(value).__name__}")
    return value


def checked_all(given: object, kind: type[K], field: str) -> tuple[K, ...]:
    """All of them, if they are of that kind."""
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise InvalidInput(field, f"expected several {kind.__name__}, got {type(given).__name__}")
    return tuple(checked_kind(each, kind, f"{field}[{place}]") for place, each in enumerate(given))
