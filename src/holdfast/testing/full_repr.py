"""Everything that a value holds, as text: for tests that look for what must not be there.

The `repr` of a result is short, and would hide it.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass


def full_repr(value: object) -> str:
    """Return the `repr` of a value, with every field of every dataclass in it."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = (f"{each.name}={full_repr(getattr(value, each.name))}" for each in fields(value))
        return f"{type(value).__name__}({', '.join(parts)})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{full_repr(name)}: {full_repr(found)}" for name, found in value.items()) + "}"
    if isinstance(value, tuple | list | Set):
        return f"({', '.join(map(full_repr, value))})"
    return repr(value)
