"""Query parser: terms, named participants, whether the query asks for a time, and the dates in it.

Participants are those of the visible records. All of these are hints that reorder records of similar score; a query in
a language without such hints is parsed into words only.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from holdfast.domain.times import to_micros
from holdfast.search.analyzer import TextAnalyzer, is_spaceless, split_words
from holdfast.search.word_lists import DOUBTFUL_MONTHS, FIRST_PERSON, MONTHS, ROLE_NAMES, STOP_WORDS

_MIN_NAME_CHARS = 2
_WANTS_TIME = re.compile(
    r"^\W*(?:when|since when|until when|how long|what (?:time|date|day|month|year)|(?:[io]n |at |by )?(?:which|what) "
    r"(?:date|day|week|month|year|time)|¿?(?:desde |hasta )?cu[aá]ndo|depuis quand|quand|(?:seit |bis )?wann|wie lange"
    r"|(?:da )?quando|desde quando|wanneer|hoe lang|с каких пор|когда|сколько времени|kiedy|när|hvornår|når|milloin)\b"
    r"|\b(?:how long|how many (?:days|weeks|months|years)|combien de temps|cu[aá]nto tiempo|quanto tempo)\b"
    r"|什么时候|何时|几点|哪天|哪一天|哪年|几月|几号|多久|什么时间|いつ|何時|何年|何月|언제|몇 시",
    re.IGNORECASE,
)
_CJK_FIRST_PERSON = re.compile("我|俺|咱|私|僕|俺|나는|내가|나의|저는")
_ISO_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)-(\d{1,2})(?:-(\d{1,2}))?(?!\d)")
_CJK_DATE = re.compile(r"(?:((?:19|20)\d\d)\s*[年년]\s*)?(?<!\d)(\d{1,2})\s*[月월](?:\s*(\d{1,2})\s*[日号일])?")
_CJK_YEAR = re.compile(r"((?:19|20)\d\d)\s*[年년](?!\s*\d{1,2}\s*[月월])")
_TOKEN = re.compile(r"[^\W\d_]+|\d+")
_NAME_LIKE = re.compile(r"\w+(?:['’]\w+)*['’]?")
_DAY = timedelta(days=1)
_LAST_DAY = datetime(9999, 12, 31, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Period:
    """A date in a query. Missing parts match any value."""

    year: int | None = None
    month: int | None = None
    day: int | None = None

    def spans(self, years: Iterable[int]) -> list[tuple[int, int]]:
        """Start and end in microseconds; for each of `years` if the date has no year."""
        found = []
        for year in [self.year] if self.year else years:
            start = _start(year, self.month or 1, self.day or 1)
            end = _end(year, self.month, self.day)
            if start and end:
                found.append((to_micros(start), to_micros(end)))
        return found

    def __str__(self) -> str:
        parts = (f"{self.year}" if self.year else "*", f"{self.month or 0:02}", f"{self.day or 0:02}")
        return "-".join(part for part in parts if part != "00")


def _start(year: int, month: int, day: int) -> datetime | None:
    try:
        return datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None


def _end(year: int, month: int | None, day: int | None) -> datetime | None:
    if day is not None:
        start = _start(year, month or 1, day)
        return start + _DAY if start and start < _LAST_DAY else start
    return _start(year + 1, 1, 1) if month in (None, 12) else _start(year, (month or 1) + 1, 1)


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query. `terms` exclude the names of participants, which are in `senders`.

    `owner_terms` are those of the terms that name the person whose memory it is: all of its records are about them.
    """

    terms: tuple[int, ...]
    senders: frozenset[str]
    name_terms: tuple[int, ...]
    wants_time: bool
    first_person: bool
    spaceless: bool
    periods: tuple[Period, ...]
    owner_terms: tuple[int, ...] = ()

    def describe(self) -> dict[str, str]:
        """Describe the query for an explanation."""
        found = {"terms": str(len(self.terms))}
        if self.senders:
            found["names"] = ", ".join(sorted(self.senders))
        if self.periods:
            found["dates"] = ", ".join(str(period) for period in self.periods)
        if self.wants_time:
            found["asks_for"] = "a time"
        if self.first_person:
            found["person"] = "first"
        return found


