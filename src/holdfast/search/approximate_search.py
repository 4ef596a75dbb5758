"""Approximate search of a large partition, without reading every vector.

Word scores and hints are cheap and are computed for every row. Vectors are read only for a pool of rows: the nearest
that the index finds, with their neighbours; those with the best word and hint scores; and the nearest among rows newer
than the index. The best of the pool are then scored exactly, with their windows. With few exceptions, they include the
top results of an exact search.

Values equal those of the exact search, except two that need all rows. The minima, by which parts are scaled, are those
of the farthest rows that the index finds. The nearest value of a conversation of which only some rows were read is at
least the usual one of a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from holdfast.domain.ranking import (
    LEADERS,
    MEANING_AT,
    NEAREST_DEPTH,
    PARTS,
    WORDS_AT,
    BoolArray,
    FloatArray,
    IntArray,
    Part,
    context_unlikeness,
    window_cosines,
)
from holdfast.ports import NearestIndex
from holdfast.search.partition_index import Vectors, block_vectors, cosines_of, select_vectors
from holdfast.search.partition_view import PartitionView
from holdfast.search.query_parser import ParsedQuery
from holdfast.search.signals import Candidates, signals
from holdfast.search.visibility import VisibleView

_SESSION_AT = PARTS.index(Part.SESSION_VECTOR)
# For ten results of fifty thousand rows: the rows that words and hints bring into the pool, the rows that are scored
# exactly, and the minimum of nearest rows among equal best scores of words and hints.
_PROMISING, _SHORTLIST, _OF_A_KIND = 200, 120, 30
_MORE = 4  # factor for rows with equal scores
_RESULTS, _ROWS = 10, 50_000
_STRIDE, _DEEPEST = 16, 8_000
# If filters leave at most this number or share of candidates, all their vectors are read.
_FEW, _SHARE = 4_000, 20
# For the minima and maxima: the number of rows, and the approximate rows of sampled conversations.
_FARTHEST, _FAR_DEPTH, _SAMPLE, _GREATEST = 24, 300, 1_000, 3 * LEADERS
# Mean and minimum of the nearest values of conversations if there is nothing to estimate.
_NOTHING_TO_GUESS = (-1.0, 2.0)
# Typical cosine between neighbours; only used to choose the windows to score exactly.
_LIKENESS = 0.5


class ApproximateSearch:
    """One approximate search in one partition, for a number of results."""

    def __init__(
        self,
        seen: VisibleView,
        wanted: IntArray,
        query: ParsedQuery,
        vector: FloatArray,
        nearest: NearestIndex,
        results: int,
    ) -> None:
        self._seen = seen
        self._wanted = wanted
        self._vector = vector
        self._nearest = nearest
        # A larger partition needs a larger pool, but far less than in proportion.
        self._growth = max(seen.view.size / _ROWS, 1.0) ** (1 / 3)
        self._times = max(results / _RESULTS, 1.0) * self._growth
        # Asked first: a server searches while words and hints are computed here.
        self._farthest = nearest.search(-vector, _FARTHEST, int(_FAR_DEPTH * self._growth))
        self._values, self._coverage = signals(seen, query, None)
        self._size = seen.view.size
        self._among = np.zeros(self._size, bool)
        self._among[wanted] = True

    def find_candidates(self, weigh: Callable[[float], FloatArray], also: IntArray) -> Candidates:
        """Select and score candidates. `weigh` maps the best word score to weights. `also` are always included."""
        best_words = float(self._values[WORDS_AT].max())
        weights = weigh(best_words)
        low, high = self._bounds()
        promise = self._word_and_hint_scores(weights, low, high)
        few = len(self._wanted) <= max(_FEW * self._times, self._size // _SHARE)
        promising, depth = self._best_by_words_and_hints(promise)
        nearest = self._nearest.search(self._vector, depth, int(depth * 1.5))
        everything = few and len(self._wanted) == self._seen.sight.documents
        usual, least = _NOTHING_TO_GUESS if everything else self._sessions()
        near, edges = self._visible(nearest()), self._visible(self._farthest())
        edges = edges[self._among[edges]]
        pool = self._wanted if few else self._pool(promising, near[self._among[near]])
        # Near rows that are not candidates still count for their conversation.
        looked = _VectorReader(self._seen, self._nearest, self._vector, self._rows(pool, near, edges, also))
        rows = pool
        if not few:
            rough = looked.estimate_values(pool, usual)
            estimate = promise[pool] + _estimate(rough, weights[MEANING_AT])
            greatest = [pool[_largest(values, _GREATEST)] for values in rough]
            # The leaders by meaning alone and by words alone must be scored: their context scores are floored later.
            best = pool[_largest(estimate, int(_SHORTLIST * self._times))]
            rows = self._rows(best, greatest[0], self._leading_by_words(), also)
            # The maxima, by which parts are scaled, may belong to rows with otherwise low scores.
            edges = self._rows(edges, *greatest)
        looked.read_neighbours(self._rows(rows, edges))
        raw = self._values[:, rows]
        raw[MEANING_AT] = looked.exact_values(rows, usual)
        bounds = np.concatenate((raw[MEANING_AT], looked.exact_values(edges, usual)), axis=1)
        low[MEANING_AT], high[MEANING_AT] = bounds.min(axis=1), bounds.max(axis=1)
        low[_SESSION_AT] = min(low[_SESSION_AT], least)
        apart_here = looked.apart(rows, self._mean())
        numbers = self._seen.view.columns.number[rows]
        return Candidates(
            numbers,
            raw,
            low,
            high,
            len(self._wanted),
            best_words,
            looked.has_vectors(rows),
            apart_here,
            rows,
            np.zeros(len(rows), np.int64),
            (self._coverage,),
        )

    def _rows(self, *some: IntArray) -> IntArray:
        """The union of rows, in order."""
        chosen = np.zeros(self._size, bool)
        for rows in some:
            chosen[rows] = True
        return np.flatnonzero(chosen)

    def _bounds(self) -> tuple[FloatArray, FloatArray]:
        values = self._values if len(self._wanted) == self._size else self._values[:, self._wanted]
        return values.min(axis=1), values.max(axis=1)

    def _word_and_hint_scores(self, weights: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """Per row, the share of words and hints in its score, up to a constant."""
        spread = high - low
        scale = np.divide(weights, spread, out=np.zeros_like(spread), where=spread > 1e-9)
        used = np.flatnonzero(scale)
        promise: FloatArray = np.einsum("i,ij->j", scale[used], self._values[used])
        return promise

    def _best_by_words_and_hints(self, promise: FloatArray) -> tuple[IntArray, int]:
        """The rows with the best scores of words and hints, and the number of nearest rows to read with them."""
        best, kind = _select_best(promise[self._wanted], int(_PROMISING * self._times))
        depth = NEAREST_DEPTH * self._times * self._size / len(self._wanted)
        if kind:
            depth = max(depth, _OF_A_KIND * self._times * self._size / kind)
        return self._wanted[best], int(min(depth, _DEEPEST))

    def _leading_by_words(self) -> IntArray:
        words = self._values[WORDS_AT]
        rows = np.flatnonzero((words > 0) & self._among)
        return rows[_largest(words[rows], _GREATEST)]

    def _pool(self, promising: IntArray, near: IntArray) -> IntArray:
        links = self._seen.links
        around = np.concatenate((links.previous[near], links.following[near])).astype(np.int64)
        around = around[around >= 0]
        return self._rows(promising, near, around[self._among[around]], self._nearest_unindexed(len(near)))

    def _visible(self, numbers: IntArray) -> IntArray:
        """The visible rows of these records; they need not be candidates."""
        rows = self._seen.view.rows_of(numbers)
        return rows[self._seen.visible[rows]]

    def _nearest_unindexed(self, most: int) -> IntArray:
        """The nearest rows that the index does not contain."""
        vectors = self._seen.view.vectors
        there = self._among & (vectors.whole >= 0)
        rows = np.flatnonzero(there)
        if len(rows) <= most:
            return rows
        _, own = cosines_of(vectors, self._vector, there)
        return rows[_largest(own[rows], most)]

    def _sessions(self) -> tuple[float, float]:
        """The best cosine of a conversation: its mean and its minimum over conversations, from a sample."""
        if not self._seen.sight.session_count:
            return _NOTHING_TO_GUESS
        view = self._seen.view
        sample: _Sample | None = view.samples.get("sessions")
        if sample is None:
            sample = _Sample.of(view, self._nearest)
            view.samples.put("sessions", sample)
        return sample.sessions(self._seen, self._vector)

    def _mean(self) -> FloatArray:
        """The mean of the sample's vectors, as in an exact search."""
        view, sight = self._seen.view, self._seen.sight
        mean: FloatArray | None = view.samples.get(sight)
        if mean is None:
            mean = _VectorReader(self._seen, self._nearest, self._vector, sight.sample).mean()
            view.samples.put(sight, mean)
        return mean


