"""Replay fixtures and gates: operations as data, whose result must be the same on every store and after every upgrade.

fixture = ReplayFixture.read("cello.json")
assert run_fixture(fixture, "postgresql:///memory").passed
"""

from holdfast.testing.replay.benchmark import (
    BenchmarkRecord,
    BenchmarkReport,
    CaseResult,
    RecallBenchmark,
    RecallCase,
    RecallMeasurement,
    record_baseline,
    run_benchmark,
)
from holdfast.testing.replay.fixture import ReplayExpectation, ReplayFixture
from holdfast.testing.replay.harness import HARNESS, run_harness
from holdfast.testing.replay.proposal_trial import ProposalTrial, try_proposal
from holdfast.testing.replay.recording import record_conversation
from holdfast.testing.replay.runner import (
    ReplayFailure,
    ReplayRunReport,
    StoreComparison,
    compare_runs,
    compare_stores,
    record_expectation,
    run_fixture,
    run_fixture_async,
)

__all__ = [
    "HARNESS",
    "BenchmarkRecord",
    "BenchmarkReport",
    "CaseResult",
    "ProposalTrial",
    "RecallBenchmark",
    "RecallCase",
    "RecallMeasurement",
    "ReplayExpectation",
    "ReplayFailure",
    "ReplayFixture",
    "ReplayRunReport",
    "StoreComparison",
    "compare_runs",
    "compare_stores",
    "record_baseline",
    "record_conversation",
    "record_expectation",
    "run_benchmark",
    "run_fixture",
    "run_fixture_async",
    "run_harness",
    "try_proposal",
]
