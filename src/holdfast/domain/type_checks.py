"""Type checks of values from callers, made after authorization so that a refusal leaves its audit row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from holdfast.errors import InvalidInput

K = TypeVar("K")


def checked_instance(value: object, kind: type[K], field: str = "request") -> K:
    """Return the value if it is an instance of `kind`."""
    if not isinstance(value, kind):
        name = kind.__name__
        article = "an" if name[0] in "AEIOU" else "a"
        raise InvalidInput(field, f"expected {article} {name}, got {type(value).__name__}")
    return value


def checked_instances(values: object, kind: type[K], field: str) -> tuple[K, ...]:
    """Return the values if all are instances of `kind`."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise InvalidInput(field, f"expected several {kind.__name__}, got {type(values).__name__}")
    return tuple(checked_instance(each, kind, f"{field}[{place}]") for place, each in enumerate(values))
