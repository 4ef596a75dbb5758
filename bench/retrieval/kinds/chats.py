"""Chats with an assistant, with long turns, about unrelated topics.

The user gives the first part of a section of a manual, or a docstring without its first line; the assistant answers
with the rest, or with the function. The question is the heading, or the docstring's first line.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from bench.retrieval.datasets import Dataset, Question, Record, Scope
from bench.retrieval.kinds import documents, fetch, functions, shape
from bench.retrieval.kinds.sources import Source

_PEOPLE = 3
_SESSIONS = 40
_EXCHANGES = (5, 10)
_MIN_WORDS = 60
_MIN_PART_WORDS = 12
_FIRST_PART = 0.4
_SECTIONS_PER_MANUAL = 500
_FUNCTIONS_PER_PACKAGE = 900


@dataclass(frozen=True, slots=True)
class Exchange:
    """A user's turn, the assistant's answer, and the later query for it."""

    topic: str
    query: str
    category: str
    said: str
    answered: str


def dataset(name: str, manuals: Sequence[Source], packages: Sequence[Source], cache: Path) -> Dataset:
    """Chats of a few people, half of them about manuals, half about code."""
    about_manuals = list(_about_manuals(manuals, cache))
    about_code = list(_about_code(packages, cache))
    scopes = [
        *(_scope(f"manuals-{number}", part) for number, part in enumerate(_people(about_manuals))),
        *(_scope(f"code-{number}", part) for number, part in enumerate(_people(about_code))),
    ]
    return Dataset(name, tuple(scopes))


def of_section(topic: str, heading: str, text: str) -> Exchange | None:
    """Split at the line nearest to two fifths of the words; None if it is short or contains its heading."""
    lines = text[: shape.MAX_CHARS].split("\n")
    total = shape.words(text[: shape.MAX_CHARS])
    if total < _MIN_WORDS or len(lines) < 2:
        return None
    counts = [shape.words("\n".join(lines[:number])) for number in range(1, len(lines))]
    cut = min(range(len(counts)), key=lambda number: abs(counts[number] - _FIRST_PART * total)) + 1
    said, answered = "\n".join(lines[:cut]).strip(), "\n".join(lines[cut:]).strip("\n")
    return _checked(Exchange(topic, heading, "manuals", said, answered))


def of_function(topic: str, function: functions.Function) -> Exchange | None:
    said = " ".join(function.details[: shape.MAX_CHARS].split())
    return _checked(Exchange(topic, function.summary, "code", said, function.text[: shape.MAX_CHARS]))


def _checked(exchange: Exchange) -> Exchange | None:
    if min(shape.words(exchange.said), shape.words(exchange.answered)) < _MIN_PART_WORDS:
        return None
    told = f"{exchange.said}\n{exchange.answered}".casefold()
    return None if exchange.query.casefold() in told else exchange


def _about_manuals(sources: Sequence[Source], cache: Path) -> Iterator[Exchange]:
    for source in sources:
        for path, _, section in documents.asking(documents.manual(source, cache, _SECTIONS_PER_MANUAL)):
            if exchange := of_section(f"{source.label}/{path}", section.heading, section.text):
                yield exchange


def _about_code(sources: Sequence[Source], cache: Path) -> Iterator[Exchange]:
    for source in sources:
        for path, found in functions.package(source, cache, _FUNCTIONS_PER_PACKAGE).items():
            for function in filter(functions.asks, found):
                if exchange := of_function(f"{source.label}/{path}", function):
                    yield exchange


def _people(exchanges: Sequence[Exchange]) -> list[list[Exchange]]:
    """Shuffled shares of the exchanges, each enough for all sessions of one person."""
    unique = {exchange.query.casefold(): exchange for exchange in exchanges}
    mixed = sorted(unique.values(), key=lambda exchange: fetch.digest(exchange.topic + exchange.query))
    enough = round(_PEOPLE * _SESSIONS * sum(_EXCHANGES) / 2)
    return [mixed[number:enough:_PEOPLE] for number in range(_PEOPLE)]


def _scope(name: str, exchanges: Sequence[Exchange]) -> Scope:
    records: list[Record] = []
    questions: list[Question] = []
    for session, members in groupby(_by_session(name, exchanges), key=lambda pair: pair[0]):
        for number, (_, exchange) in enumerate(members):
            both = _turns(session, number, exchange)
            records += both
            # The user's turn is evidence too if it is at least as long as the answer.
            said_enough = shape.words(exchange.said) >= shape.words(exchange.answered)
            gold = tuple(record.id for record in (both if said_enough else both[1:]))
            qid = f"{name}/q{len(questions)}"
            questions.append(Question(qid, exchange.query, gold, exchange.category, counted=True))
    return Scope(name, tuple(records), tuple(questions))


def _turns(session: int, number: int, exchange: Exchange) -> list[Record]:
    by_sender = (("user", exchange.said), ("assistant", exchange.answered))
    return [
        Record(f"{session}:{turn}", f"session-{session}", sender, sender, shape.at(session, turn), text)
        for turn, (sender, text) in enumerate(by_sender, 2 * number)
    ]


def _by_session(name: str, exchanges: Sequence[Exchange]) -> Iterator[tuple[int, Exchange]]:
    """Sessions of five to ten exchanges; successive exchanges are about different files where possible."""
    chance = random.Random(name)
    waiting = list(exchanges)
    session, last = 0, ""
    while waiting:
        for _ in range(chance.randint(*_EXCHANGES)):
            if waiting:
                other = next((number for number, exchange in enumerate(waiting) if exchange.topic != last), 0)
                exchange = waiting.pop(other)
                last = exchange.topic
                yield session, exchange
        session += 1
