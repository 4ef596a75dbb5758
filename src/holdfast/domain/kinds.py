"""What callers give where a value of ours is expected: checked behind the gate, so that a refusal has its row."""

from __future__ import annotations

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