# An empty parsed query.
UNREAD = ParsedQuery((), frozenset(), (), False, False, False, ())


def parse_query(
    query: str, analyzer: TextAnalyzer, participants: Sequence[str], owner: str | None = None
) -> ParsedQuery:
    """Parse a query. `owner` is the subject of the memory that is searched."""
    words = split_words(query)
    senders, names = find_names(words, participants)
    left = [word for word in words if _fold(word) not in names]
    terms = dict.fromkeys(term for word in _drop_stop_words(left) for term in analyzer.query_terms_of(word))
    return ParsedQuery(
        terms=tuple(terms),
        senders=senders,
        name_terms=tuple(dict.fromkeys(term for word in names for term in analyzer.query_terms_of(word))),
        wants_time=_WANTS_TIME.search(query) is not None,
        first_person=_in_first_person(query, words),
        spaceless=is_spaceless(query),
        periods=tuple(dict.fromkeys(periods_in(query))),
        owner_terms=_owner_terms(left, _fold(query), analyzer, participants, owner),
    )


def _owner_terms(
    words: Sequence[str], folded: str, analyzer: TextAnalyzer, participants: Sequence[str], owner: str | None
) -> tuple[int, ...]:
    """Return the terms of the words that name the owner of a memory: its subject, or the only one who speaks there."""
    owners = [name for name in (owner, *participants[: len(participants) == 1]) if name]
    named = [name for name in owners if any(part in folded for part in _fold(name).split()[:1])]
    if not named:
        return ()
    names = {part for name in named for part in _name_words(name)}
    found = [word for word in words if _fold(word) in names]
    return tuple(dict.fromkeys(term for word in found for term in analyzer.query_terms_of(word)))


def _fold(word: str) -> str:
    plain = word.casefold()
    if not plain.isascii():
        plain = unicodedata.normalize("NFKD", plain.replace("’", "'"))
        plain = "".join(char for char in plain if not unicodedata.combining(char))
    return plain.removesuffix("'s").removesuffix("'")


# --- words ----------------------------------------------------------------------------------------------------------


def _drop_stop_words(words: list[str]) -> list[str]:
    """Drop the stop words of the query's language, if it is recognized and any words remain."""
    lowered = [word.casefold() for word in words]
    hits = {language: sum(word in stops for word in lowered) for language, stops in STOP_WORDS.items()}
    language = max(hits, key=lambda name: hits[name])
    if hits[language] == 0:
        return words
    stops = STOP_WORDS[language]
    left = [
        word for word, low in zip(words, lowered, strict=True) if low not in stops and low.split("'")[0] not in stops
    ]
    return left or words


def _in_first_person(query: str, words: list[str]) -> bool:
    if any(word.casefold().replace("’", "'").split("'")[0] in FIRST_PERSON for word in words):
        return True
    return not query.isascii() and _CJK_FIRST_PERSON.search(query) is not None


# --- names ----------------------------------------------------------------------------------------------------------


