"""Fit calibrations to observations by logistic regression, and measure them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from bench.calibration.observations import WHOLE, Floats, Observation
from holdfast.domain.calibration import LEADING, Calibration
from holdfast.domain.results import MatchSignals

SIGNALS = tuple(field.name for field in fields(MatchSignals))
_BINS = 10
_RIDGE = 1e-5
_STEPS = 60


@dataclass(frozen=True, slots=True)
class Figures:
    """How well scores mean what they say.

    `auroc` rates the best score of a search as a sign that the store holds an answer; the errors are the expected
    calibration errors of that likelihood, of the best hits' scores, and of the scores of the first ten hits.
    """

    searches: int
    auroc: float
    answer_error: float
    best_error: float
    hits_error: float
    lost: float
    silent: float


def fit(name: str, observations: Sequence[Observation], used: Iterable[str], lost: float) -> Calibration:
    """Fit a calibration that uses these signals. Below its floor falls this share of the answers in conversations.

    Every kind of data counts as much as it has searches. An only hit has a constant of its own: a lead that it would
    have.
    """
    places = [place for place, signal in enumerate(SIGNALS) if signal in set(used)]
    signals = np.array([(*_signals(each, 0.0), _is_alone(each)) for each in observations])[:, [*places, len(SIGNALS)]]
    constant, *weights, alone = _logistic(signals, np.array([each.has_answer for each in observations], float))
    lone_lead = alone / weights[[SIGNALS[place] for place in places].index("lead")]
    answer = np.zeros(1 + len(SIGNALS))
    answer[0] = constant
    answer[[1 + place for place in places]] = weights
    answered = [each for each in observations if each.has_answer]
    rows = np.concatenate([_places(each) for each in answered])
    place = _fit_places(rows, np.concatenate([each.answers[:LEADING] for each in answered]).astype(float))
    fitted = Calibration(name, _rounded(answer), (*_rounded(place),), 0.0, round(lone_lead, 4))  # type: ignore[arg-type]
    best = [float(scores_of(fitted, each)[0]) for each in answered if each.kind == WHOLE and len(each.behind)]
    floor = math.floor(float(np.quantile(best, lost)) * 10_000) / 10_000
    return replace(fitted, floor=floor)


def _is_alone(observation: Observation) -> bool:
    return len(observation.behind) == 1


def _signals(observation: Observation, lone_lead: float) -> tuple[float, ...]:
    if not _is_alone(observation):
        return observation.signals
    return tuple(
        lone_lead if name == "lead" else value for name, value in zip(SIGNALS, observation.signals, strict=True)
    )


def _answer_likelihood(calibration: Calibration, observation: Observation) -> float:
    return calibration.answer_likelihood(MatchSignals(*_signals(observation, calibration.lone_lead)))


def _places(observation: Observation) -> Floats:
    behind = observation.behind[:LEADING]
    size = np.full(len(behind), math.log(min(max(observation.candidates, 1), 1_000)))
    return np.stack([behind, np.log1p(np.arange(len(behind))), size], axis=1)


def _fit_places(rows: Floats, outcomes: Floats) -> Floats:
    """Fit the weights of places. Scores may not rise along the ranking: a weight that would let them is 0."""
    weights = _logistic(rows, outcomes)
    rising = [column for column, sign in ((1, 1), (2, -1)) if weights[column] * sign < 0]
    if rising:
        others = [column for column in (1, 2, 3) if column not in rising]
        fitted = _logistic(rows[:, [column - 1 for column in others]], outcomes)
        weights = np.zeros(len(weights))
        weights[[0, *others]] = fitted
    return weights


def _rounded(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(round(float(value), 4) for value in values)


def _logistic(rows: Floats, outcomes: Floats) -> Floats:
    """Fit a logistic regression by Newton's method. The first weight is the constant."""
    rows = np.concatenate([np.ones((len(rows), 1)), rows], axis=1)
    weights = np.zeros(rows.shape[1])
    ridge = np.eye(rows.shape[1]) * _RIDGE * len(rows)
    ridge[0, 0] = 0
    for _ in range(_STEPS):
        likely = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        slope = rows.T @ (likely - outcomes) + ridge @ weights
        curve = (rows * (likely * (1 - likely))[:, None]).T @ rows + ridge + np.eye(len(weights)) * 1e-9
        weights = weights - np.linalg.solve(curve, slope)
    return weights


def scores_of(calibration: Calibration, observation: Observation) -> Floats:
    """Return the scores that the calibration gives to the first ten hits."""
    behind = observation.behind[:LEADING].tolist()
    return _answer_likelihood(calibration, observation) * np.array(
        calibration.place_likelihoods(behind, range(len(behind)), observation.candidates)
    )


def fit_in_turn(name: str, observations: Sequence[Observation], used: Iterable[str], lost: float) -> dict[str, Figures]:
    """Measure by kind of data: each conversation with a calibration that was fitted to the others."""
    used = tuple(used)
    rated: list[tuple[Observation, Calibration]] = []
    for group in sorted({each.group for each in observations}):
        fitted = fit(name, [each for each in observations if each.group != group], used, lost)
        rated += [(each, fitted) for each in observations if each.group == group]
    kinds = dict.fromkeys(each.kind for each in observations)
    return {kind: measure([pair for pair in rated if pair[0].kind == kind]) for kind in kinds}


def measure(rated: Sequence[tuple[Observation, Calibration]]) -> Figures:
    rated = [(each, fitted) for each, fitted in rated if len(each.behind)]
    scores = [scores_of(fitted, each) for each, fitted in rated]
    best = np.array([found[0] for found in scores])
    has = np.array([each.has_answer for each, _ in rated], float)
    answer = np.array([_answer_likelihood(fitted, each) for each, fitted in rated])
    below = best < np.array([fitted.floor for _, fitted in rated])
    return Figures(
        searches=len(rated),
        auroc=auroc(best, has),
        answer_error=calibration_error(answer, has),
        best_error=calibration_error(best, np.array([each.answers[0] for each, _ in rated], float)),
        hits_error=calibration_error(
            np.concatenate(scores), np.concatenate([each.answers[:LEADING] for each, _ in rated]).astype(float)
        ),
        lost=float(below[has == 1].mean()),
        silent=float(below[has == 0].mean()),
    )


def auroc(scores: Floats, outcomes: Floats) -> float:
    """Return how often a positive scores higher than a negative; a tie counts half."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    positive = int(outcomes.sum())
    negative = len(outcomes) - positive
    return float((ranks[outcomes == 1].sum() - positive * (positive + 1) / 2) / (positive * negative))


def calibration_error(likely: Floats, outcomes: Floats) -> float:
    """Return the expected calibration error over ten bins of equal width."""
    bins = np.minimum((likely * _BINS).astype(int), _BINS - 1)
    error = 0.0
    for at in range(_BINS):
        here = bins == at
        if here.any():
            error += here.mean() * abs(likely[here].mean() - outcomes[here].mean())
    return float(error)
