"""Timestamps: aware and in UTC; stored and computed with as microseconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from holdfast.errors import InvalidTimestamp

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# 1973 in milliseconds, and the year 5138 in seconds.
_LEAST_MILLISECONDS = 10**11
# The last day of the calendar is excluded, so that adding to a timestamp cannot overflow.
_MOST_MILLISECONDS = (datetime(9999, 12, 31, tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)


def to_micros(moment: datetime) -> int:
    return (moment - EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def checked_time(value: object, field: str) -> datetime:
    """Parse a datetime or an ISO 8601 text. Without a zone it is read as UTC.

    Bare numbers are refused: seconds and milliseconds cannot be told apart.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise InvalidTimestamp(field, "is not an ISO 8601 time such as 2026-11-15T09:30:00Z") from None
    if not isinstance(value, datetime):
        kind = type(value).__name__
        raise InvalidTimestamp(field, f"expected a datetime or an ISO 8601 text, got {kind}")
    if value.utcoffset() is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidTimestamp(field, "is outside the years 1 to 9999 in UTC") from None


def checked_milliseconds(value: object, field: str) -> datetime:
    """Parse integer milliseconds since 1970. Values that look like seconds are refused, except 0."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidTimestamp(field, f"expected whole milliseconds since 1970, got {type(value).__name__}")
    if 0 < value < _LEAST_MILLISECONDS:
        raise InvalidTimestamp(field, f"is in milliseconds since 1970; {value} looks like seconds: multiply by 1,000")
    if not 0 <= value <= _MOST_MILLISECONDS:
        raise InvalidTimestamp(field, "is outside the years 1970 to 9999, in milliseconds since 1970")
    return from_micros(value * 1_000)
