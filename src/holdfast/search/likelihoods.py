"""Scores that say how likely a hit answers the query, from the strengths of the ranking."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain.calibration import LEADING, LEAST_SCALE, Calibration
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

    def __init__(
        self, found: Candidates, strengths: FloatArray, scale: float, ranking: IntArray, calibration: Calibration
    ) -> None:
        """`ranking` has the first candidates by their strengths, which are divided by `scale`."""
        self._calibration, self._count, self._scale = calibration, found.count, max(scale, LEAST_SCALE)
        self._strengths = [round(strength / self._scale, SCORE_DIGITS) for strength in strengths[ranking].tolist()]
        signals = MatchSignals()
        if len(ranking):
            signals = found.match_signals(ranking[:LEADING], self._strengths[:LEADING], calibration.lone_lead)
        self._answer = calibration.answer_likelihood(signals)
        # Equals share the first of their places: the same sentence, said twice, is as likely an answer both times.
        places = list(range(len(self._strengths)))
        for place in places[1:]:
            if self._strengths[place] == self._strengths[place - 1]:
                places[place] = places[place - 1]
        self.scores = self._scores(self._strengths, places)
        floor = calibration.least_relevant(self.scores[0]) if self.scores else calibration.floor
        self.basis = ScoreBasis(calibration.name, RANKING, self._answer, floor, signals)

    def score_at(self, strength: float, rank: int) -> float:
        """Return the score of a candidate at this rank, from 1, also behind the ranking; 0 if none ranks."""
        if not self._strengths:
            return 0.0
        own = round(strength / self._scale, SCORE_DIGITS)
        place = sum(each > own for each in self._strengths)
        return self._scores([own], [place if place < len(self._strengths) else rank - 1])[0]

    def _scores(self, strengths: Sequence[float], places: Sequence[int]) -> list[float]:
        if not strengths:
            return []
        first = self._strengths[0]
        behind = (min(strength - first, 0.0) for strength in strengths)
        likely = self._calibration.place_likelihoods(behind, places, self._count)
        return [self._answer * each for each in likely]
