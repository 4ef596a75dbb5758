"""Scores that say how likely a hit answers the query, from the strength of the ranking.

A score is the product of two likelihoods: that the candidates hold an answer at all (the same for all hits of a
search), and that a hit at this place, so far behind the best, is one. Both are logistic functions, fitted per embedder
on public questions with and without an answer in the store; `calibrations.py` holds the numbers. Scores never rise
along a ranking, so the calibration does not change its order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.domain.results import MatchSignals

# The number of leading hits that say whether there is an answer. A first page.
LEADING = 10
# More records than this make a hit no less likely.
_MOST_RECORDS = 1_000
# Strengths are divided by the sum of the weights, but not by less.
LEAST_SCALE = 0.02
# Of hits that are recalled, each has at least this share of the best score.
LEAST_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Calibration:
    """Fitted numbers for one method of search with one kind of vectors.

    `answer` are a constant and the weights of `MatchSignals`; `place` a constant and the weights of the distance to the
    best, of the logarithm of the place, and of that of the number of candidates. `floor` is the least score of a best
    hit that bears on the query. `lone_lead` is the lead of an only hit.
    """

    name: str
    answer: tuple[float, ...]
    place: tuple[float, float, float, float]
    floor: float
    lone_lead: float

    def answer_likelihood(self, signals: MatchSignals) -> float:
        """Return how likely the candidates hold an answer."""
        constant, meaning, words, own, bm25, lead, span, size = self.answer
        return _logistic(
            constant
            + meaning * signals.meaning
            + words * signals.words
            + own * signals.own
            + bm25 * signals.bm25
            + lead * signals.lead
            + span * signals.span
            + size * signals.size
        )

    def place_likelihoods(self, behind: Iterable[float], places: Iterable[int], candidates: int) -> list[float]:
        """Return how likely each hit is an answer, if there is one. `behind` is its distance to the best, 0 or less."""
        constant, by_distance, by_place, by_size = self.place
        # A page of hits is too short for arrays.
        constant += by_size * size_of(candidates)
        exp, log1p = math.exp, math.log1p
        return [
            1 / (1 + exp(-constant - by_distance * distance - by_place * log1p(place)))
            for distance, place in zip(behind, places, strict=True)
        ]

    def least_relevant(self, best: float) -> float:
        """Return the least score of a hit that bears on the query, if the best hit has this score."""
        return self.floor if best < self.floor else LEAST_SHARE * best


def size_of(candidates: int) -> float:
    """Return the logarithm of the number of candidates, as far as it counts."""
    return math.log(min(max(candidates, 1), _MOST_RECORDS))


def lead_of(strengths: Sequence[float], lone: float) -> float:
    """Return how far the first of these strengths, which fall, is ahead of the weaker half of the others.

    The stronger half may repeat the first. An only strength has the `lone` lead.
    """
    weaker = strengths[1 + len(strengths) // 2 :] or strengths[1:]
    return strengths[0] - sum(weaker) / len(weaker) if weaker else lone


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-min(max(value, -30.0), 30.0)))
