"""Search and ranking over all partitions of a reader, with explanations.

Per partition: the view, the rows visible by scope, time and quarantine, and raw values from the statistics of those
rows. Then, over the candidates of all partitions together: normalize, weigh and sort.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from holdfast.domain.calibration import LEADING, Calibration
from holdfast.domain.ranking import (
    MATCHING_AT,
    PART_NAMES,
    PARTS,
    VECTOR_AT,
    WORDS_AT,
    BoolArray,
    FloatArray,
    IntArray,
    Part,
    Traits,
    Weights,
    best_first,
    combine_scores,
    effective_lead,
    effective_weights,
    floor_context_scores,
    normalize_rows,
    rank_of,
    words_match,
)
from holdfast.domain.results import Way
from holdfast.domain.scope import Partition, Scope
from holdfast.domain.search import LazyCandidates, Method, Order, ViewCacheUsage
from holdfast.domain.times import to_micros
from holdfast.ports import NearestIndex, QueryVector, RankedCandidates, ScoredCandidate, SearchOptions
from holdfast.search.analyzer import TextAnalyzer
from holdfast.search.approximate_search import ApproximateSearch
from holdfast.search.browse import list_by_time
from holdfast.search.condition_masks import condition_mask
from holdfast.search.embedders.static import STATIC_PREFIX
from holdfast.search.likelihoods import Likelihoods, find_calibration
from holdfast.search.partition_view import PartitionView
from holdfast.search.query_parser import UNREAD, ParsedQuery, parse_query, without_names
from holdfast.search.signals import Candidates, score_exactly
from holdfast.search.view_cache import ViewCache
from holdfast.search.visibility import (
    VisibleView,
    candidate_rows,
    filter_masks,
    quarantine_mask,
    scope_mask,
    time_mask,
    visible_view,
)
from holdfast.search.word_lists import ROLE_NAMES

if TYPE_CHECKING:
    from holdfast.ports.repositories.index import IndexReader

# 0: exact search, unless the settings say otherwise.
APPROXIMATE_FROM = 0
# Up to this number of records, an explanation compares the approximate search with the exact one.
_MOST_COMPARED = 250_000
# The share of a score that is common to all candidates, besides the parts of `ranking.Part`.
BASE = "base"
_NO_CANDIDATES = LazyCandidates((), (), lambda place: ScoredCandidate(place, 0.0))
# A row without any of these parts does not match, whatever its other parts.
_MATCHING = [PARTS.index(part) for part in (Part.VECTOR, Part.WORDS, Part.WINDOW_WORDS, Part.SPEAKER, Part.DATE)]


@dataclass(frozen=True, slots=True)
class _Scores:
    """The candidates' scores and their parts, the sort keys, and which candidates match at all."""

    even: FloatArray
    weights: FloatArray
    base: float | None
    scores: FloatArray
    keys: FloatArray
    matching: BoolArray


@dataclass(frozen=True, slots=True)
class _SearchPartition:
    """A partition to search, and its approximate index, if one is used."""

    partition: Partition
    view: PartitionView
    nearest: NearestIndex | None = None


