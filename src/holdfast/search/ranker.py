"""Ranks what a reader reaches: the whole search, from partitions to an explained order.

For each partition: the view, the rows that the scope, the time and the quarantine let a search see, and raw values
from those rows' own statistics. Then, over the wanted rows of all partitions together: normalized, weighed, ordered.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from holdfast.domain.ranking import (
    PART_NAMES,
    PARTS,
    WORDS_AT,
    FloatArray,
    IntArray,
    Part,
    Traits,
    Weights,
    best_first,
    combined,
    effective,
    normalized,
    rank_of,
    uphold,
    words_match,
)
from holdfast.domain.scope import Scope
from holdfast.domain.times import to_micros
from holdfast.ports import Ranked, Reader, Scored, Wanted
from holdfast.search.analyzer import TextAnalyzer
from holdfast.search.cache import ViewCache
from holdfast.search.embedders.static import STATIC_PREFIX
from holdfast.search.query import Understood, understand, without_names
from holdfast.search.seen import Seen, filters, in_scope, in_time, quarantined, rows_wanted, seen_of
from holdfast.search.signals import signals
from holdfast.search.view import PartitionView
from holdfast.search.words import ROLE_NAMES

# The share of a score that all candidates have in common, beside the parts of `ranking.Part`.
BASE = "base"
# What has none of these does not match at all, whatever else speaks for it.
_MATCHING = [PARTS.index(part) for part in (Part.VECTOR, Part.WORDS, Part.WINDOW_WORDS, Part.SPEAKER, Part.DATE)]


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The wanted rows of all partitions: their numbers, and a row of raw values per part.

    `best_words` is how well words match the best row that the search sees, wanted or not.
    """

    numbers: IntArray
    raw: FloatArray
    best_words: float = 0.0


class PartitionSearcher:
    """Implements `ports.Searcher`. Safe to use from several threads."""

    def __init__(self, cache: ViewCache, embedder: str, weights: Weights | None = None) -> None:
        """`embedder` is the fingerprint of the embedder whose vectors are compared."""
        self._analyzer = TextAnalyzer()
        self._embedder = embedder
        self._cache = cache
        self._weights = weights or Weights()

    def text_to_embed(self, reader: Reader, scope: Scope, query: str, wanted: Wanted) -> str:
        seen = _seen(self._views(reader), scope, wanted)
        return without_names(query, _participants(seen))

    def rank(
        self,
        reader: Reader,
        scope: Scope,
        query: str,
        vector: FloatArray | None,
        wanted: Wanted,
        now: datetime,
        target: int | None = None,
    ) -> Ranked:
        views = self._views(reader)
        seen = _seen(views, scope, wanted)
        participants = _participants(seen)
        understood = understand(query, self._analyzer, participants)
        found = _candidates(seen, wanted, understood, vector, now)
        described = understood.described()
        absent = None
        if target is not None and target not in found.numbers:
            absent = _why_absent(views, scope, wanted, target, now)
        if not len(found.numbers):
            return Ranked((), 0, described, why_absent=absent)
        weights = effective(self._weights, self._traits(seen, participants, understood, found.best_words))
        return _ranked(found, weights, self._weights.lead, wanted, described, target, absent)

    def _views(self, reader: Reader) -> list[PartitionView]:
        return [self._cache.view(reader, partition, self._embedder) for partition in reader.partitions()]

    def _traits(self, seen: list[Seen], participants: list[str], query: Understood, best_words: float) -> Traits:
        people = [name for name in participants if name.casefold() not in ROLE_NAMES]
        rows = sum(part.sight.documents for part in seen)
        terms = sum(part.sight.terms for part in seen)
        return Traits(
            people=len(people),
            assistant=any(part.sight.has_assistant for part in seen),
            mean_length=terms / max(rows, 1),
            spaceless=query.spaceless,
            static_vectors=self._embedder.startswith(STATIC_PREFIX),
            words_match=words_match(best_words, rows),
        )


def _candidates(
    seen: list[Seen], wanted: Wanted, query: Understood, vector: FloatArray | None, now: datetime
) -> _Candidates:
    numbers: list[IntArray] = []
    raw: list[FloatArray] = []
    best_words = 0.0
    for part in seen:
        rows = rows_wanted(part, wanted)
        if len(rows):
            numbers.append(part.view.columns.number[rows])
            values = signals(part, query, vector)
            raw.append(values[:, rows])
            best_words = max(best_words, float(values[WORDS_AT].max()))
    if not numbers:
        return _Candidates(np.empty(0, np.int64), np.empty((len(PARTS), 0), np.float32))
    return _Candidates(np.concatenate(numbers), np.concatenate(raw, axis=1), best_words)


def _ranked(
    found: _Candidates,
    weights: FloatArray,
    lead: float,
    wanted: Wanted,
    described: dict[str, str],
    target: int | None,
    absent: str | None,
) -> Ranked:
    even = np.zeros_like(found.raw)
    used = weights > 0
    even[used] = normalized(found.raw[used])
    if lead:
        uphold(even, weights, lead)
    result = combined(found.raw, even, weights)
    scores = result.scores
    matching = (found.raw[_MATCHING] != 0).any(axis=0)
    if wanted.min_score is not None:
        matching &= scores >= wanted.min_score
    among = np.flatnonzero(matching)
    best = among[best_first(scores[among], found.numbers[among], wanted.top_k)]

    def scored(at: int) -> Scored:
        triples = zip(found.raw[:, at].tolist(), even[:, at].tolist(), result.weights.tolist(), strict=True)
        parts = {name: triple for name, triple in zip(PART_NAMES, triples, strict=True) if triple[2]}
        return Scored(int(found.numbers[at]), float(scores[at]), {**parts, BASE: (1.0, 1.0, result.base)})

    place = None
    if target is not None and absent is None:
        at = int(np.flatnonzero(found.numbers == target)[0])
        place = (rank_of(at, scores, found.numbers), scored(at))
    return Ranked([scored(at) for at in best.tolist()], len(found.numbers), described, place, absent)


# --- what a search sees ---------------------------------------------------------------------------------------------


def _seen(views: list[PartitionView], scope: Scope, wanted: Wanted) -> list[Seen]:
    found = (seen_of(view, scope, wanted) for view in views if view.size)
    return [seen for seen in found if seen is not None]


def _participants(seen: list[Seen]) -> list[str]:
    """Who said what is visible."""
    return list(dict.fromkeys(name for part in seen for name in part.sight.participants))


# --- why something did not come -------------------------------------------------------------------------------------


def _why_absent(views: list[PartitionView], scope: Scope, wanted: Wanted, target: int, now: datetime) -> str:
    for view in views:
        at = np.flatnonzero(view.alive & (view.columns.number == target))
        if len(at):
            return _reason(view, int(at[0]), scope, wanted)
    return "it is not in any partition that this search reads"


def _reason(view: PartitionView, at: int, scope: Scope, wanted: Wanted) -> str:
    columns = view.columns
    if not in_scope(view, scope)[at]:
        return "it belongs to another scope"
    if not in_time(view, wanted)[at]:
        if wanted.as_of is not None and columns.recorded_at[at] > to_micros(wanted.as_of):
            return "it was recorded later than as_of"
        return "it is superseded by a later revision"
    if not wanted.quarantined and quarantined(view)[at]:
        return "it is quarantined"
    failed = [name for name, passed in filters(view, wanted).items() if not passed[at]]
    if failed == ["valid_at"]:
        return "it is not valid at that time"
    return "it is filtered out by " + ", ".join(failed)
