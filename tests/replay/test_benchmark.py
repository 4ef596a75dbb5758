"""The benchmark gate: its measures, and that a change of the ranking turns it red and is named."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.ranking import Weights
from holdfast.errors import CapabilityUnavailable, InvalidFixture
from holdfast.search import searcher
from holdfast.search.embedders.static import StaticEmbedder
from holdfast.testing.replay import BenchmarkRecord, RecallBenchmark, RecallCase, run_benchmark
from holdfast.testing.replay.benchmark import MEASURES, measure

SUITES = [RecallBenchmark.read(file) for file in sorted((Path(__file__).parent / "benchmarks").glob("*.json"))]
SUITE = SUITES[-1]
IDS = "abcdefgh"


def test_the_measures_of_a_known_ranking() -> None:
    found = measure(RecallCase("x", "?", ("a", "b", "c"), top_k=4), "xaby")
    assert (found.recall, found.precision, found.mrr) == (0.6667, 0.5, 0.5)
    second, third = 1 / math.log2(3), 1 / math.log2(4)
    assert found.ndcg == round((second + third) / (1 + second + third), 4)


@given(st.permutations(IDS), st.sets(st.sampled_from(IDS), min_size=1), st.integers(1, 8))
def test_measures_lie_between_0_and_1_and_the_best_ranking_has_the_best(
    ranked: list[str], relevant: set[str], top_k: int
) -> None:
    case = RecallCase("x", "?", tuple(sorted(relevant)), top_k=top_k)
    found = measure(case, ranked)
    best = measure(case, sorted(ranked, key=lambda each: each not in relevant))
    for name in MEASURES:
        assert 0 <= getattr(found, name) <= getattr(best, name) <= 1
    assert (best.mrr, best.ndcg) == (1, 1)


# A runtime recalls messages of one conversation, so its weight hardly matters.
UNSEEN = {"session_vector", "adaptive"}


@pytest.mark.parametrize("part", sorted({each.name for each in fields(Weights)} - UNSEEN))
def test_a_changed_weight_turns_the_gate_red_and_names_the_cases(
    part: str, static_embedder: StaticEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = replace(Weights(), **{part: getattr(Weights(), part) * 0.7})  # type: ignore[arg-type]
    monkeypatch.setattr(searcher, "Weights", lambda: changed)
    reports = [run_benchmark(each, embedder=static_embedder) for each in SUITES]
    assert not all(report.passed for report in reports)
    assert any(report.changed for report in reports)


def test_what_a_case_demands_is_checked(static_embedder: StaticEmbedder) -> None:
    records = (BenchmarkRecord("a", "The cello stands in the hall."), BenchmarkRecord("b", "The cello needs strings."))
    cases = (
        RecallCase("forbidden", "Where is the cello?", ("a",), ("b",)),
        RecallCase("top", "Where is the cello?", ("a",), expected_top_id="b"),
        RecallCase("precision", "Where is the cello?", ("a",), min_precision=0.9),
    )
    report = run_benchmark(RecallBenchmark("own", records, cases), embedder=static_embedder)
    problems = {each.measurement.name: " ".join(each.problems) for each in report.results}
    assert report.failed_cases == 3
    assert "shows b, which is forbidden" in problems["forbidden"]
    assert "expected b first" in problems["top"]
    assert "precision is 0.2, below 0.9" in problems["precision"]
    assert all("no baseline" in problem for problem in problems.values())


def test_a_suite_that_does_not_fit_is_refused() -> None:
    with pytest.raises(CapabilityUnavailable, match="benchmark_gate"):
        run_benchmark(replace(SUITE, profile="esp-embedded-sdk"))
    document = json.loads(SUITE.to_text())
    for change, field in (
        ({"version": 0}, "version"),
        ({"format": "holdfast_replay_fixture"}, "format"),
        ({"records": [{"id": "a", "text": "x"}, {"id": "b", "text": "x"}], "cases": []}, "records"),
        ({"cases": [{"name": "x", "query": "?", "relevant": ["nobody"]}]}, "cases.x"),
    ):
        with pytest.raises(InvalidFixture) as refused:
            RecallBenchmark.from_json(json.dumps(document | change))
        assert refused.value.field == field
