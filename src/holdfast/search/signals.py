"""Ranking signals: raw values of one partition's rows for a query, one row per part of the ranking.

Computed over the visible rows only, including counts, frequencies and lengths, so that nothing outside a search's scope
can change a score. Rows that are not messages have no neighbours and no session: they are their own window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.domain.calibration import lead_of, size_of
from holdfast.domain.ranking import (
    PARTS,
    VECTOR_AT,
    WORDS_AT,
    BoolArray,
    FloatArray,
    IntArray,
    Part,
    bm25,
    bm25_idf,
    saturate,
    window_cosines,
)
from holdfast.domain.results import MatchSignals
from holdfast.domain.transcript import Role
from holdfast.ports import TextFlag
from holdfast.search.partition_index import cosines_of
from holdfast.search.partition_view import MESSAGE, Links
from holdfast.search.query_parser import ParsedQuery, Period
from holdfast.search.visibility import VisibleView

# Terms times candidate rows that are processed at once.
_CELLS = 4_000_000
# "I" names the owner of a memory, but half as surely as a name: "How do I get wine out of a carpet?"
_PRONOUN_SHARE = 0.5
_YEARS = 100
_MICROS_PER_YEAR = 31_556_952_000_000


def signals(seen: VisibleView, query: ParsedQuery, vector: FloatArray | None) -> tuple[FloatArray, WordCoverage]:
    """Raw values, a row per part in the order of `PARTS` and a column per row of the view; and what words cover."""
    found = np.zeros((len(PARTS), seen.view.size), np.float32)
    parts: dict[Part, NDArray[np.float32]] = {part: found[at] for at, part in enumerate(PARTS)}
    if vector is not None and seen.view.vectors.rows.shape[1:] == vector.shape:
        _fill_meaning(parts, seen, vector)
    words = _WordScores(seen, query.terms)
    words.fill(parts)
    columns = seen.view.columns
    if query.senders:
        parts[Part.SPEAKER][:] = _speaker_mask(seen, query)
    if query.wants_time:
        parts[Part.TIME][:] = (columns.flags & TextFlag.TIME_EXPRESSION) > 0
    parts[Part.STATEMENT][:] = _statement_scores(columns.flags)
    if query.periods:
        parts[Part.DATE][:] = _date_mask(seen, query.periods)
    if query.first_person:
        parts[Part.OWN_WORDS][:] = columns.role == seen.view.names.roles.find(Role.USER)
    if query.senders:
        return found, words.coverage(query.owner_terms, parts[Part.SPEAKER])
    if query.first_person and not query.owner_terms:
        of_owner = np.maximum(parts[Part.OWN_WORDS], columns.kind != MESSAGE)
        return found, words.coverage((), of_owner, name_share=_PRONOUN_SHARE)
    return found, words.coverage(query.owner_terms, None)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The scored records of one partition, or of several: their numbers, and a row of raw values per part.

    `low` and `high` are the bounds of each part over all `count` candidates, including those that were not read;
    `best_words` is the best word score of any visible row, candidate or not. `embedded` marks records with a comparable
    vector; `apart` is each one's dissimilarity to its neighbours. Each comes from a row of a partition, whose
    `coverages` say which words of the query it holds.
    """

    numbers: IntArray
    raw: FloatArray
    low: FloatArray
    high: FloatArray
    count: int
    best_words: float
    embedded: BoolArray
    apart: FloatArray
    rows: IntArray
    partition: IntArray
    coverages: tuple[WordCoverage, ...]

    def match_signals(self, leading: IntArray, strengths: Sequence[float], lone_lead: float) -> MatchSignals:
        """Rate how well the leading hits match, and by how far the best stands out by its strength."""
        if len(self.coverages) == 1:
            own, around = self.coverages[0].shares(self.rows[leading])
        else:
            own, around = np.zeros((2, len(leading)), np.float32)
            for at, coverage in enumerate(self.coverages):
                here = np.flatnonzero(self.partition[leading] == at)
                own[here], around[here] = coverage.shares(self.rows[leading[here]])
        return MatchSignals(
            meaning=float((self.raw[VECTOR_AT, leading] * self.embedded[leading]).max()),
            words=float(around.max()),
            own=float(own[0]),
            bm25=float(self.raw[WORDS_AT, leading].max()),
            lead=lead_of(strengths, lone_lead),
            span=float(self.high[VECTOR_AT] - self.low[VECTOR_AT]),
            size=size_of(self.count),
        )


def score_exactly(seen: VisibleView, wanted: IntArray, query: ParsedQuery, vector: FloatArray | None) -> Candidates:
    values, coverage = signals(seen, query, vector)
    raw = values[:, wanted]
    best_words = float(values[WORDS_AT].max())
    vectors = seen.view.vectors
    comparable = vector is not None and vectors.rows.shape[1:] == vector.shape
    embedded = (vectors.whole[wanted] >= 0) & comparable
    apart_here = seen.sight.apart[wanted] if comparable else np.zeros(len(wanted), np.float32)
    numbers = seen.view.columns.number[wanted]
    return Candidates(
        numbers,
        raw,
        raw.min(axis=1),
        raw.max(axis=1),
        len(wanted),
        best_words,
        embedded,
        apart_here,
        wanted,
        np.zeros(len(wanted), np.int64),
        (coverage,),
    )


