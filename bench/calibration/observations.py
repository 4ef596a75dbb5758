"""Searches of public questions, with and without an answer in the store.

- Whole conversations: each question is put to its own conversation, and to another one with the names of the speakers
  exchanged, so that only the facts are missing.
- Windows: the same with a few messages around an answer, and with as many of another conversation, so that scores of
  small stores are comparable to those of large ones.
- Own words: the messages of one speaker alone, in a memory of theirs, and those of a speaker of another conversation.
  The question is put into the first person.
- Short daily messages in Chinese: each question is put to its own person's and to another's.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import holdfast
from bench.calibration.first_person import in_first_person
from bench.retrieval.datasets import Dataset, Record, Scope, load
from bench.retrieval.systems.holdfast import added
from holdfast.domain.calibration import LEAST_SCALE
from holdfast.domain.ranking import FloatArray
from holdfast.ports import Embedder, Purpose

SEED = 20
WHOLE, WINDOW, OWN, DAILY = "whole conversations", "windows", "own words", "daily messages"
METHODS = ("hybrid", "keyword", "vector")
_WINDOW_SIZES = (1, 2, 3, 4, 5, 6, 12, 25, 60, 150)
_TOP_K = 20
_DAILY_GROUPS = 5

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Observation:
    """One search: the signals that its scores are computed from, and which of its hits answer the question.

    `group` is the conversation that the question comes from. `behind` has the distance of each hit to the best.
    """

    group: str
    kind: str
    method: str
    has_answer: bool
    signals: tuple[float, ...]
    candidates: int
    scores: Floats
    behind: Floats
    answers: NDArray[np.bool_]


class CachedEmbedder:
    """An embedder that embeds each text once: windows repeat the texts of their conversation."""

    local = True

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, FloatArray] = {}
        self.fingerprint, self.dimensions = embedder.fingerprint, embedder.dimensions

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            self._known.update(zip(missing, await self._embedder.embed(missing, purpose), strict=True))
        return np.stack([self._known[text] for text in texts])

    async def close(self) -> None:
        await self._embedder.close()


def observe(data: Path, embedder: Embedder) -> list[Observation]:
    """Search every question in every way that is described above."""
    conversations, daily = load(data, "locomo"), load(data, "memdaily")
    with holdfast.open(":memory:", embedder=CachedEmbedder(embedder)) as memory:
        return [
            *_whole(memory, conversations.scopes),
            *_windows(memory, conversations.scopes),
            *_own_words(memory, conversations.scopes),
            *_daily(memory, daily),
        ]


def _whole(memory: holdfast.Memory, scopes: Sequence[Scope]) -> Iterator[Observation]:
    for scope in scopes:
        added(memory, scope.name, scope.records)
    for scope, other in _with_another(scopes):
        for question in scope.questions:
            if not question.counted:
                continue
            for method in METHODS:
                yield _search(memory, scope.name, WHOLE, method, scope.name, question.query, question.gold)
                exchanged = exchange_names(question.query, scope, other)
                yield _search(memory, scope.name, WHOLE, method, other.name, exchanged, ())


def _windows(memory: holdfast.Memory, scopes: Sequence[Scope]) -> Iterator[Observation]:
    chance = random.Random(SEED)
    for scope, other in _with_another(scopes):
        places = {record.id: place for place, record in enumerate(scope.records)}
        for number, question in enumerate(scope.questions):
            gold = [places[each] for each in question.gold if each in places]
            if not (question.counted and gold):
                continue
            size = chance.choice(_WINDOW_SIZES)
            own = _window(scope.records, size, chance.choice(gold) - chance.randrange(size))
            foreign = _window(other.records, size, chance.randrange(len(other.records)))
            for at, (records, query, answers) in enumerate(
                ((own, question.query, question.gold), (foreign, exchange_names(question.query, scope, other), ()))
            ):
                name = f"{scope.name}/{number}/{at}"
                added(memory, name, records)
                held = {record.id for record in records}
                for method in METHODS:
                    yield _search(memory, scope.name, WINDOW, method, name, query, held.intersection(answers))


def _own_words(memory: holdfast.Memory, scopes: Sequence[Scope]) -> Iterator[Observation]:
    chance = random.Random(SEED)
    for scope, other in _with_another(scopes):
        for speaker, stranger in zip(_speakers(scope), _speakers(other), strict=True):
            own_words = [record for record in scope.records if record.sender == speaker]
            foreign_words = [record for record in other.records if record.sender == stranger]
            places = {record.id: place for place, record in enumerate(own_words)}
            for question in scope.questions:
                gold = [places[each] for each in question.gold if each in places]
                query = in_first_person(question.query, speaker, {*_speakers(scope)} - {speaker})
                if not (question.counted and gold and query):
                    continue
                size = chance.choice(_WINDOW_SIZES)
                own = _window(own_words, size, chance.choice(gold) - chance.randrange(size))
                foreign = _window(foreign_words, size, chance.randrange(len(foreign_words)))
                for owner, records, answers in ((speaker, own, question.gold), (stranger, foreign, ())):
                    # The first word names the owner, the rest tells apart.
                    name = f"{owner} asked {question.qid}"
                    added(memory, name, records)
                    held = {record.id for record in records}.intersection(answers)
                    for method in METHODS:
                        yield _search(memory, scope.name, OWN, method, name, query, held)


def _window(records: Sequence[Record], size: int, start: int) -> Sequence[Record]:
    start = max(0, min(start, len(records) - size))
    return records[start : start + size]


def _daily(memory: holdfast.Memory, dataset: Dataset) -> Iterator[Observation]:
    for scope in dataset.scopes:
        added(memory, f"daily/{scope.name}", scope.records)
    for number, (scope, other) in enumerate(_with_another(dataset.scopes)):
        group = f"daily/{number % _DAILY_GROUPS}"
        for question in scope.questions:
            if question.counted:
                for method in METHODS:
                    yield _search(memory, group, DAILY, method, f"daily/{scope.name}", question.query, question.gold)
                    yield _search(memory, group, DAILY, method, f"daily/{other.name}", question.query, ())


def _with_another(scopes: Sequence[Scope]) -> Iterator[tuple[Scope, Scope]]:
    """Pair each scope with one that is far away: neighbours are about the same things."""
    far = len(scopes) // 2
    return zip(scopes, [*scopes[far:], *scopes[:far]], strict=True)


def exchange_names(query: str, own: Scope, other: Scope) -> str:
    """Return the question about the speakers of another conversation."""
    names = dict(zip(_speakers(own), _speakers(other), strict=False))
    pattern = "|".join(map(re.escape, names))
    return re.sub(rf"\b(?:{pattern})\b", lambda found: names[found.group()], query)


def _speakers(scope: Scope) -> list[str]:
    return list(dict.fromkeys(record.sender for record in scope.records))


def _search(
    memory: holdfast.Memory, group: str, kind: str, method: str, subject: str, query: str, answers: Iterable[str]
) -> Observation:
    found = memory.explain(query, subject=subject, top_k=_TOP_K, method=method)
    assert found.basis is not None
    gold = set(answers)
    strengths = np.array([_strength(hit) for hit in found.hits])
    return Observation(
        group=group,
        kind=kind,
        method=method,
        has_answer=bool(gold),
        signals=astuple(found.basis.signals),
        candidates=found.candidates,
        scores=np.array([hit.score for hit in found.hits]),
        behind=np.minimum(strengths - strengths[:1], 0),
        answers=np.array([hit.external_id in gold for hit in found.hits], bool),
    )


def _strength(hit: holdfast.Hit) -> float:
    """The sum of the parts over that of their weights, as the searcher computes it."""
    scale = sum(part.weight for part in hit.components if part.name != "base")
    return sum(part.contribution for part in hit.components) / max(scale, LEAST_SCALE)