class PartitionSearcher:
    """Implements `ports.Searcher`. Safe to use from several threads."""

    def __init__(
        self,
        cache: ViewCache,
        embedder: str,
        weights: Weights | None = None,
        approximate_from: int = APPROXIMATE_FROM,
    ) -> None:
        """`embedder` is the fingerprint of the embedder whose vectors are compared.

        Partitions with at least `approximate_from` records are searched with an approximate index, if there is one;
        0 searches all exactly.
        """
        self._analyzer = TextAnalyzer()
        self._embedder = embedder
        self._cache = cache
        self._weights = weights or Weights()
        self._approximate_from = approximate_from

    @property
    def cache_usage(self) -> ViewCacheUsage:
        return self._cache.usage

    def limit_cache(self, max_partitions: int) -> None:
        self._cache.max_entries = max_partitions

    def text_to_embed(self, index: IndexReader, scope: Scope, query: str, wanted: SearchOptions) -> str:
        return _embedding_text(_visible_views(self._search_partitions(index), scope, wanted), query, wanted.method)

    def rank(
        self,
        index: IndexReader,
        scope: Scope,
        query: str,
        vector: QueryVector,
        wanted: SearchOptions,
        target: int | None = None,
        *,
        explained: bool = False,
    ) -> RankedCandidates:
        places = self._search_partitions(index)
        seen = _visible_views(places, scope, wanted)
        if wanted.method is Method.KEYWORD:
            vector = None
        elif callable(vector):
            vector = vector(_embedding_text(seen, query, wanted.method))
        ranked = self._rank(places, seen, scope, query, vector, wanted, target)
        if not explained:
            return ranked
        ranked = replace(ranked, ways=tuple(self._way(place) for place in places if place.view.size))
        if vector is None or not any(place.nearest for place in places):
            return ranked
        if sum(place.view.size for place in places) > _MOST_COMPARED:
            return ranked
        everything = [self._with_all_vectors(place, index) for place in places]
        seen = _visible_views(everything, scope, wanted)
        return _add_exact_comparison(ranked, self._rank(everything, seen, scope, query, vector, wanted, target))

    def browse(self, index: IndexReader, scope: Scope, wanted: SearchOptions, order: Order) -> IntArray:
        return list_by_time(
            (part for _, part in _visible_views(self._search_partitions(index), scope, wanted)), wanted, order
        )

    def _rank(
        self,
        places: list[_SearchPartition],
        seen: list[tuple[_SearchPartition, VisibleView]],
        scope: Scope,
        query: str,
        vector: FloatArray | None,
        wanted: SearchOptions,
        target: int | None,
    ) -> RankedCandidates:
        participants = _participants(seen)
        understood = self._parse_query(query, participants, wanted.method, scope.subject)

        def weigh(traits: Traits) -> FloatArray:
            return _method_weights(effective_weights(self._weights, traits), wanted.method)

        def read_traits(best_words: float) -> Traits:
            return self._traits(seen, participants, understood, best_words)

        parts = [
            self._find_candidates(
                place, part, rows, understood, vector, lambda best: weigh(read_traits(best)), wanted.top_k, target
            )
            for place, part in seen
            if len(rows := candidate_rows(part, wanted))
        ]
        described = understood.describe()
        if wanted.method is not Method.HYBRID:
            described["method"] = wanted.method.value
        if not parts:
            absent = None if target is None else _why_absent(places, scope, wanted, target)
            return RankedCandidates(_NO_CANDIDATES, 0, described, why_absent=absent)
        found = _merge_partitions(parts)
        absent = None
        if target is not None and target not in found.numbers:
            absent = _why_absent(places, scope, wanted, target)
        traits = read_traits(found.best_words)
        lead = effective_lead(self._weights, traits)
        calibration = find_calibration(self._embedder, wanted.method, has_vector=vector is not None)
        return _rank_candidates(found, weigh(traits), lead, wanted, described, target, absent, calibration)

    def _parse_query(self, query: str, participants: list[str], method: Method, owner: str | None) -> ParsedQuery:
        """Parse the query for the method: KEYWORD treats names as words, VECTOR parses nothing."""
        if method is Method.VECTOR:
            return UNREAD
        if method is Method.KEYWORD:
            parsed = parse_query(query, self._analyzer, (), owner)
            return replace(UNREAD, terms=parsed.terms, owner_terms=parsed.owner_terms)
        return parse_query(query, self._analyzer, participants, owner)

    def _find_candidates(
        self,
        place: _SearchPartition,
        seen: VisibleView,
        rows: IntArray,
        query: ParsedQuery,
        vector: FloatArray | None,
        weigh: Callable[[float], FloatArray],
        results: int,
        target: int | None,
    ) -> Candidates:
        if place.nearest is None or vector is None:
            return score_exactly(seen, rows, query, vector)
        also = seen.view.rows_of(np.array([] if target is None else [target], np.int64))
        also = also[np.isin(also, rows)]
        return ApproximateSearch(seen, rows, query, vector, place.nearest, results).find_candidates(weigh, also)

    def _search_partitions(self, index: IndexReader) -> list[_SearchPartition]:
        return [self._search_partition(index, partition) for partition in index.partitions()]

    def _search_partition(self, index: IndexReader, partition: Partition) -> _SearchPartition:
        nearest = index.nearest(partition, self._embedder) if self._may_be_large(partition) else None
        if nearest is not None and nearest.state.records < self._approximate_from:
            nearest = None
        return _SearchPartition(partition, self._cache.view(index, partition, self._embedder, nearest), nearest)

    def _may_be_large(self, partition: Partition) -> bool:
        if not self._approximate_from:
            return False
        size = self._cache.known_size(partition, self._embedder)
        return size is None or size >= self._approximate_from

    def _with_all_vectors(self, place: _SearchPartition, index: IndexReader) -> _SearchPartition:
        """Reload the partition with every vector, for an exact comparison."""
        if place.nearest is None:
            return place
        delta = index.delta(place.partition, 0, self._embedder)
        return _SearchPartition(place.partition, PartitionView.empty().extend(delta))

    def _way(self, place: _SearchPartition) -> Way:
        records = int(np.count_nonzero(place.view.alive))
        kind, owner = place.partition.kind, place.partition.owner
        name = f"{kind} {owner}" if owner else str(kind)
        if place.nearest is None:
            large = self._approximate_from and records >= self._approximate_from
            return Way(name, records, False, "no usable approximate index" if large else None)
        state = place.nearest.state
        unindexed = int(np.count_nonzero(place.view.alive & (place.view.vectors.whole >= 0)))
        return Way(name, records, True, None, state.records, unindexed, state.recall, state.built_at)

    def _traits(
        self,
        seen: list[tuple[_SearchPartition, VisibleView]],
        participants: list[str],
        query: ParsedQuery,
        best_words: float,
    ) -> Traits:
        people = [name for name in participants if name.casefold() not in ROLE_NAMES]
        rows = sum(part.sight.documents for _, part in seen)
        terms = sum(part.sight.terms for _, part in seen)
        return Traits(
            people=len(people),
            assistant=any(part.sight.has_assistant for _, part in seen),
            mean_length=terms / max(rows, 1),
            spaceless=query.spaceless,
            static_vectors=self._embedder.startswith(STATIC_PREFIX),
            words_match=words_match(best_words, rows),
        )


