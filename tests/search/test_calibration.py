"""Scores say how likely a hit answers the query, and were fitted to the ranking that is used."""

from __future__ import annotations

import numpy as np
import pytest
from bench.calibration.first_person import in_first_person
from bench.calibration.fitting import auroc, calibration_error
from bench.calibration.sample import ranking_version, sample_strengths
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.domain.calibration import LEADING, LEAST_SHARE, Calibration, lead_of
from holdfast.domain.results import MatchSignals
from holdfast.domain.search import Method
from holdfast.search import calibrations
from holdfast.search.likelihoods import find_calibration

finite = st.floats(-1, 1, allow_nan=False)


def test_the_calibrations_were_fitted_to_this_ranking() -> None:
    message = "the ranking has changed: run `python -m bench.calibration --write`, and look at the figures"
    assert sample_strengths() == pytest.approx(calibrations.STRENGTHS, abs=2e-3), message
    assert ranking_version(calibrations.STRENGTHS) == calibrations.RANKING


@pytest.mark.parametrize("calibration", calibrations.CALIBRATIONS, ids=lambda each: each.name)
@given(
    signals=st.builds(MatchSignals, *[finite] * 7),
    behind=st.lists(st.floats(-1, 0), min_size=1, max_size=30),
    size=st.integers(1, 10**7),
)
def test_scores_are_probabilities_and_never_rise_along_a_ranking(
    calibration: Calibration, signals: MatchSignals, behind: list[float], size: int
) -> None:
    falling = sorted(behind, reverse=True)
    likely = calibration.place_likelihoods(falling, range(len(falling)), size)
    scores = calibration.answer_likelihood(signals) * np.array(likely)
    assert ((scores >= 0) & (scores <= 1)).all()
    assert (np.diff(scores) <= 1e-7).all()
    best = float(scores[0])
    assert 0 < calibration.floor < 0.2
    assert calibration.least_relevant(best) <= max(best, calibration.floor)
    assert (calibration.least_relevant(best) <= best) == (best >= calibration.floor)
    assert calibration.least_relevant(1.0) == LEAST_SHARE


@pytest.mark.parametrize(
    ("embedder", "method", "has_vector", "name"),
    [
        ("static:any:1", Method.HYBRID, True, "static/hybrid"),
        ("static:any:1", Method.VECTOR, True, "static/vector"),
        ("static:any:1", Method.KEYWORD, True, "words"),
        ("static:any:1", Method.HYBRID, False, "words"),
        ("onnx:all-MiniLM-L6-v2:0123:ort1:1", Method.HYBRID, True, "minilm/hybrid"),
        ("onnx:bge-small:minilm:ort1:1", Method.HYBRID, True, "unknown/hybrid"),
        ("openai:https://minilm.example:x:own:1", Method.VECTOR, True, "unknown/vector"),
        ("fake:8:1", Method.HYBRID, True, "unknown/hybrid"),
    ],
)
def test_each_embedder_and_method_has_a_calibration(embedder: str, method: Method, has_vector: bool, name: str) -> None:
    assert find_calibration(embedder, method, has_vector=has_vector).name == name


def test_a_question_about_the_owner_scores_higher_than_one_about_nothing_here() -> None:
    with holdfast.open(":memory:", embedder="static") as memory:
        memory.add("I moved to Lisbon last week.", subject="ana")
        own = memory.search("Where does Ana live?", subject="ana")[0].score
        foreign = memory.search("What is the boiling point of tungsten?", subject="ana")[0].score
    assert own > 5 * foreign


@pytest.mark.parametrize("copies", [1, 2, 4])
def test_repetitions_of_the_answer_hardly_change_its_score(copies: int) -> None:
    def score(times: int) -> float:
        with holdfast.open(":memory:", embedder="static") as memory:
            for number in range(30):
                memory.add(f"The delivery of order {number} was late again, said the driver.", subject="shop")
            for _ in range(times):
                memory.add("The key of the safe is in the blue drawer.", subject="shop")
            return memory.search("Where is the key of the safe?", subject="shop", top_k=5)[0].score

    assert score(copies) == pytest.approx(score(1), abs=0.1)


def test_a_radius_and_the_number_of_results_change_no_score() -> None:
    with holdfast.open(":memory:", embedder="static") as memory:
        for number in range(25):
            memory.add(f"Note {number}: the cat of the neighbours sleeps on roof {number % 3}.", subject="ana")
        all_scores = {hit.id: hit.score for hit in memory.search("cat on the roof", subject="ana", top_k=50)}
        for options in ({"top_k": 1}, {"top_k": 3}, {"top_k": 50, "radius": 0.4}, {"top_k": 50, "min_score": 0.01}):
            for hit in memory.search("cat on the roof", subject="ana", **options):
                assert hit.score == pytest.approx(all_scores[hit.id])


def test_an_explanation_shows_the_basis_of_the_scores() -> None:
    with holdfast.open(":memory:", embedder="static") as memory:
        memory.add("The ferry leaves at nine.", subject="ana")
        basis = memory.explain("When does the ferry leave?", subject="ana").basis
        assert basis is not None
        assert (basis.calibration, basis.ranking) == ("static/hybrid", calibrations.RANKING)
        assert basis.signals.own == pytest.approx(1)
        assert 0.5 < basis.answer < 1
        empty = memory.explain("When does the ferry leave?", subject="nobody")
        assert empty.hits == ()


def test_the_lead_is_that_over_the_weaker_half() -> None:
    strengths = [0.9, 0.9, 0.9, 0.5, 0.5, 0.5, 0.1]
    assert lead_of(strengths[:LEADING], 0.4) == pytest.approx(0.9 - (0.5 + 0.5 + 0.1) / 3)
    assert lead_of(strengths[:2], 0.4) == pytest.approx(0)
    assert lead_of(strengths[:1], 0.4) == 0.4


def test_the_measures_agree_with_their_definitions() -> None:
    chance = np.random.default_rng(3)
    outcomes = chance.integers(0, 2, 200).astype(float)
    scores = np.round(chance.random(200), 1)
    pairs = [(a > b) + 0.5 * (a == b) for a in scores[outcomes == 1].tolist() for b in scores[outcomes == 0].tolist()]
    assert auroc(scores, outcomes) == pytest.approx(np.mean(pairs))
    assert calibration_error(np.full(4, 0.5), np.array([1.0, 0, 1, 0])) == 0
    assert calibration_error(np.full(4, 0.95), np.zeros(4)) == pytest.approx(0.95)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where does Ana live?", "Where do I live?"),
        ("What is Ana's favourite food?", "What is my favourite food?"),
        ("How long has Ana had her dog?", "How long have I had my dog?"),
        ("What did the doctor recommend to Ana?", "What did the doctor recommend to me?"),
        ("Why did Ana move with Ben?", None),
        ("Where does Ben live?", None),
    ],
)
def test_a_question_about_one_speaker_is_put_into_the_first_person(question: str, expected: str | None) -> None:
    assert in_first_person(question, "Ana", {"Ben"}) == expected
