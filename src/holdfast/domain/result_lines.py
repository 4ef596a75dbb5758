"""Results in one line each. Texts are shortened, lists counted, and no secret is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from itertools import islice
from typing import Any

from holdfast.domain.json_values import word_of
from holdfast.domain.presentable import Presentable, PresentableList, is_secret

MAX_CHARS = 120
MAX_LINES = 50
# The longest text of a field; if the line is too long with one, the next is tried.
_ROOMS = range(96, 7, -4)
_MAX_ID_CHARS = 48
_PART_CHARS = 16
_HIDDEN = "<hidden>"


def describe(value: Any) -> str:
    """Describe a dataclass in one line, such as `Hit(score=0.83, text='I moved to Lisbon.', sender='ana')`."""
    facts = _facts(value)
    for room in _ROOMS:
        line = f"{type(value).__name__}({', '.join(_fact(name, found, room) for name, found in facts)})"
        if len(line) <= MAX_CHARS:
            return line
    return f"{line[: MAX_CHARS - 2]}…)"


def describe_all(values: Sequence[Any]) -> str:
    """Describe values as a tuple with one line for each."""
    lines = [repr(value) for value in islice(values, MAX_LINES)]
    lines += [f"… and {len(values) - MAX_LINES:,} more"] if len(values) > MAX_LINES else []
    joined = ",\n ".join(lines)
    return f"({joined},)" if len(values) == 1 else f"({joined})"


def is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str | bytes | Sequence | Set | Mapping) and not value)


def _facts(value: Any) -> list[tuple[str, Any]]:
    items = value._items if isinstance(value, PresentableList) else None
    summary = value._summary if isinstance(value, Presentable) else ()
    facts = []
    for name, default, secret in _parts(value.__class__):
        found = getattr(value, name)
        if secret:
            shown, found = found is not None, Ellipsis
        elif summary:
            shown = name in summary and not is_empty(found)
        else:
            shown = not (is_empty(found) or found == default or _is_zero(found))
        if shown or name == items:
            facts.append((name, found))
    return sorted(facts, key=lambda fact: summary.index(fact[0]) if fact[0] in summary else len(summary))


def _is_zero(value: object) -> bool:
    return value == 0 and not isinstance(value, bool)


@cache
def _parts(kind: Any) -> tuple[tuple[str, Any, bool], ...]:
    """Return the name and default of each field, and whether it is a secret."""
    return tuple((each.name, each.default, is_secret(each)) for each in fields(kind))


def _fact(name: str, value: Any, room: int) -> str:
    if isinstance(value, Sequence | Set | Mapping) and not isinstance(value, str | bytes):
        return f"{len(value):,} {name.removesuffix('s') if len(value) == 1 else name}"
    if (name == "id" or name.endswith("_id")) and isinstance(value, str) and len(value) <= _MAX_ID_CHARS:
        room = _MAX_ID_CHARS  # a shortened id finds nothing
    return f"{name}={short_value(value, room)}"


def short_value(value: Any, room: int) -> str:
    """Write a single value in about `room` characters."""
    if value is Ellipsis:
        return _HIDDEN
    if isinstance(value, Enum):
        return repr(word_of(value))
    if isinstance(value, str):
        return repr(value if len(value) <= room else f"{value[: room - 1]}…")
    if isinstance(value, datetime):
        return short_time(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    return _describe_part(value, room) if is_dataclass(value) else repr(value)


def _describe_part(value: Any, room: int) -> str:
    """Describe a dataclass inside another one: its own parts are only named."""
    parts = (
        f"{name}={type(found).__name__}(…)" if is_dataclass(found) else _fact(name, found, _PART_CHARS)
        for name, found in _facts(value)
    )
    line = f"{type(value).__name__}({', '.join(parts)})"
    return line if len(line) <= room else f"{type(value).__name__}(…)"


def short_time(moment: datetime) -> str:
    if moment.tzinfo is None:
        return moment.isoformat(" ", "minutes")
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat('T', 'seconds')}Z"