def _merge_partitions(parts: list[Candidates]) -> Candidates:
    if len(parts) == 1:
        return parts[0]
    return Candidates(
        np.concatenate([found.numbers for found in parts]),
        np.concatenate([found.raw for found in parts], axis=1),
        np.min([found.low for found in parts], axis=0),
        np.max([found.high for found in parts], axis=0),
        sum(found.count for found in parts),
        max(found.best_words for found in parts),
        np.concatenate([found.embedded for found in parts]),
        np.concatenate([found.apart for found in parts]),
        np.concatenate([found.rows for found in parts]),
        np.concatenate([np.full(len(found.rows), at) for at, found in enumerate(parts)]),
        tuple(coverage for found in parts for coverage in found.coverages),
    )


def _method_weights(weights: FloatArray, method: Method) -> FloatArray:
    """The weights that the method uses."""
    if method is Method.HYBRID:
        return weights
    counting = np.zeros_like(weights)
    if method is Method.KEYWORD:
        counting[MATCHING_AT] = weights[MATCHING_AT]
    else:
        counting[VECTOR_AT] = 1
    return counting


def _add_exact_comparison(ranked: RankedCandidates, full: RankedCandidates) -> RankedCandidates:
    """Add the recall against the exact search, and the target's exact rank."""
    best = {scored.number for scored in full.best}
    recall = sum(scored.number in best for scored in ranked.best) / len(best) if best else 1.0
    return replace(ranked, recall=recall, target=full.target or ranked.target)


def _rank_candidates(
    found: Candidates,
    weights: FloatArray,
    lead: float,
    wanted: SearchOptions,
    described: dict[str, str],
    target: int | None,
    absent: str | None,
    calibration: Calibration,
) -> RankedCandidates:
    by_meaning = wanted.method is Method.VECTOR
    judged = (
        _score_by_similarity(found, weights) if by_meaning else _score_by_weights(found, weights, lead, wanted.method)
    )
    keys = judged.keys
    among = np.flatnonzero(judged.matching)
    # A radius only removes results: it changes neither scores nor ranks, so all must be ranked.
    most = max(wanted.top_k, LEADING) if wanted.radius is None else max(len(among), 1)
    ranking = among[best_first(keys[among], found.numbers[among], most)]
    likelihoods = Likelihoods(found, judged.scores, float(judged.weights.sum()), ranking, calibration)
    numbers, scores = ranking.tolist(), likelihoods.scores
    if wanted.radius is not None:
        within = found.embedded & (found.raw[VECTOR_AT] >= wanted.radius)
        kept = [pair for pair in zip(numbers, scores, strict=True) if within[pair[0]]]
        numbers, scores = [at for at, _ in kept], [score for _, score in kept]
    most = wanted.top_k
    if wanted.min_score is not None:
        # Scores never rise along the ranking.
        most = min(most, sum(score >= wanted.min_score for score in scores))
    numbers, scores = numbers[:most], scores[:most]

    def to_scored(at: int, score: float) -> ScoredCandidate:
        triples = zip(found.raw[:, at].tolist(), judged.even[:, at].tolist(), judged.weights.tolist(), strict=True)
        parts = {name: triple for name, triple in zip(PART_NAMES, triples, strict=True) if triple[2]}
        if judged.base is not None:
            parts[BASE] = (1.0, 1.0, judged.base)
        return ScoredCandidate(int(found.numbers[at]), score, parts)

    target_place = None
    if target is not None and absent is None:
        at = int(np.flatnonzero(found.numbers == target)[0])
        rank = rank_of(at, keys, found.numbers)
        target_place = (rank, to_scored(at, likelihoods.score_at(float(judged.scores[at]), rank)))
        if wanted.radius is not None and not within[at]:
            absent = f"its similarity is below the requested radius, {wanted.radius}"
    return RankedCandidates(
        LazyCandidates(found.numbers[numbers].tolist(), scores, lambda place: to_scored(numbers[place], scores[place])),
        found.count,
        described,
        target_place,
        absent,
        basis=likelihoods.basis,
    )


