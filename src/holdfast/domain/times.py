"""Timestamps: aware and in UTC; stored and computed with as microseconds since the epoch."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta
from numbers import Real

from holdfast.errors import InvalidTimestamp

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# Numbers from 1973 to 5138, as seconds and as milliseconds: the two ranges do not overlap.
_LEAST_SECONDS = 10**8
_LEAST_MILLISECONDS = 10**11
_LEAST_MICROSECONDS = 10**14
# Eight digits are an ISO 8601 date; from nine on a text of digits is a number.
_NUMBER = re.compile(r"\d{9,20}(\.\d{1,9})?", re.ASCII)
# The last day of the calendar is excluded, so that adding to a timestamp cannot overflow.
_MOST_MILLISECONDS = (datetime(9999, 12, 31, tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)


def to_micros(moment: datetime) -> int:
    return (moment - EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def checked_time(value: object, field: str) -> datetime:
    """Parse a datetime, a date, an ISO 8601 text, or seconds or milliseconds since 1970. Without a zone it is UTC."""
    return to_utc(parse_time(value, field), field)


def parse_time(value: object, field: str) -> datetime:
    """Parse a time in any form. It has no zone if none was given; numbers never have one.

    Numbers are seconds or milliseconds, by their size. Those that could be neither are refused.
    """
    if isinstance(value, datetime):
        return value
    if isinstance(value, str):
        return _from_number(float(value), field) if _NUMBER.fullmatch(value) else _parse_iso(value, field)
    if isinstance(value, date):
        return datetime.combine(value, time())
    if not isinstance(value, bool) and isinstance(value, Real | int | float):
        return _from_number(value, field)
    kind = type(value).__name__
    raise InvalidTimestamp(
        field, f"expected a datetime, a date, an ISO 8601 text, or seconds or milliseconds since 1970, got {kind}"
    )


def checked_iso_time(value: object, field: str) -> datetime:
    """Parse a datetime or an ISO 8601 text: the only forms in our own formats. Without a zone it is UTC."""
    if isinstance(value, str):
        value = _parse_iso(value, field)
    if not isinstance(value, datetime):
        raise InvalidTimestamp(field, f"expected a datetime or an ISO 8601 text, got {type(value).__name__}")
    return to_utc(value, field)


def to_utc(moment: datetime, field: str) -> datetime:
    if moment.utcoffset() is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise InvalidTimestamp(field, "is outside the years 1 to 9999 in UTC") from None


def _parse_iso(value: str, field: str) -> datetime:
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise InvalidTimestamp(field, "is not an ISO 8601 time such as 2026-11-15T09:30:00Z") from None


def _from_number(value: Real | float, field: str) -> datetime:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not number >= _LEAST_SECONDS:
        raise InvalidTimestamp(
            field,
            "is too small for seconds since 1970, which have ten digits today; give a time before 1973 as a datetime"
            " or as an ISO 8601 text",
        )
    if number >= _LEAST_MICROSECONDS:
        raise InvalidTimestamp(
            field,
            "is too large for milliseconds since 1970, which have 13 digits today; divide microseconds by 1,000 and"
            " nanoseconds by 1,000,000",
        )
    unit = timedelta(seconds=1) if number < _LEAST_MILLISECONDS else timedelta(milliseconds=1)
    whole = int(number)
    return (EPOCH + whole * unit + (number - whole) * unit).replace(tzinfo=None)


def checked_milliseconds(value: object, field: str) -> datetime:
    """Parse integer milliseconds since 1970. Values that look like seconds are refused, except 0."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidTimestamp(field, f"expected whole milliseconds since 1970, got {type(value).__name__}")
    if 0 < value < _LEAST_MILLISECONDS:
        raise InvalidTimestamp(field, f"is in milliseconds since 1970; {value} looks like seconds: multiply by 1,000")
    if not 0 <= value <= _MOST_MILLISECONDS:
        raise InvalidTimestamp(field, "is outside the years 1970 to 9999, in milliseconds since 1970")
    return from_micros(value * 1_000)
