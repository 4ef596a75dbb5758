"""Validation of numbers and flags. A bool is not accepted as a number, although Python's `bool` is an `int`."""

from __future__ import annotations

import math

from holdfast.errors import InvalidInput

MAX_SECONDS = 86_400.0


def checked_whole(value: object, field: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(field, f"must be a whole number from {least:,} to {most:,}, not {value!r:.40}")
    return value


def checked_real(value: object, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise InvalidInput(field, f"must be a number, not {value!r:.40}")
    return value


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer too large for a float
        return False


def checked_flag(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(field, f"must be True or False, not {value!r:.40}")
    return value


def checked_seconds(value: object, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_SECONDS:
        raise InvalidInput(field, f"must be a number of seconds above 0 and up to {MAX_SECONDS:,.0f}")
    return float(value)