def _largest(values: FloatArray, most: int) -> IntArray:
    """Indices of the largest values, unordered."""
    return np.arange(len(values)) if len(values) <= most else np.argpartition(values, len(values) - most)[-most:]


def _select_best(promise: FloatArray, most: int) -> tuple[IntArray, int]:
    """About `most` best rows; and the number of rows at least as good as the last, if they are very many, else 0.

    Then only vectors distinguish those rows, so enough of the nearest must be among them.
    """
    # The threshold comes from a subset: selecting among very many equal values is slow.
    some = np.sort(promise[::_STRIDE])
    least = some[-min(most // _STRIDE, len(some))]
    best = np.flatnonzero(promise >= least)
    if len(best) <= _MORE * most:
        return best, 0
    return np.flatnonzero(promise > least)[: _MORE * most], len(best)


def _estimate(meaning: FloatArray, weights: FloatArray) -> FloatArray:
    """Estimate the share of meaning in a score, up to a constant."""
    spread = np.ptp(meaning, axis=1)
    scale = np.divide(weights, spread, out=np.zeros_like(spread), where=spread > 1e-9)
    estimate: FloatArray = np.einsum("i,ij->j", scale, meaning)
    return estimate


@dataclass(frozen=True, slots=True)
class _Sample:
    """A random sample of a view's conversations: all their rows, grouped by conversation, and the vectors."""

    rows: IntArray
    first: IntArray
    vectors: Vectors

    @classmethod
    def of(cls, view: PartitionView, nearest: NearestIndex) -> _Sample:
        talk = np.flatnonzero(view.alive & (view.columns.conversation >= 0))
        codes = view.columns.conversation[talk]
        sizes = np.bincount(codes, minlength=view.names.conversations)
        order = np.random.default_rng(len(sizes)).permutation(np.flatnonzero(sizes))
        chosen = np.zeros(len(sizes), bool)
        chosen[order[: 1 + np.searchsorted(np.cumsum(sizes[order]), _SAMPLE)]] = True
        rows = talk[chosen[codes]]
        rows = rows[np.argsort(view.columns.conversation[rows], kind="stable")]
        numbers = view.columns.number[rows]
        first = np.flatnonzero(np.diff(view.columns.conversation[rows], prepend=-1))
        return cls(rows, first, block_vectors(nearest.vectors(numbers), numbers))

    def sessions(self, seen: VisibleView, vector: FloatArray) -> tuple[float, float]:
        there = (self.vectors.whole >= 0) & seen.visible[self.rows]
        _, own = cosines_of(self.vectors, vector, there)
        best = np.maximum.reduceat(np.where(there, own, np.float32(-1)), self.first)
        best = best[best > -1]
        if len(best) < 2:
            return _NOTHING_TO_GUESS
        # The minimum over all conversations is below that of the sample: by about half of what a normal distribution
        # predicts.
        further = _expected_minimum(seen.sight.session_count) - _expected_minimum(len(best))
        return float(best.mean()), float(best.min() - best.std() * max(further, 0) / 2)


def _expected_minimum(count: int) -> float:
    """Expected distance of the minimum of `count` normal values below their mean, in standard deviations."""
    return NormalDist().inv_cdf(1 - 0.56 / max(count, 2))


class _VectorReader:
    """Rows whose vectors were read: vectors of whole texts, and their cosines with the query."""

    def __init__(self, seen: VisibleView, nearest: NearestIndex, query: FloatArray, rows: IntArray) -> None:
        self._seen = seen
        self._nearest = nearest
        self._query = query
        # The last place is for rows that were not read.
        self._place = np.full(seen.view.size + 1, -1, np.int64)
        self._vectors = np.zeros((1, len(query)), np.float32)
        self._whole = self._own = np.zeros(1, np.float32)
        self._there = np.zeros(1, bool)
        self._best = np.full(seen.view.names.conversations + 1, -1, np.float32)
        self.read_rows(rows)

    def read_rows(self, rows: IntArray) -> None:
        """Read the vectors of these rows, unless already read."""
        rows = rows[self._place[rows] < 0]
        known = len(self._whole) - 1
        self._place[rows] = known + np.arange(len(rows))
        vectors = np.zeros((len(rows), len(self._query)), np.float32)
        whole, own = np.zeros((2, len(rows)), np.float32)
        there = np.zeros(len(rows), bool)
        for places, some in self._read(rows):
            got = some.whole >= 0
            at = places[got]
            there[at], vectors[at] = True, some.rows[some.whole[got]]
            cosines = cosines_of(some, self._query, got)
            whole[at], own[at] = cosines[0][got], cosines[1][got]
        np.maximum.at(self._best, self._seen.view.columns.conversation[rows[there]], own[there])
        self._vectors = np.concatenate((self._vectors[:-1], vectors, self._vectors[-1:]))
        self._whole = np.concatenate((self._whole[:-1], whole, self._whole[-1:]))
        self._own = np.concatenate((self._own[:-1], own, self._own[-1:]))
        self._there = np.concatenate((self._there[:-1], there, self._there[-1:]))

    def _read(self, rows: IntArray) -> Iterator[tuple[IntArray, Vectors]]:
        """Vectors from the view, then from the index, each with their positions in `rows`."""
        view = self._seen.view
        here = view.vectors.whole[rows] >= 0
        if here.any():
            yield np.flatnonzero(here), select_vectors(view.vectors, rows[here])
        numbers = view.columns.number[rows[~here]]
        if len(numbers):
            some = block_vectors(self._nearest.vectors(numbers), numbers)
            if some.rows.shape[1:] == self._query.shape:
                yield np.flatnonzero(~here), some

    def read_neighbours(self, rows: IntArray) -> None:
        """Read the vectors of these rows and of their neighbours."""
        links = self._seen.links
        around = np.unique(np.concatenate((rows, links.previous[rows], links.following[rows])))
        self.read_rows(around[around >= 0])

    def estimate_values(self, rows: IntArray, usual: float) -> FloatArray:
        """Estimate the exact values from the vectors read so far."""
        links, at = self._seen.links, self._place[rows]
        before, after = self._place[links.previous[rows]], self._place[links.following[rows]]
        own = self._own[at]
        count = np.float32(1) + self._there[before] + self._there[after]
        products = np.float32(_LIKENESS / 2) * count * (count - np.float32(1))
        windows = window_cosines(self._whole[at] + self._whole[before] + self._whole[after], count, products)
        return np.stack((own, windows, self._in_session(rows, at, usual)))

    def exact_values(self, rows: IntArray, usual: float) -> FloatArray:
        """Per row, the cosines of its text, of its window, and of the nearest in its conversation, at least `usual`."""
        links, at = self._seen.links, self._place[rows]
        before, after = self._place[links.previous[rows]], self._place[links.following[rows]]
        own, previous, following = (self._vectors[places] for places in (at, before, after))
        products = _products(previous, own) + _products(own, following) + _products(previous, following)
        count = np.float32(1) + self._there[before] + self._there[after]
        windows = window_cosines(self._whole[at] + self._whole[before] + self._whole[after], count, products)
        return np.stack((self._own[at], windows * self._there[at], self._in_session(rows, at, usual)))

    def mean(self) -> FloatArray:
        """The mean of all vectors that were read."""
        mean: FloatArray = self._vectors[self._there].mean(axis=0) if self._there.any() else self._vectors[-1]
        return mean

    def apart(self, rows: IntArray, mean: FloatArray) -> FloatArray:
        """Each row's dissimilarity to its neighbours."""
        links, at = self._seen.links, self._place[rows]
        before, after = self._place[links.previous[rows]], self._place[links.following[rows]]
        own, previous, following = (self._vectors[places] for places in (at, before, after))
        products = _products(previous, own) + _products(own, following)
        count = self._there[before].astype(np.float32) + self._there[after]
        usual, around = (np.einsum("ij,j->i", vectors, mean) for vectors in (own, previous + following))
        return context_unlikeness(products, count, usual, around, float(mean @ mean)) * self._there[at]

    def has_vectors(self, rows: IntArray) -> BoolArray:
        return self._there[self._place[rows]]

    def _in_session(self, rows: IntArray, at: IntArray, usual: float) -> FloatArray:
        session = self._seen.view.columns.conversation[rows]
        talk = self._there[at] & (session >= 0)
        return np.where(talk, np.maximum(self._best[session], np.float32(usual)), self._own[at])


def _products(left: FloatArray, right: FloatArray) -> FloatArray:
    products: FloatArray = np.einsum("ij,ij->i", left, right)
    return products
