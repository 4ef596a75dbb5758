"""Scores that say how likely a hit answers the query, from the strengths of the ranking."""

from __future__ import annotations

import numpy as np

from holdfast.domain.calibration import LEADING, Calibration
from holdfast.domain.ranking import FloatArray, IntArray
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
    """How likely candidates answer the query, from how well the leading ones match and how far others are behind."""

    def __init__(self, found: Candidates, strengths: FloatArray, best: IntArray, calibration: Calibration) -> None:
        """`best` are the first candidates of the ranking, which is that of their strengths."""
        self._calibration, self._count, self._best = calibration, found.count, best
        self._strengths = strengths
        leading = best[:LEADING]
        signals = found.match_signals(leading, self._strengths[leading]) if len(best) else MatchSignals()
        self._answer = calibration.answer_likelihood(signals)
        self._scores = self._at(best, np.arange(len(best)))
        floor = calibration.least_relevant(float(self._scores[0])) if len(best) else calibration.floor
        self.basis = ScoreBasis(calibration.name, RANKING, self._answer, floor, signals)

    def _at(self, candidates: IntArray, places: IntArray) -> FloatArray:
        behind = np.minimum(self._strengths[candidates] - self._strengths[self._best[:1]], 0)
        return np.float32(self._answer) * self._calibration.place_likelihoods(behind, places, self._count)

    def of(self, candidate: int, rank: int) -> float:
        """Return the score of a candidate at a rank, counted from 1."""
        if rank <= len(self._best) and self._best[rank - 1] == candidate:
            return float(self._scores[rank - 1])
        return float(self._at(np.array([candidate]), np.array([rank - 1]))[0])

    def count_from(self, least: float | None, most: int) -> int:
        """Count the first candidates, at most so many, that have at least this score: scores fall along the ranking."""
        return most if least is None else min(most, int(np.count_nonzero(self._scores >= np.float32(least))))