# --- meaning --------------------------------------------------------------------------------------------------------


def _fill_meaning(parts: dict[Part, FloatArray], seen: VisibleView, query: FloatArray) -> None:
    """Fill in the cosines of each row's text, of its window, and of the nearest row in its conversation."""
    vectors, size = seen.view.vectors, seen.view.size
    there = seen.visible & (vectors.whole >= 0)
    whole = np.zeros(size + 1, np.float32)
    whole[:size], own = cosines_of(vectors, query, there)
    parts[Part.WINDOW_VECTOR][:] = _window(seen, there, whole)
    parts[Part.VECTOR][:] = own
    parts[Part.SESSION_VECTOR][:] = _nearest_in_session(seen, there, own)


def _nearest_in_session(seen: VisibleView, there: BoolArray, own: FloatArray) -> FloatArray:
    session = seen.view.columns.conversation
    best = np.full(seen.view.names.conversations + 1, -1, np.float32)
    np.maximum.at(best, session[there], own[there])
    return np.where(there & (session >= 0), best[session], own)


def _window(seen: VisibleView, there: BoolArray, whole: FloatArray) -> FloatArray:
    links, size = seen.links, seen.view.size
    present = np.zeros(size + 1, np.float32)
    present[:size] = there
    before, after = present[links.previous], present[links.following]
    to_following = np.append(links.to_following, np.float32(0))
    products = to_following[links.previous] * before + links.to_following * after + links.across * before * after
    return (
        window_cosines(
            whole[:size] + whole[links.previous] + whole[links.following],
            np.float32(1) + before + after,
            products,
        )
        * there
    )