def find_names(words: Sequence[str], participants: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The participants that the words name, and the words that name them.

    A participant is named by the whole name, or by its first word if no other participant shares it. With fewer than
    two participants there is nothing to distinguish, so none is named.
    """
    people = {name: _name_words(name) for name in participants}
    people = {name: parts for name, parts in people.items() if parts}
    if len(people) < 2:
        return frozenset(), frozenset()
    plain = [_fold(word) for word in words]
    folded_words = set(plain)
    first = Counter(parts[0] for parts in people.values())
    senders: set[str] = set()
    used: set[str] = set()
    for name, parts in people.items():
        if parts[0] not in folded_words:
            continue
        matches = first[parts[0]] == 1 or _in_sequence(parts, plain)
        if matches and _looks_like_a_name(parts[0], words, plain):
            senders.add(name)
            used.update(part for part in parts if part in folded_words)
    return frozenset(senders), frozenset(used)


def without_names(query: str, participants: Sequence[str]) -> str:
    """Remove the words that name participants; return the query unchanged if nothing else would be left."""
    _, names = find_names(split_words(query), participants)
    if not names:
        return query
    left = _NAME_LIKE.sub(lambda match: "" if _fold(match.group()) in names else match.group(), query)
    left = " ".join(left.split())
    return left if any(char.isalnum() for char in left) else query


def _name_words(name: str) -> tuple[str, ...]:
    parts = tuple(_fold(word) for word in split_words(name))
    if not parts or " ".join(parts) in ROLE_NAMES or len(parts[0]) < _MIN_NAME_CHARS or parts[0].isdigit():
        return ()
    return parts


def _in_sequence(parts: tuple[str, ...], words: list[str]) -> bool:
    size = len(parts)
    return any(tuple(words[at : at + size]) == parts for at in range(len(words) - size + 1))


def _looks_like_a_name(name: str, words: Sequence[str], plain: list[str]) -> bool:
    """True unless the name is also a common word ("Will", "May") and is not capitalized."""
    if not any(name in stops for stops in STOP_WORDS.values()) and name not in MONTHS:
        return True
    return any(low == name and word[:1].isupper() for word, low in list(zip(words, plain, strict=True))[1:])


# --- dates ----------------------------------------------------------------------------------------------------------


def periods_in(query: str) -> list[Period]:
    """Parse the dates, months and years in a query."""
    found = [_to_period(*match.groups()) for match in _ISO_DATE.finditer(query)]
    rest = _ISO_DATE.sub(" ", query)
    if not rest.isascii():
        found += [_to_period(*match.groups()) for match in _CJK_DATE.finditer(rest)]
        found += [Period(int(match.group(1))) for match in _CJK_YEAR.finditer(rest)]
        rest = _CJK_DATE.sub(" ", _CJK_YEAR.sub(" ", rest))
    found += _parse_month_dates(_TOKEN.findall(unicodedata.normalize("NFC", rest)))
    return [period for period in found if period is not None]


def _to_period(year: str | None, month: str, day: str | None) -> Period | None:
    if not 1 <= int(month) <= 12 or (day and not 1 <= int(day) <= 31):
        return None
    return Period(int(year) if year else None, int(month), int(day) if day else None)


def _parse_month_dates(tokens: list[str]) -> list[Period]:
    """Parse dates with a month's name: `7 May 2023`, `May 7th, 2023`, `May 2023`, `May`; and years alone."""
    found: list[Period] = []
    taken: set[int] = set()
    for at, token in enumerate(tokens):
        month = MONTHS.get(token.casefold())
        if month is None:
            continue
        day_at = next((near for near in _near(tokens, at) if _is_day(tokens[near])), None)
        year_at = next((near for near in range(at + 1, min(at + 5, len(tokens))) if _is_year(tokens[near])), None)
        if (
            token.casefold() in DOUBTFUL_MONTHS
            and day_at is None
            and year_at is None
            and not (at and token[0].isupper())
        ):
            continue
        taken.update(near for near in (day_at, year_at) if near is not None)
        found.append(
            Period(
                int(tokens[year_at]) if year_at is not None else None,
                month,
                int(tokens[day_at]) if day_at is not None else None,
            )
        )
    years = (token for at, token in enumerate(tokens) if at not in taken and _is_year(token))
    return found + [Period(int(year)) for year in years]


def _near(tokens: list[str], at: int) -> list[int]:
    """Positions of a possible day: directly before the month, perhaps with an ordinal ending or "of", or after it."""
    before = [near for near in (at - 1, at - 2, at - 3) if near >= 0]
    reachable = []
    for near in before:
        reachable.append(near)
        if tokens[near].casefold() not in {"st", "nd", "rd", "th", "of", "de", "the"}:
            break
    return [*([at + 1] if at + 1 < len(tokens) else []), *reachable]


def _is_day(token: str) -> bool:
    return token.isascii() and token.isdigit() and len(token) <= 2 and 1 <= int(token) <= 31


def _is_year(token: str) -> bool:
    return token.isascii() and token.isdigit() and len(token) == 4 and token[:2] in ("19", "20")
