"""Scores that say how likely a hit answers the query, from the strengths of the ranking."""

from __future__ import annotations

import numpy as np

from holdfast.domain.calibration import LEADING, Calibration
from holdfast.domain.ranking import SCORE_DIGITS, FloatArray, IntArray
from holdfast.domain.results import MatchSignals, ScoreBasis
from holdfast.domain.search import Method
from holdfast.search.calibrations import CALIBRATIONS, RANKING
from holdfast.search.embedders.static import STATIC_PREFIX
from holdfast.search.signals import Candidates

# The calibrations of embedders that nobody fitted, and of searches by words alone.
UNKNOWN, WORDS = "unknown", "words"
_BY_NAME = {calibration.name: calibration for calibration in CALIBRATIONS}


def find_calibration(embedder: str, method: Method, *, has_vector: bool) -> Calibration:
    """Return the calibration for the embedder with this fingerprint."""
    if method is Method.KEYWORD or not has_vector:
        return _BY_NAME[WORDS]
    return _BY_NAME[f"{_kind(embedder)}/{method}"]


def _kind(embedder: str) -> str:
    if embedder.startswith(STATIC_PREFIX):
        return "static"
    # The fingerprint has the name of the folder: exports of one model differ in their bytes, hardly in their vectors.
    source, _, name = embedder.partition(":")
    return "minilm" if source == "onnx" and "minilm" in name.partition(":")[0].casefold() else UNKNOWN


class Likelihoods:
    """How likely candidates answer the query, from how well the leading ones match and how far others are behind.

    `scores` are those of the ranking, which fall.
    """

    def __init__(self, found: Candidates, strengths: FloatArray, ranking: IntArray, calibration: Calibration) -> None:
        """`ranking` has the first candidates by their strengths."""
        self._calibration, self._count = calibration, found.count
        self._strengths, self._first = strengths, ranking[:1]
        leading = ranking[:LEADING]
        signals = found.match_signals(leading, strengths[leading]) if len(ranking) else MatchSignals()
        self._answer = calibration.answer_likelihood(signals)
        self._falling = -np.round(strengths[ranking], SCORE_DIGITS)
        # Equals share the first of their places: the same sentence, said twice, is as likely an answer both times.
        self.scores = self._at(ranking, np.searchsorted(self._falling, self._falling))
        floor = calibration.least_relevant(float(self.scores[0])) if len(ranking) else calibration.floor
        self.basis = ScoreBasis(calibration.name, RANKING, self._answer, floor, signals)

    def score_at(self, candidate: int, rank: int) -> float:
        """Return the score of a candidate at this rank, from 1, also behind the ranking; 0 if none ranks."""
        if not len(self._falling):
            return 0.0
        place = int(np.searchsorted(self._falling, -np.round(self._strengths[candidate], SCORE_DIGITS)))
        return float(self._at(np.array([candidate]), np.array([place if place < len(self._falling) else rank - 1]))[0])

    def _at(self, candidates: IntArray, places: IntArray) -> FloatArray:
        behind = np.minimum(self._strengths[candidates] - self._strengths[self._first], 0)
        return np.float32(self._answer) * self._calibration.place_likelihoods(behind, places, self._count)
