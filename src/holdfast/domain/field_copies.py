"""Build a value from another one that has fields of the same names."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def copy_fields(kind: type[T], source: object, **changes: Any) -> T:
    """Build a dataclass from the source's attributes of the same names, except those in `changes`."""
    names = (each.name for each in fields(kind))  # type: ignore[arg-type]
    return kind(**{name: getattr(source, name) for name in names if name not in changes}, **changes)
