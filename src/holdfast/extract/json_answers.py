"""Read JSON that a model or its server wrote: it may have any form, and nothing in it is believed."""

from __future__ import annotations

import json
from typing import Any

_MOST_TOKENS = 10**9


class InvalidAnswer(Exception):
    """The answer cannot be used. The message says why, without quoting it."""


def decode_json(text: str | bytes, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    raise InvalidAnswer(f"{name} is not JSON")


def value_at(value: Any, *path: str | int) -> Any:
    """Return the value at a path, or None."""
    for step in path:
        if isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def count_at(value: Any, *path: str | int) -> int:
    """Return the number of tokens at a path; 0 if it cannot be believed."""
    count = value_at(value, *path)
    usable = isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= _MOST_TOKENS
    return count if usable else 0
