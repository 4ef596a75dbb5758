"""300 plain lines, the facts that a memory should learn from each, and the scoring of what it learned.

`lines.json` was written before the rules that it measures were tuned. Half of its ids, chosen by `SEED`, may be used
for tuning; the other half is held back: its figures say how well the rules work on lines that nobody looked at.

Each fact is a list of requirements. A learned memory states the fact if its text contains every requirement, where
`a|b` means either of them; case and the form of apostrophes are ignored. A line that states nothing lasting has no
facts.

- Precision: the share of learned memories that state an expected fact of their line. Repeating one is no error.
- Recall: the share of expected facts that were learned. One memory counts for one fact.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

SEED = 20
_FILE = Path(__file__).with_name("lines.json")

Fact = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A line that somebody says, and the facts to learn from it."""

    id: int
    text: str
    language: str
    topic: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The texts that were learned from a line, judged."""

    line: Line
    learned: tuple[str, ...]
    wrong: tuple[str, ...]
    missed: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """Counts of learned memories and expected facts."""

    learned: int
    right: int
    expected: int
    matched: int

    @property
    def precision(self) -> float | None:
        return self.right / self.learned if self.learned else None

    @property
    def recall(self) -> float | None:
        return self.matched / self.expected if self.expected else None


def load() -> tuple[Line, ...]:
    entries = json.loads(_FILE.read_text("utf-8"))
    return tuple(
        Line(
            id=entry["id"],
            text=entry["text"],
            language=entry["language"],
            topic=entry["topic"],
            facts=tuple(tuple(fact) for fact in entry["facts"]),
        )
        for entry in entries
    )


def development() -> tuple[Line, ...]:
    """Return the half that may be used for tuning."""
    return _half(0)


def held_back() -> tuple[Line, ...]:
    """Return the half that nobody may look at while tuning."""
    return _half(1)


def _half(which: int) -> tuple[Line, ...]:
    lines = load()
    ids = sorted(line.id for line in lines)
    random.Random(SEED).shuffle(ids)
    middle = len(ids) // 2
    chosen = set(ids[middle:] if which else ids[:middle])
    return tuple(line for line in lines if line.id in chosen)


def states(text: str, fact: Iterable[str]) -> bool:
    """Tell whether the text contains every requirement of the fact."""
    plain = _plain(text)
    return all(any(_plain(either) in plain for either in requirement.split("|")) for requirement in fact)


def _plain(text: str) -> str:
    return text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").casefold()


def judge(line: Line, learned: Sequence[str]) -> Outcome:
    holders: dict[int, int] = {}
    for number in range(len(learned)):
        _assign(number, learned, line.facts, holders, set())
    return Outcome(
        line=line,
        learned=tuple(learned),
        wrong=tuple(text for text in learned if not any(states(text, fact) for fact in line.facts)),
        missed=tuple(fact for place, fact in enumerate(line.facts) if place not in holders),
    )


def _assign(
    number: int, learned: Sequence[str], facts: Sequence[Fact], holders: dict[int, int], tried: set[int]
) -> bool:
    """Give a learned memory a fact of its own, moving others if needed, so that as many facts as possible have one."""
    for place, fact in enumerate(facts):
        if place in tried or not states(learned[number], fact):
            continue
        tried.add(place)
        if place not in holders or _assign(holders[place], learned, facts, holders, tried):
            holders[place] = number
            return True
    return False


def score(outcomes: Iterable[Outcome]) -> Score:
    learned = right = expected = matched = 0
    for outcome in outcomes:
        learned += len(outcome.learned)
        right += len(outcome.learned) - len(outcome.wrong)
        expected += len(outcome.line.facts)
        matched += len(outcome.line.facts) - len(outcome.missed)
    return Score(learned=learned, right=right, expected=expected, matched=matched)
