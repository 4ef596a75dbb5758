"""Resolve time phrases against the moment they were said: only those with one meaning.

A phrase that may mean two days ("last Friday", said on a Saturday) resolves to nothing. A month or a year counts from
its first day. Days are those of the zone of `said_at`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

MONTHS = "january february march april may june july august september october november december".split()
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "ten": 10}
PREPOSITIONS = "in|since|from|back in|until|till"

# "mar" and "may" are names and verbs as well: of the short forms, those that are nothing else.
_SHORT_MONTHS = {
    "jan": 1,
    "feb": 2,
    "apr": 4,
    "jun": 6,
    "jul": 7,
    "aug": 8,
    "sep": 9,
    "sept": 9,
    "oct": 10,
    "nov": 11,
    "dec": 12,
}
_SEASONS = "spring|summer|autumn|fall|winter"

_MONTH = "|".join((*MONTHS, *sorted(_SHORT_MONTHS, key=len, reverse=True)))
_WEEKDAY = "|".join(WEEKDAYS)
_DAY = r"(?:the )?(?P<day>\d{1,2})(?:st|nd|rd|th)? (?:of )?"
_YEAR = r"(?:19|20)\d\d"
_PHRASE = (
    r"(?P<named>today|this morning|tonight|yesterday|last night|tomorrow)"
    rf"|(?P<which>last|next|this) (?P<unit>week|weekend|month|year|{_WEEKDAY})"
    rf"|(?P<season>(?:last|next|this) (?:{_SEASONS}))"
    r"|(?P<feast>(?:at|for|over|on) (?:easter|christmas|xmas|new year(?:'s)?(?: eve| day)?|thanksgiving"
    r"|halloween|ramadan"
    r"|eid|hanukkah|passover|midsummer|carnival|pentecost|diwali|chinese new year))"
    rf"|(?P<count>{'|'.join(COUNTS)}|\d{{1,2}}) (?P<units>day|week|month|year)s? ago"
    rf"|(?:on )?(?:{_DAY}(?P<month>{_MONTH})(?:,? (?P<year>{_YEAR}))?)"
    rf"|(?:on )?(?P<month2>{_MONTH}) (?:the )?(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:,? (?P<year2>{_YEAR}))?"
    rf"|(?:on )?(?P<iso>{_YEAR}-\d\d-\d\d)"
    rf"|on (?P<weekday>{_WEEKDAY})"
    rf"|(?P<from3>{PREPOSITIONS}) (?:(?P<month3>{_MONTH}) )?(?P<year3>{_YEAR})"
    rf"|(?P<from4>{PREPOSITIONS}) (?P<month4>{_MONTH})"
    rf"|from (?:the )?(?P<first>\d{{1,2}})(?:st|nd|rd|th)? (?:to|until|till) "
    rf"(?:the )?(?P<day5>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<month5>{_MONTH})"
    rf"|in (?P<ahead>{'|'.join(COUNTS)}|\d{{1,2}}) (?P<ahead_units>day|week|month|year)s?"
)
_CLOCK = r"(?P<clock> at \d{1,2}(?::\d\d)?(?: ?[ap]m)?)?"
_LEADING = re.compile(rf"(?:(?:just|only) )?(?P<phrase>{_PHRASE})(?: |$)", re.IGNORECASE)
_TRAILING = re.compile(
    rf"(?:^| )(?:(?:just|only|back|about|around|over|almost) )?(?P<phrase>(?:{_PHRASE}){_CLOCK})$", re.IGNORECASE
)
_WHOLE = re.compile(rf"(?:{_PHRASE}){_CLOCK}", re.IGNORECASE)

_ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class When:
    """A resolved time: its text for a sentence, and its first day if that is certain."""

    text: str
    since: datetime | None


def take_leading(text: str) -> tuple[str | None, str]:
    """Split off the time phrase at the start of the text; return it and the rest."""
    found = _LEADING.match(text)
    return (found["phrase"], text[found.end() :]) if found else (None, text)


def take_trailing(text: str) -> tuple[str | None, str]:
    """Split off the time phrase at the end of the text; return it and the text before it."""
    found = _TRAILING.search(text)
    return (found["phrase"], text[: found.start()]) if found else (None, text)


def resolve(phrase: str, said_at: datetime, *, ahead: bool = False) -> When | None:
    """Resolve a phrase, or return None. With `ahead`, it means a future time; otherwise a past one."""
    found = _WHOLE.fullmatch(phrase)
    if found is None:
        return None
    midnight = said_at.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        parts = {name: text.lower() for name, text in found.groupdict().items() if text}
        when = _resolve_parts(parts, midnight, ahead)
    except (ValueError, OverflowError):
        return None
    if when is None or (when.since is not None and not ahead and when.since > midnight):
        return None
    return replace(when, text=when.text + parts.get("clock", ""))


def day_of_year(text: str) -> str | None:
    """Format a day and month for a sentence, with the year if one is given: "on 3 May", "on 3 May 1990"."""
    found = _WHOLE.match(text)
    if found is None:
        return None
    try:
        day, month, year = _day_and_month({name: value.lower() for name, value in found.groupdict().items() if value})
        datetime(year or 2000, month, day)  # noqa: DTZ001 - only checks that the day exists
    except ValueError:
        return None
    return f"on {day} {MONTHS[month - 1].title()}" + (f" {year}" if year else "")


def is_past(phrase: str) -> bool:
    """True if a time phrase can only mean the past."""
    return re.match(r"yesterday|last |since |back in |.* ago$", phrase, re.IGNORECASE) is not None


def long_date(moment: datetime) -> str:
    return f"{moment.day} {MONTHS[moment.month - 1].title()} {moment.year}"


def _resolve_parts(parts: dict[str, str], midnight: datetime, ahead: bool) -> When | None:
    if "named" in parts:
        shift = {"yesterday": -1, "last night": -1, "tomorrow": 1}.get(parts["named"], 0)
        return _on(midnight + shift * _ONE_DAY)
    if "which" in parts:
        return _relative(parts["which"], parts["unit"], midnight)
    if "units" in parts:
        return _ago(parts["count"], parts["units"], midnight)
    if "weekday" in parts:
        return _near_weekday(WEEKDAYS.index(parts["weekday"]), midnight, ahead)
    if "iso" in parts:
        return _on(datetime.fromisoformat(parts["iso"]).replace(tzinfo=midnight.tzinfo))
    if "season" in parts or "feast" in parts:
        return None
    if "ahead" in parts:
        return _in_some_time(parts["ahead"], parts["ahead_units"], midnight, ahead)
    if "year3" in parts:
        return _in_period(int(parts["year3"]), parts.get("month3"), midnight, parts["from3"])
    if "month4" in parts:
        return _in_month(parts["month4"], midnight, ahead, parts["from4"])
    if "month5" in parts:
        return _in_days(parts, midnight, ahead)
    return _absolute(parts, midnight, ahead)


def _on(day: datetime) -> When:
    return When(f"on {long_date(day)}", day)


def _in_period(year: int, month: str | None, midnight: datetime, preposition: str = "in") -> When:
    """Resolve a month or a year. A period that only has an end ("until June") has no certain first day."""
    number = _month_number(month) if month else 1
    preposition = {"back in": "in", "till": "until"}.get(preposition, preposition)
    text = f"{preposition} {MONTHS[number - 1].title()} {year}" if month else f"{preposition} {year}"
    first = midnight.replace(year=year, month=number, day=1)
    return When(text, None if preposition == "until" else first)


def _in_month(month: str, midnight: datetime, ahead: bool, preposition: str) -> When:
    """Resolve a month without a year: the nearest one in that direction."""
    number = _month_number(month)
    forward = ahead or preposition in ("until", "till", "from")
    year = midnight.year + (number < midnight.month if forward else -(number > midnight.month))
    return _in_period(year, month, midnight, preposition)


def _in_days(parts: dict[str, str], midnight: datetime, ahead: bool) -> When:
    """Resolve "from 5 to 9 July"."""
    number = _month_number(parts["month5"])
    first = midnight.replace(month=number, day=int(parts["first"]))
    last = midnight.replace(month=number, day=int(parts["day5"]))
    if ahead and last < midnight:
        first = first.replace(year=first.year + 1)
    elif not ahead and first > midnight:
        first = first.replace(year=first.year - 1)
    return When(f"from {first.day} to {last.day} {MONTHS[number - 1].title()} {first.year}", first)


def _in_some_time(count: str, unit: str, midnight: datetime, ahead: bool) -> When | None:
    """Resolve "in two weeks"; looking back, it says how long something took."""
    if not ahead:
        return None
    number = COUNTS.get(count) or int(count)
    if unit == "day":
        return _on(midnight + number * _ONE_DAY)
    plural = unit if number == 1 else f"{unit}s"
    return When(f"about {number} {plural} after {long_date(midnight)}", None)


def _month_number(month: str) -> int:
    return _SHORT_MONTHS.get(month) or MONTHS.index(month) + 1


def _relative(which: str, unit: str, midnight: datetime) -> When | None:
    step = {"last": -1, "this": 0, "next": 1}[which]
    if unit in WEEKDAYS:
        return _weekday_of_another_week(step, WEEKDAYS.index(unit), midnight)
    if unit == "year":
        return _in_period(midnight.year + step, None, midnight)
    if unit == "month":
        months = midnight.year * 12 + midnight.month - 1 + step
        return _in_period(months // 12, MONTHS[months % 12], midnight)
    if step == 0:
        return None
    side = "before" if step < 0 else "after"
    period = "in the week" if unit == "week" else "on the weekend"
    return When(f"{period} {side} {long_date(midnight)}", None)


def _weekday_of_another_week(step: int, weekday: int, midnight: datetime) -> When | None:
    """Resolve only if the nearest such day lies in another week, so that both readings are the same day."""
    today = midnight.weekday()
    if step < 0 and weekday >= today:
        return _on(midnight - (7 - (weekday - today)) * _ONE_DAY)
    if step > 0 and weekday <= today:
        return _on(midnight + (7 - (today - weekday)) * _ONE_DAY)
    return None


def _near_weekday(weekday: int, midnight: datetime, ahead: bool) -> When | None:
    distance = (weekday - midnight.weekday()) % 7
    if distance == 0:
        return None
    return _on(midnight + (distance if ahead else distance - 7) * _ONE_DAY)


def _ago(count: str, unit: str, midnight: datetime) -> When | None:
    number = COUNTS.get(count) or int(count)
    if not number:
        return None
    if unit == "day":
        return _on(midnight - number * _ONE_DAY)
    plural = unit if number == 1 else f"{unit}s"
    return When(f"about {number} {plural} before {long_date(midnight)}", None)


def _day_and_month(parts: dict[str, str]) -> tuple[int, int, int | None]:
    """Return the day, the month and the year, if one is given; `ValueError` if there is no day."""
    day, month, year = (parts.get(name) or parts.get(f"{name}2") for name in ("day", "month", "year"))
    if day is None or month is None:
        raise ValueError("no day of a month")
    return int(day), _month_number(month), int(year) if year else None


def _absolute(parts: dict[str, str], midnight: datetime, ahead: bool) -> When:
    day, month, year = _day_and_month(parts)
    if year is not None:
        return _on(midnight.replace(year=year, month=month, day=day))
    this_year = midnight.replace(month=month, day=day)
    if ahead and this_year < midnight:
        return _on(this_year.replace(year=midnight.year + 1))
    if not ahead and this_year > midnight:
        return _on(this_year.replace(year=midnight.year - 1))
    return _on(this_year)
