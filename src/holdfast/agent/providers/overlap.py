"""Find the line that answers a question, by shared words. Plain counting, for the rule-based model.

Words are stemmed as English, and some that ask for the same thing count as one ("called", "name"). In another
language this loses nuances; equal words still match. Runs of Chinese, Japanese or Korean count by pairs of letters.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import Stemmer

from holdfast.agent.providers.intent_rules import SELF_NAMED

T = TypeVar("T")

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_UNSPACED = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_BRITISH = re.compile(r"(?<=\w\w\w)our(?=s?$)")
_ENDING = re.compile(r"['’](?:s|re|ve|ll|d|m|t)$")

# Stop words.
_EMPTY = frozenset(
    """
    a about again all also always am an and any anything are as at be because been being but by can could did do does
    doing don done ever everything for from had has have having he her here hers him his how i if in into is isn it
    its just kindly know let many may me might mine more most much must my no not now of off oh ok okay on once one
    only or our ours out please really recall remember remind s shall she should so some something such t tell than
    thank thanks that the their them then there these they thing things this those to too up us very want was we well
    were what when where which who whom whose why will with would yes yet you your yours
    """.split()
)
# Relations: the attribute that a question asks for, not its topic. Each row counts as one word.
_SAME = (
    "name names named naming call calls called",
    "like likes liked love loves loved prefer prefers preferred preference enjoy enjoys favourite favorite",
    "live lives lived living home move moves moved reside resides",
    "work works worked working job employed employer",
    "old age birthday born",
    "allergic allergy allergies",
)
_ROWS = {row.split()[0]: row.split() for row in _SAME}
_RELATIONS = {word: first for first, row in _ROWS.items() for word in row}
NAME = "name"
_MOST_LOOKED_FOR = 900


@functools.lru_cache(10_000)
def _stem(word: str) -> str:
    # A new one each time: a stemmer has internal state, which threads would share.
    stemmed: str = Stemmer.Stemmer("english").stemWord(word)
    return stemmed


@dataclass(frozen=True, slots=True)
class Words:
    """The content words of a text: `things`, and `relations` between them. `common` are the lower-case things."""

    things: frozenset[str]
    relations: frozenset[str]
    common: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.things or self.relations)

    @property
    def count(self) -> int:
        return len(self.things) + len(self.relations)


def words_of(text: str) -> Words:
    things: set[str] = set()
    relations: set[str] = set()
    common: set[str] = set()
    if SELF_NAMED.match(text):
        relations.add(NAME)
    for found in _WORD.findall(text):
        word = _plain(found)
        if word in _RELATIONS:
            relations.add(_RELATIONS[word])
        elif runs := _UNSPACED.findall(word):
            things.update(pair for run in runs for pair in _pairs(run))
        elif word not in _EMPTY:
            things.add(_stem(word))
            if found[0].islower():
                common.add(_stem(word))
    return Words(frozenset(things), frozenset(relations), frozenset(common))


def _plain(word: str) -> str:
    return _BRITISH.sub("or", _ENDING.sub("", word.lower()))


def words_to_look_for(question: str) -> str:
    """Return the words of the question that an answer may have: without stop words, with synonyms."""
    looked_for: dict[str, None] = {}
    for found in _WORD.findall(question):
        word = _plain(found)
        if word in _RELATIONS:
            looked_for.update(dict.fromkeys(_ROWS[_RELATIONS[word]]))
        elif word not in _EMPTY:
            looked_for[word] = None
    return " ".join(looked_for)[:_MOST_LOOKED_FOR]


def _pairs(run: str) -> Iterable[str]:
    return [run] if len(run) == 1 else (run[at : at + 2] for at in range(len(run) - 1))


def best(question: str, lines: Sequence[tuple[str, T]]) -> T | None:
    """Return the value of the line that answers best, of equal ones the last; None if no line answers."""
    query = words_of(question)
    found: tuple[float, T] | None = None
    for text, value in lines:
        score = _score(query, words_of(text))
        if score and (found is None or score >= found[0]):
            found = score, value
    return None if found is None else found[1]


def _score(query: Words, line: Words) -> float:
    """Score how much of the question is in the line, then how little else is. 0 if it answers something else."""
    things, relations = query.things & line.things, query.relations & line.relations
    if query.things and 2 * len(things) < len(query.things):
        return 0.0
    if not query.things and (not relations or (relations == {NAME} and line.common)):
        # "What is my name?" is not answered by what the dog is called.
        return 0.0
    shared = 2 * len(things) + len(relations)
    return shared + (len(things) + len(relations)) / (1 + line.count)