# --- words ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WordCoverage:
    """The words of a query that rows of one partition hold, each counted by how rare it is.

    `counts` has a row per word that occurs; `column` has each row's column in it, the last of which is empty. Every row
    holds the name of the owner, which is the share `owned`. A row holds the name of its speaker, which is the share
    `by_name`; `speakers` is 1 for rows whose speaker is named.
    """

    links: Links
    counts: FloatArray
    column: IntArray
    weights: FloatArray
    owned: float
    by_name: float
    speakers: FloatArray | None

    def shares(self, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the share of the words that each row holds, and that it holds with its neighbours."""
        links = self.links
        near = np.concatenate((rows, links.previous[rows], links.following[rows]))
        holds = (self.counts[:, self.column[near]] > 0).reshape(len(self.weights), 3, len(rows))
        own: FloatArray = self.weights @ holds[:, 0]
        around: FloatArray = self.weights @ holds.any(axis=1)
        if self.owned or self.speakers is not None:
            held = np.full(len(rows), self.owned, np.float32)
            if self.speakers is not None:
                held += np.float32(self.by_name) * self.speakers[rows]
            own, around = own + held, around + held
        return own, around


class _WordScores:
    """BM25 of rows, of their windows, and of their sessions, each with its own statistics."""

    def __init__(self, seen: VisibleView, terms: tuple[int, ...]) -> None:
        self._seen = seen
        view = seen.view
        which, rows, counts = view.postings.lookup_all(np.array(terms, np.uint64))
        keep = seen.visible[rows]
        which, self._rows, self._counts = which[keep], rows[keep], counts[keep].astype(np.float32)
        frequency = np.bincount(which, minlength=len(terms))
        occurring = np.flatnonzero(frequency)
        self._terms = len(occurring)
        renumbered = np.zeros(len(terms), np.int64)
        renumbered[occurring] = np.arange(len(occurring))
        self._which = renumbered[which]
        self._frequency = frequency[occurring].astype(np.float32)
        self._documents = seen.sight.documents
        self._idf = bm25_idf(self._frequency, self._documents)
        self._occurring, self._all_terms = occurring, terms
        self._counts_by_column = np.zeros((0, 1), np.float32)
        self._column = np.zeros(view.size + 1, np.int64)

    def coverage(
        self, owner_terms: tuple[int, ...], speakers: FloatArray | None, name_share: float = 1.0
    ) -> WordCoverage:
        """Return the words that rows hold. Call `fill` first.

        `speakers` is 1 for rows whose speaker is named; the name counts as this share of a word of mean weight.
        """
        terms = len(self._all_terms)
        missing = math.log1p((self._documents + 0.5) / 0.5)
        total = float(self._idf.sum()) + (terms - len(self._idf)) * missing
        name = 0.0 if speakers is None else name_share * (total / terms if terms else 1.0)
        scale = np.float32(total + name or 1)
        weights, owned = self._idf / scale, 0.0
        if owner_terms:
            idf = np.full(terms, missing, np.float32)
            idf[self._occurring] = self._idf
            are_names = np.isin(self._all_terms, owner_terms)
            owned = float(idf[are_names].sum() / scale)
            weights[are_names[self._occurring]] = 0
        return WordCoverage(
            links=self._seen.links,
            counts=self._counts_by_column,
            column=self._column,
            weights=weights,
            owned=owned,
            by_name=name / float(scale),
            speakers=speakers,
        )

    def fill(self, parts: dict[Part, FloatArray]) -> None:
        if not self._terms:
            return
        links, size = self._seen.links, self._seen.view.size
        candidates = np.zeros(size + 1, bool)
        candidates[self._rows] = True
        candidates[links.previous[self._rows]] = True
        candidates[links.following[self._rows]] = True
        candidates[size] = False
        candidates[:size] &= self._seen.visible
        columns = np.flatnonzero(candidates)
        place = np.full(size + 1, len(columns))
        place[columns] = np.arange(len(columns))
        counts = np.zeros((self._terms, len(columns) + 1), np.float32)
        counts[self._which, place[self._rows]] = self._counts
        self._counts_by_column, self._column = counts, place
        parts[Part.WORDS][columns] = self._of_rows(counts[:, :-1], columns)
        parts[Part.WINDOW_WORDS][columns] = self._of_windows(counts, columns, place)
        parts[Part.SESSION_WORDS][:] = self._of_sessions(parts[Part.WORDS])

    def _of_rows(self, counts: FloatArray, columns: IntArray) -> FloatArray:
        sight = self._seen.sight
        return saturate(bm25(counts, self._idf, sight.lengths[columns], sight.mean_length))

    def _of_windows(self, counts: FloatArray, columns: IntArray, place: IntArray) -> FloatArray:
        sight, links = self._seen.sight, self._seen.links
        before, after = links.previous[columns], links.following[columns]
        joined = counts[:, :-1] + counts[:, place[before]] + counts[:, place[after]]
        idf = bm25_idf(np.count_nonzero(joined, axis=1).astype(np.float32), self._documents)
        return saturate(bm25(joined, idf, sight.window_lengths[columns], sight.mean_window_length))

    def _of_sessions(self, own: FloatArray) -> FloatArray:
        """Scores of each row's session. Rows outside any conversation, or of the only one, get their own score."""
        scores = self.session_scores()
        if scores is None:
            return own
        seen = self._seen
        in_sessions = np.append(scores, np.float32(0))[seen.sight.sessions] * seen.visible
        return np.where(seen.view.columns.conversation < 0, own, in_sessions)

    def session_scores(self) -> FloatArray | None:
        """BM25 of each conversation as a whole; None for fewer than two."""
        sight = self._seen.sight
        # Not `names.conversations`: another thread may append to the dictionaries meanwhile.
        sessions = len(sight.session_lengths)
        if sight.session_count < 2:
            return None
        cells = self._which * (sessions + 1) + sight.sessions[self._rows]
        sums = np.bincount(cells, self._counts, self._terms * (sessions + 1)).reshape(self._terms, -1)
        counts: FloatArray = sums[:, :sessions].astype(np.float32)
        idf = bm25_idf(np.count_nonzero(counts, axis=1).astype(np.float32), sight.session_count)
        return saturate(bm25(counts, idf, sight.session_lengths, sight.mean_session_length))


# --- hints ----------------------------------------------------------------------------------------------------------


def _speaker_mask(seen: VisibleView, query: ParsedQuery) -> BoolArray:
    """Rows said by a sender that the query names; for rows without a sender, rows that contain the name."""
    view = seen.view
    named = np.zeros(len(view.names.senders.values) + 1, bool)
    named[[code for name in query.senders if (code := view.names.senders.find(name)) >= 0]] = True
    mask: BoolArray = named[view.columns.sender]
    _, rows, _ = view.postings.lookup_all(np.array(query.name_terms, np.uint64))
    mask[rows] |= view.columns.sender[rows] < 0
    return mask


def _statement_scores(flags: NDArray[np.int32]) -> FloatArray:
    """1 for a statement, 0.5 for one that ends in a question, 0 for a mere question."""
    asking = (flags & TextFlag.ENDS_ASKING) > 0
    only = (flags & TextFlag.QUESTION_ONLY) > 0
    return (1 - 0.5 * asking - 0.5 * only).astype(np.float32)


def _date_mask(seen: VisibleView, periods: tuple[Period, ...]) -> BoolArray:
    said_at = seen.view.columns.said_at
    first, last = (int(1970 + edge // _MICROS_PER_YEAR) for edge in seen.sight.span)
    years = range(max(first, last - _YEARS), last + 2)
    mask = np.zeros(len(said_at), bool)
    for period in periods:
        for start, end in period.spans(years):
            mask |= (said_at >= start) & (said_at < end)
    return mask
