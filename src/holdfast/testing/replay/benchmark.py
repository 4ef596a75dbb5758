"""The benchmark gate: recall over a set of records, measured against a committed baseline.

A case passes if it meets its minimums, shows nothing forbidden, and gives what the baseline says: the same records in
the same order, with the same scores. So every change of the ranking is seen, and recorded on purpose.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike

from holdfast.domain.candidates import CandidatePrivacy
from holdfast.domain.memory import Plane
from holdfast.domain.presentable import Presentable
from holdfast.domain.profiles import DEFAULT_PROFILE
from holdfast.domain.runtime_api.retrieval import MemoryRecallRequest
from holdfast.domain.runtime_api.transcripts import MemoryTranscriptCommitRequest, TranscriptTurnInput, TurnMessage
from holdfast.domain.runtime_api.writing import MemoryWriteCandidate, MemoryWriteRequest
from holdfast.domain.transcript import Role
from holdfast.errors import InvalidFixture
from holdfast.ports import EmbedderLike
from holdfast.testing.replay.fixture import ReplayFixture, read_document, read_fixture_file, write_document
from holdfast.testing.replay.operations import CHAT, ReplaySession
from holdfast.testing.replay.runner import IN_MEMORY, require_capability, require_empty, session_on

FORMAT = "holdfast_recall_benchmark"
VERSION = 1
# Scores closer than this are equal: processors differ in the last bits of a sum.
SCORE_TOLERANCE = 0.002
SCORE_DIGITS = 4


@dataclass(frozen=True, slots=True)
class BenchmarkRecord(Presentable):
    """A record to find: a message, or with a `plane` a candidate memory. Its text must be unique."""

    id: str
    text: str
    sender: str | None = None
    role: Role = Role.USER
    plane: Plane | None = None
    authority: str | None = None


@dataclass(frozen=True, slots=True)
class RecallCase(Presentable):
    """A query, and what must be found. With a `plane`, only memories of that plane count."""

    name: str
    query: str
    relevant: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    plane: Plane | None = None
    top_k: int = 5
    expected_top_id: str | None = None
    min_recall: float = 0.0
    min_precision: float = 0.0
    min_mrr: float = 0.0
    min_ndcg: float = 0.0


@dataclass(frozen=True, slots=True)
class RecallMeasurement(Presentable):
    """The result of a case: ids with scores, best first, and the four measures at its `top_k`."""

    name: str
    ranked: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    recall: float = 0.0
    precision: float = 0.0
    mrr: float = 0.0
    ndcg: float = 0.0


MEASURES = ("recall", "precision", "mrr", "ndcg")


@dataclass(frozen=True, slots=True)
class RecallBenchmark(Presentable):
    """A suite of cases over the same records, and its baseline: one measurement for each case."""

    suite: str
    records: tuple[BenchmarkRecord, ...]
    cases: tuple[RecallCase, ...]
    profile: str = DEFAULT_PROFILE
    embedder: str = "static"
    baseline: tuple[RecallMeasurement, ...] = ()

    def __post_init__(self) -> None:
        for name, values in (
            ("records", [record.id for record in self.records]),
            ("records", [record.text for record in self.records]),
            ("cases", [case.name for case in self.cases]),
        ):
            if len(set(values)) < len(values):
                raise InvalidFixture(name, "holds two with the same id, text or name")
        known = {record.id for record in self.records}
        for case in self.cases:
            if unknown := {*case.relevant, *case.forbidden} - known:
                raise InvalidFixture(f"cases.{case.name}", f"there is no record {min(unknown)!r:.60}")
            if case.top_k < 1:
                raise InvalidFixture(f"cases.{case.name}.top_k", "must be 1 or more")

    @classmethod
    def from_json(cls, text: str | bytes) -> RecallBenchmark:
        return read_document(cls, text, FORMAT, VERSION)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> RecallBenchmark:
        return cls.from_json(read_fixture_file(path))

    def to_text(self) -> str:
        return write_document(self, FORMAT, VERSION)


@dataclass(frozen=True, slots=True)
class CaseResult(Presentable):
    """A measured case, and the reasons why it failed."""

    measurement: RecallMeasurement
    passed: bool
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BenchmarkReport(Presentable):
    """The result of a suite. `changed` names each case that differs from the baseline."""

    suite: str
    cases: int
    passed_cases: int
    failed_cases: int
    passed: bool
    changed: tuple[str, ...]
    results: tuple[CaseResult, ...]


def run_benchmark(
    benchmark: RecallBenchmark, store: str = IN_MEMORY, *, embedder: EmbedderLike | None = None
) -> BenchmarkReport:
    """Run a suite in an empty space of a store, and compare it with its baseline."""
    measured = measure_benchmark(benchmark, store, embedder=embedder)
    baseline = {each.name: each for each in benchmark.baseline}
    results, changed = [], []
    for case, found in zip(benchmark.cases, measured, strict=True):
        differences = compare_measurements(baseline.get(case.name), found)
        changed += [case.name] if differences else []
        problems = (*_list_problems(case, found), *differences)
        results.append(CaseResult(found, not problems, problems))
    passed = sum(each.passed for each in results)
    return BenchmarkReport(
        benchmark.suite,
        len(results),
        passed,
        len(results) - passed,
        passed == len(results),
        tuple(changed),
        tuple(results),
    )


def record_baseline(
    benchmark: RecallBenchmark, store: str = IN_MEMORY, *, embedder: EmbedderLike | None = None
) -> RecallBenchmark:
    """Return the suite with its present measurements as the baseline."""
    return replace(benchmark, baseline=measure_benchmark(benchmark, store, embedder=embedder))


def measure_benchmark(
    benchmark: RecallBenchmark, store: str = IN_MEMORY, *, embedder: EmbedderLike | None = None
) -> tuple[RecallMeasurement, ...]:
    """Store the records and run all cases."""
    require_capability(benchmark.profile, "benchmark_gate")
    return asyncio.run(_measure_all(benchmark, store, embedder))


def measure(case: RecallCase, ranked: Sequence[str], scores: Sequence[float] = ()) -> RecallMeasurement:
    """Measure the ids that a case found. Without relevant records, every measure is 1."""
    shown = list(ranked)[: case.top_k]
    if not case.relevant:
        return RecallMeasurement(case.name, tuple(shown), tuple(scores)[: case.top_k], 1.0, 1.0, 1.0, 1.0)
    hits = [place for place, each in enumerate(shown, 1) if each in case.relevant]
    ideal = _gain(range(1, min(len(case.relevant), case.top_k) + 1))
    values = (
        len(hits) / len(case.relevant),
        len(hits) / case.top_k,
        1 / hits[0] if hits else 0.0,
        _gain(hits) / ideal,
    )
    return RecallMeasurement(
        case.name, tuple(shown), tuple(scores)[: case.top_k], *(round(value, SCORE_DIGITS) for value in values)
    )


def _gain(places: Sequence[int]) -> float:
    return sum(1 / math.log2(place + 1) for place in places)


# --- steps ------------------------------------------------------------------------------------------------------------


async def _measure_all(
    benchmark: RecallBenchmark, store: str, embedder: EmbedderLike | None
) -> tuple[RecallMeasurement, ...]:
    # A fixture without operations: a benchmark runs in a session like that of a fixture.
    fixture = ReplayFixture(f"benchmark-{benchmark.suite.replace('_', '-')}", (), benchmark.profile, benchmark.embedder)
    async with session_on(fixture, store, embedder) as session:
        await require_empty(session.runtime, fixture)
        await _store_records(session, benchmark.records)
        names = {record.text: record.id for record in benchmark.records}
        return tuple([await _measure_case(session, case, names) for case in benchmark.cases])


async def _store_records(session: ReplaySession, records: Sequence[BenchmarkRecord]) -> None:
    for record in records:
        session.clock.step(1.0)
        if record.plane is None:
            message = TurnMessage(record.text, str(record.role), sender=record.sender, authority=record.authority)
            turn = TranscriptTurnInput(record.id, (message,), CHAT)
            await session.runtime.commit_transcript(MemoryTranscriptCommitRequest(turn))
        else:
            authority = record.authority or "program_memory_canonical"
            candidate = MemoryWriteCandidate(
                record.id, authority, record.text, record.plane, CandidatePrivacy.SHAREABLE
            )
            await session.runtime.write(MemoryWriteRequest.candidates(candidate))


async def _measure_case(session: ReplaySession, case: RecallCase, names: dict[str, str]) -> RecallMeasurement:
    report = await session.runtime.recall(MemoryRecallRequest(case.query, limit=case.top_k, scope=CHAT))
    found = (*report.working.hits, *report.procedural_hits)
    hits = [hit for hit in found if case.plane in (None, hit.plane)]
    # Some summaries of skills are no record's text.
    ranked = [names.get(hit.text, hit.skill_name or hit.text) for hit in hits]
    return measure(case, ranked, [round(hit.score, SCORE_DIGITS) for hit in hits])


def _list_problems(case: RecallCase, found: RecallMeasurement) -> list[str]:
    problems = [f"shows {each}, which is forbidden" for each in found.ranked if each in case.forbidden]
    first = next(iter(found.ranked), None)
    if case.expected_top_id is not None and first != case.expected_top_id:
        problems.append(f"expected {case.expected_top_id} first, found {first}")
    for name in MEASURES:
        least, value = getattr(case, f"min_{name}"), getattr(found, name)
        if value < least:
            problems.append(f"{name} is {value}, below {least}")
    return problems


def compare_measurements(baseline: RecallMeasurement | None, found: RecallMeasurement) -> list[str]:
    """Return each difference from the baseline, in words."""
    if baseline is None:
        return ["has no baseline; record it with `holdfast replay record`"]
    differences = [
        f"{name} was {getattr(baseline, name)}, is {getattr(found, name)}"
        for name in MEASURES
        if getattr(baseline, name) != getattr(found, name)
    ]
    if baseline.ranked != found.ranked:
        differences.append(f"the ranking was {list(baseline.ranked)}, is {list(found.ranked)}")
    elif moved := [
        f"{each} {old} to {new}"
        for each, old, new in zip(found.ranked, baseline.scores, found.scores, strict=True)
        if abs(old - new) > SCORE_TOLERANCE
    ]:
        differences.append(f"scores changed: {', '.join(moved)}")
    return differences
