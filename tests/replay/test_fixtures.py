"""The replay gate: every committed fixture gives what it gave when it was recorded, on both stores.

To accept a change of behaviour: `HOLDFAST_REFRESH_GOLDEN=1 pytest tests/replay/test_fixtures.py`, then read the diff.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from blank import blank
from holdfast.domain.profiles import PROFILES, Backend
from holdfast.search.embedders.static import StaticEmbedder
from holdfast.testing.replay import (
    RecallBenchmark,
    ReplayExpectation,
    ReplayFixture,
    compare_runs,
    record_baseline,
    record_expectation,
    run_benchmark,
    run_fixture,
)
from holdfast.testing.replay.fixture import NOTHING_EXPECTED
from postgres import AnyServer

sys.path.insert(0, str(Path(__file__).parent))

from scenarios import all_benchmarks, all_fixtures

FIXTURES = Path(__file__).parent / "fixtures"
BENCHMARKS = Path(__file__).parent / "benchmarks"
REFRESH = bool(os.environ.get("HOLDFAST_REFRESH_GOLDEN"))
SCENARIOS = {fixture.fixture_id: fixture for fixture in all_fixtures()}
SUITES = {benchmark.suite: benchmark for benchmark in all_benchmarks()}
ON_POSTGRES = [name for name, fixture in SCENARIOS.items() if Backend.POSTGRES in PROFILES[fixture.profile].backends]


def committed(name: str) -> ReplayFixture:
    return ReplayFixture.read(FIXTURES / f"{name}.json")


def suite(name: str) -> RecallBenchmark:
    return RecallBenchmark.read(BENCHMARKS / f"{name}.json")


@pytest.fixture(scope="module")
def postgres_stores(postgres: AnyServer) -> Iterator[dict[str, str]]:
    """A store for each profile: its manifest allows no other."""
    urls = {profile: postgres.migrated_url() for profile in {SCENARIOS[name].profile for name in ON_POSTGRES}}
    yield urls
    for url in urls.values():
        postgres.drop(url)


def refresh(static_embedder: StaticEmbedder) -> None:
    for file in (*FIXTURES.glob("*.json"), *BENCHMARKS.glob("*.json")):
        file.unlink()
    for name, fixture in SCENARIOS.items():
        recorded = record_expectation(fixture, embedder=static_embedder)
        (FIXTURES / f"{name}.json").write_text(recorded.to_text(), "utf-8")
    for name, benchmark in SUITES.items():
        recorded_suite = record_baseline(benchmark, embedder=static_embedder)
        (BENCHMARKS / f"{name}.json").write_text(recorded_suite.to_text(), "utf-8")


def test_the_files_hold_the_scenarios(static_embedder: StaticEmbedder) -> None:
    if REFRESH:
        refresh(static_embedder)
    assert {file.stem for file in FIXTURES.glob("*.json")} == SCENARIOS.keys()
    assert {file.stem for file in BENCHMARKS.glob("*.json")} == SUITES.keys()
    assert len(SCENARIOS) >= 50
    for name, fixture in SCENARIOS.items():
        assert committed(name).expecting(NOTHING_EXPECTED).to_text() == fixture.to_text()
    for name, benchmark in SUITES.items():
        assert replace(suite(name), baseline=()).to_text() == benchmark.to_text()


def test_every_scenario_differs_from_the_others_of_its_family() -> None:
    """Two fixtures with one result would test one thing twice, except where profiles must not matter."""
    results: dict[ReplayExpectation, list[str]] = {}
    for name in SCENARIOS:
        results.setdefault(committed(name).expected, []).append(name)
    twice = [names for names in results.values() if len(names) > 1]
    # These two authorities are governed alike. A profile changes limits, and nothing of a day within them.
    assert ["write-archive-evidence", "write-legacy-transcript"] in twice
    assert all(name.startswith("profile-") for names in twice for name in names if not name.startswith("write-"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_fixture_gives_what_it_gave(name: str, static_embedder: StaticEmbedder) -> None:
    fixture = committed(name)
    run = run_fixture(fixture, embedder=static_embedder)
    assert run.failures == ()
    assert run.expectation() == fixture.expected


@pytest.mark.parametrize("name", ON_POSTGRES)
def test_a_fixture_gives_the_same_on_postgresql(
    name: str, postgres_stores: dict[str, str], static_embedder: StaticEmbedder
) -> None:
    fixture = committed(name)
    run = run_fixture(fixture, postgres_stores[fixture.profile], embedder=static_embedder)
    assert run.failures == ()
    assert run.expectation() == fixture.expected


@pytest.mark.parametrize("name", ["lifecycle-of-turns", "profile-esp-embedded-sdk", "transfer-full-restore"])
def test_a_file_and_memory_agree(name: str, tmp_path: Path, static_embedder: StaticEmbedder) -> None:
    places = (":memory:", str(blank(tmp_path / "memory.db")))
    runs = [run_fixture(committed(name), place, embedder=static_embedder) for place in places]
    compared = compare_runs(name, runs)
    assert compared.passed, compared.differences
    assert len({run.backend for run in runs}) == 2


@pytest.mark.parametrize("name", SUITES)
def test_a_benchmark_gives_its_baseline(name: str, static_embedder: StaticEmbedder) -> None:
    report = run_benchmark(suite(name), embedder=static_embedder)
    assert {each.measurement.name: each.problems for each in report.results if each.problems} == {}
    assert (report.passed, report.changed) == (True, ())


@pytest.mark.parametrize("name", SUITES)
def test_a_benchmark_gives_its_baseline_on_postgresql(
    name: str, migrated_url: str, static_embedder: StaticEmbedder
) -> None:
    assert run_benchmark(suite(name), migrated_url, embedder=static_embedder).passed
