"""Explains fields of a request that there are not: which one is probably meant.

A request may hold a key in the wrong place, so only names that everybody uses, such as `user`, are repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args

from holdfast.domain.call_errors import USUAL_NAMES, likely_name

# Returns the types of a type's fields by name, or None if it has no fields.
FieldTypes = Callable[[Any], Mapping[str, Any] | None]


def explain_unknown(wrong: str, known: Sequence[str], noun: str = "field") -> tuple[str | None, str]:
    """Return the wrong name, if it may be repeated, and the problem."""
    found = likely_name(wrong, known)
    if found is None:
        return None, f"has an unknown {noun}; known are {', '.join(known) or 'none'}"
    if wrong in USUAL_NAMES:
        return wrong, f"is not a {noun} here; did you mean {found}?"
    return None, f"has an unknown {noun}; did you mean {found}?"


def names_at(kind: Any, location: Sequence[int | str], fields: FieldTypes) -> tuple[str, ...]:
    """Return the names of the fields of the object at a location, such as `("messages", 0)`, in a type."""
    found = list(_objects_in(kind, fields))
    for part in location:
        if inner := [each[part] for each in found if isinstance(part, str) and part in each]:
            found = [each for within in inner for each in _objects_in(within, fields)]
    return tuple(dict.fromkeys(name for each in found for name in each))


def _objects_in(kind: Any, fields: FieldTypes) -> Iterator[Mapping[str, Any]]:
    """Yield the fields of each type with fields in a type such as `list[Message] | None`."""
    if (own := fields(kind)) is not None:
        yield own
        return
    for part in get_args(kind):
        yield from _objects_in(part, fields)
