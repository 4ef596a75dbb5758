"""The operations of a fixture: how each is read, run on a runtime, and written as lines of text.

The arguments of an operation are the fields of the runtime's request. The lines say what a host can observe, without
ids and times.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from holdfast.domain.checks import checked_real
from holdfast.domain.identity import MemoryScope
from holdfast.domain.proposals import (
    GovernanceNoteCandidate,
    MemoryProposal,
    ProceduralMemoryCandidate,
    ProposalValidation,
)
from holdfast.domain.redaction import RedactedTurn
from holdfast.domain.runtime_api.evolution import (
    ProposalApproveRequest,
    ProposalCommitReport,
    ProposalListReport,
    ProposalListRequest,
    ProposalRejectReport,
    ProposalRejectRequest,
    ProposeReport,
)
from holdfast.domain.runtime_api.exchange import (
    MemoryExportReport,
    MemoryExportRequest,
    MemoryImportReport,
    MemoryImportRequest,
    TransferMode,
)
from holdfast.domain.runtime_api.retrieval import (
    MemoryInspectionReport,
    MemoryInspectionRequest,
    MemoryProjectionReport,
    MemoryProjectionRequest,
    MemoryRecallReport,
    MemoryRecallRequest,
)
from holdfast.domain.runtime_api.skills import (
    ProceduralEvolution,
    ProceduralWrites,
    RuntimeSkillDeleteRequest,
    RuntimeSkillEditRequest,
    RuntimeSkillListReport,
    RuntimeSkillListRequest,
    RuntimeSkillMutationReport,
    RuntimeSkillSetEnabledRequest,
    RuntimeSkillWrite,
)
from holdfast.domain.runtime_api.transcripts import (
    CanonicalTurnDelta,
    FinalizeReport,
    MemoryReplayReport,
    MemoryReplayRequest,
    MemoryTranscriptCommitReport,
    MemoryTranscriptCommitRequest,
    MemoryTranscriptExportRequest,
    MemoryTranscriptLifecycleReport,
    MemoryTranscriptLifecycleRequest,
    MemoryTranscriptRepairReport,
    MemoryTranscriptRepairRequest,
    MemoryTranscriptReplayReport,
    MemoryTranscriptReplayRequest,
)
from holdfast.domain.runtime_api.writing import (
    MemoryMaintainReport,
    MemoryMaintainRequest,
    MemoryRecoverReport,
    MemoryRecoverRequest,
    MemoryWriteCandidate,
    MemoryWriteReport,
    MemoryWriteRequest,
    SemanticGovernance,
)
from holdfast.errors import InvalidFixture, InvalidInput
from holdfast.sdk.runtime import AsyncMemoryRuntime
from holdfast.testing.fakes import FixedClock, ScriptedPrompts
from holdfast.testing.replay.fixture import ReplayFixture, decode

CHANNEL = "replay"
CHAT = MemoryScope(CHANNEL, "replay-chat")
_MAX_WAIT_SECONDS = 10 * 366 * 86_400


# --- arguments that no request of the runtime has ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CandidateWrites:
    """`write`: candidates to judge."""

    candidates: tuple[MemoryWriteCandidate, ...]
    scope: MemoryScope | None = None


@dataclass(frozen=True, slots=True)
class ScriptedMaintainRequest(MemoryMaintainRequest):
    """`maintain`: `answers` are those of the model, as lists named `memories` and `procedures`."""

    answers: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SnapshotImport:
    """`import`: a snapshot; without one, that of the last `export`."""

    snapshot: Mapping[str, Any] | None = None
    target_chat_id: str | None = None
    mode: str = TransferMode.FULL_RESTORE
    include_private: bool = False


@dataclass(frozen=True, slots=True)
class ClockStep:
    """`wait`: time passes."""

    seconds: float

    def __post_init__(self) -> None:
        if not 0 <= checked_real(self.seconds, "seconds") <= _MAX_WAIT_SECONDS:
            raise InvalidInput("seconds", f"must be from 0 to {_MAX_WAIT_SECONDS:,}, not {self.seconds}")


@dataclass(frozen=True, slots=True)
class ProposedNote:
    target: str
    summary: str


@dataclass(frozen=True, slots=True)
class ProposedChange:
    """`propose` and `validate_proposal`: a proposal, without a `profile` for that of the fixture."""

    proposal_id: str
    rationale: str = ""
    evidence_refs: tuple[str, ...] = ()
    writes: tuple[RuntimeSkillWrite, ...] = ()
    notes: tuple[ProposedNote, ...] = ()
    profile: str | None = None

    def proposal(self, profile: str) -> MemoryProposal:
        procedures = tuple(ProceduralMemoryCandidate(each) for each in self.writes)
        notes = tuple(GovernanceNoteCandidate(each.target, each.summary) for each in self.notes)
        return MemoryProposal(
            self.proposal_id, self.profile or profile, (*procedures, *notes), self.evidence_refs, self.rationale
        )


# --- a session --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ReplaySession:
    """A runtime under replay, with its clock and its scripted model."""

    runtime: AsyncMemoryRuntime
    clock: FixedClock
    model: ScriptedPrompts
    exported: str | None = None

    async def write(self, request: CandidateWrites) -> MemoryWriteReport:
        return await self.runtime.write(MemoryWriteRequest.candidates(*request.candidates, scope=request.scope))

    async def write_procedural(self, request: ProceduralWrites) -> MemoryWriteReport:
        return await self.runtime.write(MemoryWriteRequest.procedural(*request.writes, source=request.source))

    async def maintain(self, request: ScriptedMaintainRequest) -> MemoryMaintainReport:
        self.model.answers = request.answers
        return await self.runtime.maintain(request)

    async def replay(self, request: MemoryReplayRequest) -> MemoryReplayReport:
        chat = CHAT.chat_id if request.chat_id is None else request.chat_id
        channel = CHANNEL if request.channel is None else request.channel
        return await self.runtime.replay(replace(request, chat_id=chat, channel=channel))

    async def export(self, request: MemoryExportRequest) -> MemoryExportReport:
        if request.chat_id is not None:
            request = replace(request, chat_id=None, scope=MemoryScope(CHANNEL, request.chat_id))
        report = await self.runtime.export(request)
        self.exported = report.document or self.exported
        return report

    async def import_(self, request: SnapshotImport) -> MemoryImportReport:
        snapshot = self.exported if request.snapshot is None else request.snapshot
        if snapshot is None:
            raise InvalidFixture("snapshot", "is missing, and nothing was exported before")
        where = MemoryScope(CHANNEL, request.target_chat_id or CHAT.chat_id)
        options = MemoryImportRequest(snapshot, scope=where, mode=request.mode, include_private=request.include_private)
        return await self.runtime.import_(options)

    async def propose(self, request: ProposedChange) -> ProposeReport:
        return await self.runtime.propose(request.proposal(await self._profile()))

    async def validate_proposal(self, request: ProposedChange) -> ProposalValidation:
        return await self.runtime.validate_proposal(request.proposal(await self._profile()))

    async def _profile(self) -> str:
        return (await self.runtime.capabilities()).profile.name

    async def wait(self, request: ClockStep) -> None:
        self.clock.step(request.seconds)


class OperationKind(NamedTuple):
    """A kind of operation: the type of its arguments, how it runs, and the lines of its report."""

    arguments: type
    run: Callable[[ReplaySession, Any], Awaitable[Any]]
    lines: Callable[[Any], Iterable[str]]


class PreparedOperation(NamedTuple):
    name: str
    entry: OperationKind
    request: Any


def prepare_operations(fixture: ReplayFixture) -> list[PreparedOperation]:
    """Read all operations of a fixture; raises `InvalidFixture` that names the wrong one."""
    return [_prepare(given, f"operations[{place}]") for place, given in enumerate(fixture.operations)]


def _prepare(given: Mapping[str, Any], where: str) -> PreparedOperation:
    name = given.get("operation")
    if not isinstance(name, str) or name not in OPERATIONS:
        raise InvalidFixture(f"{where}.operation", f"must be one of {', '.join(OPERATIONS)}, not {name!r:.60}")
    entry = OPERATIONS[name]
    arguments = {key: value for key, value in given.items() if key != "operation"}
    return PreparedOperation(name, entry, _in_conversation(decode(entry.arguments, arguments, where)))


def _in_conversation(request: Any) -> Any:
    """Put a request that names no conversation into the default one."""
    if isinstance(request, MemoryTranscriptCommitRequest):
        return replace(request, turn=_in_conversation(request.turn))
    if isinstance(request, MemoryExportRequest) and request.chat_id is not None:
        return request
    names = {each.name for each in fields(request)}
    name = next((name for name in ("scope", "conversation") if name in names), None)
    return request if name is None or getattr(request, name) is not None else replace(request, **{name: CHAT})


# --- lines ------------------------------------------------------------------------------------------------------------


def _commit_lines(report: MemoryTranscriptCommitReport) -> Iterator[str]:
    state = "committed" if report.committed else f"skipped: {report.skipped_reason}"
    yield f"turn {report.sequence} {state}; {report.after_count} in all; {len(report.message_ids)} messages"


def _finalize_lines(report: FinalizeReport) -> Iterator[str]:
    yield from _commit_lines(report.transcript_commit)
    yield f"maintenance {report.maintenance.disposition} {report.maintenance.reason}"


def _verdict_lines(governed: SemanticGovernance) -> Iterator[str]:
    for place, each in enumerate(governed.verdicts, 1):
        yield (
            f"candidate {place}: {each.verdict} {each.reason} on {each.target}, {each.trust.name.lower()},"
            f" changed={each.changed}, evidence={len(each.evidence)}"
        )


def _skill_lines(evolution: ProceduralEvolution) -> Iterator[str]:
    for place, each in enumerate(evolution.reports, 1):
        yield f"skill {place}: {each.action} {each.reason} {each.detail}"


def _write_lines(report: MemoryWriteReport) -> Iterator[str]:
    yield f"{report.reason}, accepted={report.accepted}, changed={report.changed}"
    yield from _verdict_lines(report.semantic_governance)
    yield from _skill_lines(report.procedural_evolution)


def _maintain_lines(report: MemoryMaintainReport) -> Iterator[str]:
    yield f"{report.reason}, accepted={report.accepted}, changed={report.changed}, dropped={report.dropped}"
    yield from _verdict_lines(report.semantic_governance)
    for each in report.runtime_skill_reuse:
        yield f"reuse of {each.name}: {each.outcome} {each.reason}, changed={each.changed}"


def _recall_lines(report: MemoryRecallReport) -> Iterator[str]:
    for place, hit in enumerate(report.working.hits, 1):
        yield f"hit {place}: {hit.kind} {hit.plane or hit.role}: {hit.text}"
    for place, hit in enumerate(report.procedural_hits, 1):
        yield f"skill {place}: {hit.skill_name}: {hit.text}"
    yield f"hits={len(report.working.hits)}, omitted={_counts(report.working.omitted)}"


def _project_lines(report: MemoryProjectionReport) -> Iterator[str]:
    yield from (f"block: {line}" for line in report.system_memory_block.splitlines())
    audit, gate = report.audit, report.audit.private_gate
    yield f"injected={audit.injected}, truncated={audit.truncated}, private gate {gate.reason}"
    yield f"faithful={report.projection_faithfulness.faithful}, kept={report.private_disclosure_integrity.kept}"
    yield f"omitted={_counts(audit.omitted)}"


def _inspect_lines(report: MemoryInspectionReport) -> Iterator[str]:
    counts = report.hygiene
    yield (
        f"messages={counts.messages}, memories={counts.memories}, conversations={counts.conversations},"
        f" tombstones={counts.tombstones}, turns={counts.turns}, states={_counts(counts.turns_by_state)}"
    )
    for memory in report.deferred_governance.memories:
        yield f"deferred: {memory.plane} {memory.trust.name.lower()} {memory.reason}"
    if report.working.recall is not None:
        yield f"recall: {[hit.text for hit in report.working.recall.hits]}"


def _ledger_lines(report: MemoryReplayReport) -> Iterator[str]:
    for entry in report.entries:
        yield f"turn {entry.sequence}: {entry.state}, {entry.messages} messages, {entry.host_refs} references"
    yield f"turns={report.total_turns}, inspection_only={report.inspection_only}"


def _view_lines(report: MemoryTranscriptReplayReport) -> Iterator[str]:
    for turn in report.slice.turns:
        yield from (f"{report.view}: {line}" for line in _turn_lines(turn))
    audit = report.slice.audit
    yield (
        f"{report.view}: withheld messages={audit.redacted_messages}, references={audit.redacted_host_refs},"
        f" labels={audit.redacted_labels}, more={report.has_more}"
    )


def _turn_lines(turn: RedactedTurn) -> Iterator[str]:
    for place, message in enumerate(turn.messages, 1):
        shown = f"withheld: {message.redaction}" if message.text is None else f"{message.authority}: {message.text}"
        yield f"turn {turn.sequence} {turn.state}, {place}, {message.role}, {shown}"
    for shown_ref in turn.host_refs:
        ref = shown_ref.ref
        yield f"turn {turn.sequence}, reference {shown_ref.index}, {ref.business_ref_type}, label {ref.label}"


def _export_lines(report: MemoryExportReport) -> Iterator[str]:
    counts = {} if report.snapshot is None else report.snapshot.manifest.counts
    yield f"accepted={report.accepted}, counts={_counts(counts)}"


def _import_lines(report: MemoryImportReport) -> Iterator[str]:
    yield f"{report.mode}, changed={report.changed}, {report.taken.to_dict()}"


def _lifecycle_lines(report: MemoryTranscriptLifecycleReport) -> Iterator[str]:
    yield (
        f"{report.transition}: changed={report.changed}, turns={report.affected_turns},"
        f" messages={report.affected_messages}, refused={report.refused_turns},"
        f" derived={len(report.derived_memory_refs)}"
    )


def _repair_lines(report: MemoryTranscriptRepairReport) -> Iterator[str]:
    yield f"turns={report.checked_turns}, references={report.checked_derived_refs}, closed={report.fail_closed}"
    yield from (f"issue: {issue.kind}" for issue in report.issues)


def _skill_list_lines(report: RuntimeSkillListReport) -> Iterator[str]:
    for skill in report.runtime_skills:
        yield (
            f"{skill.name}: {skill.status}, enabled={skill.enabled}, quality={skill.quality_score},"
            f" uses={skill.use_count}, successes={skill.validated_success_count}, mismatches={skill.mismatch_count},"
            f" needs_approval={skill.needs_approval}"
        )
    yield f"total={report.total}, active={report.active}, disabled={report.disabled}"


def _mutation_lines(report: RuntimeSkillMutationReport) -> Iterator[str]:
    yield f"{report.name}: {report.operation} {report.reason}, accepted={report.accepted}, changed={report.changed}"


def _validation_lines(validation: ProposalValidation) -> Iterator[str]:
    reasons = [each.reason.value for each in validation.decisions]
    yield f"{validation.proposal_id}: tier {validation.tier}, accepted={validation.accepted}, {reasons}"


def _propose_lines(report: ProposeReport) -> Iterator[str]:
    yield f"{report.proposal_id}: {report.reason}, accepted={report.accepted}, changed={report.changed}"
    yield from _validation_lines(report.validation)


def _proposal_list_lines(report: ProposalListReport) -> Iterator[str]:
    for each in report.proposals:
        yield f"{each.status}, {each.procedures} procedures, {each.notes} notes, by {each.author}: {each.rationale}"
    yield f"pending={report.pending}"


def _approval_lines(report: ProposalCommitReport) -> Iterator[str]:
    yield f"{report.proposal_id}: {report.reason}, accepted={report.accepted}, wrote {list(report.committed_writes)}"


def _rejection_lines(report: ProposalRejectReport) -> Iterator[str]:
    yield f"{report.proposal_id}: {report.reason}, accepted={report.accepted}"


def _recover_lines(report: MemoryRecoverReport) -> Iterator[str]:
    yield f"finished={_counts(report.finished)}, failed={_counts(report.failed)}, waiting={_counts(report.waiting)}"


def _no_lines(report: None) -> Iterator[str]:
    yield from ()


def _counts(counts: Mapping[Any, int]) -> str:
    return "{" + ", ".join(f"{name}: {count}" for name, count in sorted(counts.items())) + "}"


# --- the table --------------------------------------------------------------------------------------------------------


def _call(name: str) -> Callable[[ReplaySession, Any], Awaitable[Any]]:
    """Return a method of the runtime as the operation itself."""
    return lambda session, request: getattr(session.runtime, name)(request)


OPERATIONS: Mapping[str, OperationKind] = {
    "write": OperationKind(CandidateWrites, ReplaySession.write, _write_lines),
    "write_procedural": OperationKind(ProceduralWrites, ReplaySession.write_procedural, _write_lines),
    "recall": OperationKind(MemoryRecallRequest, _call("recall"), _recall_lines),
    "project": OperationKind(MemoryProjectionRequest, _call("project"), _project_lines),
    "maintain": OperationKind(ScriptedMaintainRequest, ReplaySession.maintain, _maintain_lines),
    "inspect": OperationKind(MemoryInspectionRequest, _call("inspect"), _inspect_lines),
    "replay": OperationKind(MemoryReplayRequest, ReplaySession.replay, _ledger_lines),
    "export": OperationKind(MemoryExportRequest, ReplaySession.export, _export_lines),
    "import": OperationKind(SnapshotImport, ReplaySession.import_, _import_lines),
    "recover": OperationKind(MemoryRecoverRequest, _call("recover"), _recover_lines),
    "commit_transcript": OperationKind(MemoryTranscriptCommitRequest, _call("commit_transcript"), _commit_lines),
    "finalize_turn": OperationKind(CanonicalTurnDelta, _call("finalize_turn_and_maintain"), _finalize_lines),
    "replay_transcript": OperationKind(MemoryTranscriptReplayRequest, _call("replay_transcript"), _view_lines),
    "export_transcript": OperationKind(MemoryTranscriptExportRequest, _call("export_transcript"), _view_lines),
    "transcript_lifecycle": OperationKind(
        MemoryTranscriptLifecycleRequest, _call("request_transcript_lifecycle"), _lifecycle_lines
    ),
    "repair_transcript": OperationKind(MemoryTranscriptRepairRequest, _call("repair_transcript"), _repair_lines),
    "list_skills": OperationKind(RuntimeSkillListRequest, _call("list_runtime_skills"), _skill_list_lines),
    "edit_skill": OperationKind(RuntimeSkillEditRequest, _call("edit_runtime_skill"), _mutation_lines),
    "set_skill_enabled": OperationKind(
        RuntimeSkillSetEnabledRequest, _call("set_runtime_skill_enabled"), _mutation_lines
    ),
    "delete_skill": OperationKind(RuntimeSkillDeleteRequest, _call("delete_runtime_skill"), _mutation_lines),
    "propose": OperationKind(ProposedChange, ReplaySession.propose, _propose_lines),
    "validate_proposal": OperationKind(ProposedChange, ReplaySession.validate_proposal, _validation_lines),
    "list_proposals": OperationKind(ProposalListRequest, _call("list_proposals"), _proposal_list_lines),
    "approve_proposal": OperationKind(ProposalApproveRequest, _call("approve_proposal"), _approval_lines),
    "reject_proposal": OperationKind(ProposalRejectRequest, _call("reject_proposal"), _rejection_lines),
    "wait": OperationKind(ClockStep, ReplaySession.wait, _no_lines),
}