def _score_by_weights(found: Candidates, weights: FloatArray, lead: float, method: Method) -> _Scores:
    even = np.zeros_like(found.raw)
    used = weights > 0
    even[used] = normalize_rows(found.raw[used], found.low[used], found.high[used])
    if lead:
        floor_context_scores(even, weights, lead, found.apart)
    result = combine_scores(found.raw, even, weights)
    # A row next to one with the word does not contain the word itself.
    needed = [WORDS_AT] if method is Method.KEYWORD else _MATCHING
    matching = (found.raw[needed] != 0).any(axis=0)
    return _Scores(even, result.weights, result.base, result.scores, result.scores, matching)


def _score_by_similarity(found: Candidates, weights: FloatArray) -> _Scores:
    """The score is the cosine, 0 if negative; negative ones are still sorted by cosine."""
    cosines = found.raw[VECTOR_AT]
    even = np.zeros_like(found.raw)
    even[VECTOR_AT] = np.clip(cosines, 0, 1)
    keys = np.where(found.embedded, cosines, np.float32(-2))
    return _Scores(even, weights, None, even[VECTOR_AT], keys, found.embedded)


# --- visible rows ---------------------------------------------------------------------------------------------------


def _visible_views(
    places: list[_SearchPartition], scope: Scope, wanted: SearchOptions
) -> list[tuple[_SearchPartition, VisibleView]]:
    found = ((place, visible_view(place.view, scope, wanted)) for place in places if place.view.size)
    return [(place, seen) for place, seen in found if seen is not None]


def _embedding_text(seen: list[tuple[_SearchPartition, VisibleView]], query: str, method: Method) -> str:
    """The query text to embed, without participants' names; VECTOR keeps them, because nothing else represents them."""
    return query if method is Method.VECTOR else without_names(query, _participants(seen))


def _participants(seen: list[tuple[_SearchPartition, VisibleView]]) -> list[str]:
    """The senders of the visible rows."""
    return list(dict.fromkeys(name for _, part in seen for name in part.sight.participants))


# --- reasons for absence --------------------------------------------------------------------------------------------


def _why_absent(places: list[_SearchPartition], scope: Scope, wanted: SearchOptions, target: int) -> str:
    for place in places:
        at = place.view.rows_of(np.array([target], np.int64))
        if len(at):
            return _reason(place.view, int(at[0]), scope, wanted)
    return "it is not in any partition that this search reads"


def _reason(view: PartitionView, at: int, scope: Scope, wanted: SearchOptions) -> str:
    columns = view.columns
    if not scope_mask(view, scope)[at]:
        return "it belongs to another scope"
    if not time_mask(view, wanted)[at]:
        if wanted.as_of is not None and columns.recorded_at[at] > to_micros(wanted.as_of):
            return "it was recorded later than as_of"
        return "it is superseded by a later revision"
    if not wanted.quarantined and quarantine_mask(view)[at]:
        return "it is quarantined"
    if wanted.condition is not None and not condition_mask(view, wanted.condition)[at]:
        return "it does not meet the condition"
    failed = [name for name, passed in filter_masks(view, wanted).items() if not passed[at]]
    if failed == ["valid_at"]:
        return "it is not valid at that time"
    return "it is filtered out by " + ", ".join(failed)
