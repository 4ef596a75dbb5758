"""The trial of a proposal: how well skills are recalled before and after it, on a copy of the memory.

The copy is an export of the space, without transcript texts, imported into a store in memory. Each skill that is
recalled is a case: its title must find it. The gate is that of the benchmark, with the measurement before the proposal
as the baseline. The memory itself is only read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from holdfast.domain.identity import MemoryScope
from holdfast.domain.memory import Plane
from holdfast.domain.presentable import Presentable
from holdfast.domain.proposals import MemoryProposal
from holdfast.domain.runtime_api.exchange import MemorySpaceImportRequest
from holdfast.domain.runtime_api.retrieval import MemoryRecallRequest
from holdfast.domain.runtime_api.skills import RuntimeSkillListRequest, RuntimeSkillSummary, SkillWriteReport
from holdfast.domain.runtime_api.writing import MemoryWriteRequest
from holdfast.domain.runtime_skills import MAX_HITS, SkillSource, SkillStatus, first_line
from holdfast.sdk.builder import Plan
from holdfast.sdk.runtime import AsyncMemoryRuntime, visit_store
from holdfast.testing.replay.benchmark import (
    MEASURES,
    SCORE_DIGITS,
    CaseResult,
    RecallCase,
    RecallMeasurement,
    compare_measurements,
    measure,
)
from holdfast.testing.replay.runner import IN_MEMORY, require_capability

# The newest skills are measured.
MAX_CASES = 100
_CHAT = MemoryScope("sandbox", "trial")
STATEMENT = (
    "Measured on a copy of this memory, without transcript texts: the title of each skill must find it. Nothing was"
    " changed here."
)


@dataclass(frozen=True, slots=True)
class RecallMeans(Presentable):
    """The means of a measurement over all cases; 1 without any."""

    recall: float
    precision: float
    mrr: float
    ndcg: float

    @classmethod
    def of(cls, measured: Sequence[RecallMeasurement]) -> Self:
        return cls(*(_mean([getattr(each, name) for each in measured]) for name in MEASURES))


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), SCORE_DIGITS) if values else 1.0


@dataclass(frozen=True, slots=True)
class ProposalTrial(Presentable):
    """The effect of a proposal on the recall of skills. It `passed` if no known skill is found worse than before.

    `results` are the cases after the proposal, with what differs from before; `changed` names those that differ.
    `rejected` are the reasons for which `write` refused procedures.
    """

    cases: int
    before: RecallMeans
    after: RecallMeans
    passed: bool
    changed: tuple[str, ...]
    results: tuple[CaseResult, ...]
    rejected: tuple[str, ...]
    measured: str = STATEMENT


async def try_proposal(plan: Plan, proposal: MemoryProposal) -> ProposalTrial:
    """Write a proposal's procedures on a copy of the memory of a plan, and measure recall before and after.

    Raises `CapabilityUnavailable` unless the profile has the full sandbox, and an export is allowed.
    """
    require_capability(plan.profile, "full_proposal_sandbox")
    async with visit_store(plan) as runtime:
        copied = await runtime.export_space()
    sandbox = replace(plan, location=IN_MEMORY, backend=None, model=None, agent_skill_dirs=())
    async with visit_store(sandbox) as trial:
        await trial.import_space(MemorySpaceImportRequest(content=copied.content))
        known = [_title_case(each.name, each.title) for each in await _recalled_skills(trial)]
        before = [await _measure(trial, case) for case in known]
        reports = await _write(trial, proposal)
        after = [await _measure(trial, case) for case in known]
        names = {case.name for case in known}
        new = [
            _title_case(report.detail, write.title or first_line(write.content))
            for write, report in zip(proposal.writes, reports, strict=True)
            if report.detail is not None and report.detail not in names
        ]
        added = [_judge_new(await _measure(trial, case)) for case in new]
    results = [*(_judge(*each) for each in zip(before, after, strict=True)), *added]
    return ProposalTrial(
        cases=len(known),
        before=RecallMeans.of(before),
        after=RecallMeans.of(after),
        passed=all(each.passed for each in results),
        changed=tuple(each.measurement.name for each in results if each.problems),
        results=tuple(results),
        rejected=tuple(each.reason for each in reports if each.detail is None),
    )


async def _recalled_skills(runtime: AsyncMemoryRuntime) -> list[RuntimeSkillSummary]:
    found = await runtime.list_runtime_skills(RuntimeSkillListRequest(limit=MAX_CASES))
    shown = (SkillStatus.ACTIVE, SkillStatus.STALE)
    return [each for each in found.runtime_skills if each.status in shown and not each.needs_approval]


async def _write(runtime: AsyncMemoryRuntime, proposal: MemoryProposal) -> tuple[SkillWriteReport, ...]:
    if not proposal.writes:
        return ()
    request = MemoryWriteRequest.procedural(*proposal.writes, source=SkillSource.PROGRAMMABLE_REASONING)
    return (await runtime.write(request)).procedural_evolution.reports


def _title_case(name: str, title: str) -> RecallCase:
    return RecallCase(name, title, (name,), plane=Plane.PROCEDURAL, top_k=MAX_HITS)


async def _measure(runtime: AsyncMemoryRuntime, case: RecallCase) -> RecallMeasurement:
    report = await runtime.recall(MemoryRecallRequest(case.query, limit=case.top_k, scope=_CHAT))
    hits = report.procedural_hits
    return measure(case, [hit.skill_name or "" for hit in hits], [round(hit.score, SCORE_DIGITS) for hit in hits])


def _judge(before: RecallMeasurement, after: RecallMeasurement) -> CaseResult:
    """Compare a known skill with the baseline. Another ranking is a change; a lower measure is a failure."""
    worse = any(getattr(after, name) < getattr(before, name) for name in MEASURES)
    return CaseResult(after, not worse, tuple(compare_measurements(before, after)))


def _judge_new(found: RecallMeasurement) -> CaseResult:
    return CaseResult(found, found.recall > 0, () if found.recall > 0 else ("its title does not find it",))
