"""Repair a store: first report the problems and possible repairs, then, on request, make the lossless ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from holdfast.domain.access import Action, Grant
from holdfast.domain.derived_refs import RepairIssue, RepairIssueKind
from holdfast.domain.events import EVENTS_KEPT, EventKind
from holdfast.domain.ids import OperationId
from holdfast.domain.jobs import JobKind
from holdfast.domain.manifest import MENDS, Manifest, RepairAction, StoreRepair, ThreadIssues
from holdfast.domain.profiles import PROFILES
from holdfast.domain.results import Finding
from holdfast.domain.scope import Scope
from holdfast.errors import ManifestMismatch
from holdfast.ports import Reader, Transaction
from holdfast.runtime.event_log import append_event
from holdfast.runtime.gate import Core, Read, Write
from holdfast.runtime.job_queue import enqueue_for_store
from holdfast.runtime.transcripts.manifest_and_events import load_manifest

_MOST_ISSUES = 1_000
_PAGE = 256


@dataclass(frozen=True, slots=True)
class _StoreExamination:
    """The problems found, before any repair."""

    findings: tuple[Finding, ...]
    checked_turns: int
    threads: tuple[ThreadIssues, ...]
    more: bool
    manifest: Manifest | None
    unreadable: str | None

    @property
    def keep(self) -> int:
        """The maximum number of events of a space."""
        profile = None if self.manifest is None else PROFILES.get(self.manifest.profile)
        return EVENTS_KEPT if profile is None else profile.budget.events


def _examine(reader: Reader, core: Core) -> _StoreExamination:
    _, findings = reader.maintenance.integrity(core.embedder.fingerprint)
    threads: list[ThreadIssues] = []
    turns = issues = 0
    after: Scope | None = None
    while page := reader.transcripts.threads(after, _PAGE):
        after = page[-1].thread
        for summary in page:
            check = reader.transcripts.check(summary.thread, max(_MOST_ISSUES - issues, 1))
            turns += check.checked_turns
            issues += len(check.issues)
            if check.issues and issues <= _MOST_ISSUES:
                threads.append(ThreadIssues(summary.thread, check.issues))
    try:
        manifest, unreadable = load_manifest(reader), None
    except ManifestMismatch as error:
        manifest, unreadable = None, str(error)
    more = issues >= _MOST_ISSUES
    return _StoreExamination(tuple(findings), turns, tuple(threads), more, manifest, unreadable)


@dataclass(frozen=True, slots=True)
class _PreparedRepair:
    core: Core
    at: datetime
    found: _StoreExamination


@dataclass(frozen=True, slots=True)
class ExamineStore(Read[tuple[Core, datetime], StoreRepair]):
    """Report the problems of the whole store, and what a repair would do. Changes nothing."""

    action: ClassVar[Action] = Action.VERIFY
    scope: Scope

    async def prepare(self, core: Core, grant: Grant) -> tuple[Core, datetime]:
        return core, core.clock.now()

    def apply(self, reader: Reader, prepared: tuple[Core, datetime]) -> StoreRepair:
        core, now = prepared
        found = _examine(reader, core)
        return _report(found, reader.maintenance.count_repairs(now, found.keep), applied=False)


@dataclass(frozen=True, slots=True)
class RepairStore(Write[_PreparedRepair, StoreRepair]):
    """Make the repairs that lose no message and no memory, and report the remaining problems."""

    action: ClassVar[Action] = Action.REBUILD
    scope: Scope

    async def prepare(self, core: Core, grant: Grant) -> _PreparedRepair:
        found = await core.store.read(grant, lambda reader: _examine(reader, core))
        return _PreparedRepair(core, core.clock.now(), found)

    def apply(self, transaction: Transaction, prepared: _PreparedRepair) -> StoreRepair:
        core, found = prepared.core, prepared.found
        done = transaction.maintenance.repair(prepared.at, found.keep)
        if done[RepairAction.REINDEX]:
            enqueue_for_store(transaction, core, JobKind.REEMBED)
        details: dict[str, str | int | None] = {"operation": "repair"}
        details.update({mend.value: count for mend, count in done.items()})
        append_event(transaction, core, EventKind.OPERATOR, self.scope, keep=found.keep, details=details)
        return _report(found, done, applied=True)

    async def finish(self, core: Core, result: StoreRepair, operation_id: OperationId) -> StoreRepair:
        if result.mends.get(RepairAction.REINDEX):
            await core.drain()
        return result

    def record_count(self, result: StoreRepair) -> int:
        return sum(result.mends.values())


def _report(found: _StoreExamination, mends: Mapping[RepairAction, int], *, applied: bool) -> StoreRepair:
    beyond = [f"{each.check}: {each.problem}" for each in found.findings if not _is_repairable(each)]
    broken = [issue.kind for thread in found.threads for issue in thread.issues if not _is_dangling_link(issue)]
    beyond += [f"{kind}: {broken.count(kind)} in transcripts" for kind in RepairIssueKind if kind in broken]
    if found.unreadable is not None:
        beyond.append(found.unreadable)
    return StoreRepair(
        applied=applied,
        findings=found.findings,
        checked_turns=found.checked_turns,
        threads=found.threads,
        more_issues=found.more,
        mends=dict(mends),
        beyond_repair=tuple(beyond),
        manifest=found.manifest,
    )


def _is_repairable(finding: Finding) -> bool:
    return finding.check in MENDS or (finding.check, finding.problem) == ("foreign keys", "a row of evidence")


def _is_dangling_link(issue: RepairIssue) -> bool:
    """True if it is a dangling link, which a repair drops."""
    lost = issue.kind is RepairIssueKind.MISSING_SOURCE_MESSAGE and issue.turn_id is None
    return lost or issue.kind is RepairIssueKind.ORPHAN_DERIVED_REF
