"""Approve and reject proposals. An approval writes procedures as `write` does, and nothing else writes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from holdfast.domain.access import Action, Grant
from holdfast.domain.checks import checked_instance, checked_text
from holdfast.domain.events import EventKind
from holdfast.domain.governance import Governance
from holdfast.domain.proposals import MAX_PROPOSAL_ID_CHARS, ProposalPolicy, ProposalRecord, ProposalValidation
from holdfast.domain.runtime_api.evolution import (
    ALREADY_DECIDED,
    INVALID_PROPOSAL,
    NO_SUBMISSION,
    NO_SUCH_PROPOSAL,
    NOTE_HAS_NO_OPERATION,
    ProposalApproveRequest,
    ProposalCommitReport,
    ProposalRejectReport,
    ProposalRejectRequest,
)
from holdfast.domain.runtime_api.skills import DONE, SkillWriteReport
from holdfast.domain.runtime_api.writing import MemoryWriteReport, MemoryWriteRequest
from holdfast.domain.runtime_skills import SkillSource
from holdfast.domain.scope import Scope
from holdfast.domain.stored_proposals import ProposalStatus, StoredProposal
from holdfast.ports import Reader, Transaction
from holdfast.runtime.evolution.stored_proposal import append_proposal_event, validate
from holdfast.runtime.gate import Core, Write
from holdfast.runtime.remember import MAX_REASON_CHARS
from holdfast.runtime.skills.write_skills import PreparedSkills, WriteSkills


class _PreparedDecision(NamedTuple):
    core: Core
    operator: str
    now: datetime


@dataclass(frozen=True, slots=True)
class _Decision(Write[Any, Any]):
    """Common base of the verbs that decide on one proposal of this memory."""

    governance: Governance
    request: Any

    def _check(self, kind: type) -> None:
        request: Any = checked_instance(self.request, kind)
        checked_text(request.proposal_id, "proposal_id", max_chars=MAX_PROPOSAL_ID_CHARS)
        if request.reason is not None:
            checked_text(request.reason, "reason", max_chars=MAX_REASON_CHARS)

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return self.governance.identity.scope

    def find_pending(self, reader: Reader) -> StoredProposal | str:
        """Find the proposal, or return the reason why there is nothing to decide."""
        stored = reader.proposals.find(self.scope, self.request.proposal_id)
        return NO_SUCH_PROPOSAL if stored is None else ALREADY_DECIDED.get(stored.status, stored)

    def close(
        self, transaction: Transaction, prepared: _PreparedDecision, stored: StoredProposal, status: ProposalStatus
    ) -> None:
        record = replace(
            ProposalRecord.from_document(stored.document),
            decided_by=prepared.operator,
            decision_reason=self.request.reason,
        )
        decided = replace(stored, status=status, document=record.to_document(), decided_at=prepared.now)
        transaction.proposals.replace(decided)
        append_proposal_event(
            transaction, prepared.core, self.governance, EventKind.OPERATOR, self.action, record.proposal
        )


# --- approve ----------------------------------------------------------------------------------------------------------


class _PreparedApproval(NamedTuple):
    decision: _PreparedDecision
    refusal: ProposalCommitReport | None
    document: str = ""
    write: WriteSkills | None = None
    skills: PreparedSkills | None = None


@dataclass(frozen=True, slots=True)
class ApproveProposal(_Decision):
    """Write the procedures of a proposal: all of them, or nothing."""

    action: ClassVar[Action] = Action.APPROVE_PROPOSAL
    request: ProposalApproveRequest

    def __post_init__(self) -> None:
        self._check(ProposalApproveRequest)

    async def prepare(self, core: Core, grant: Grant) -> _PreparedApproval:
        decision = _PreparedDecision(core, str(grant.actor), core.clock.now())
        found = await core.store.read(grant, self.find_pending)
        if isinstance(found, str):
            return _PreparedApproval(decision, self._refuse(found))
        proposal = ProposalRecord.from_document(found.document).proposal
        validation = validate(self.governance, proposal)
        if not ProposalPolicy.of(self.governance.catalogue).submission:
            return _PreparedApproval(decision, self._refuse(NO_SUBMISSION, validation))
        if not validation.accepted:
            return _PreparedApproval(decision, self._refuse(INVALID_PROPOSAL, validation))
        if proposal.notes:
            return _PreparedApproval(decision, self._refuse(NOTE_HAS_NO_OPERATION, validation))
        request = MemoryWriteRequest.procedural(*proposal.writes, source=SkillSource.PROGRAMMABLE_REASONING)
        write = WriteSkills.of(self.governance, request)
        skills = await write.prepare(core, grant)
        rejected = next((each for each in skills.skills if isinstance(each, SkillWriteReport)), None)
        if rejected is not None:
            return _PreparedApproval(decision, self._refuse(rejected.reason, validation))
        return _PreparedApproval(decision, None, found.document, write, skills)

    def apply(self, transaction: Transaction, prepared: _PreparedApproval) -> ProposalCommitReport:
        if prepared.refusal is not None:
            return prepared.refusal
        assert prepared.write is not None
        assert prepared.skills is not None
        stored = self.find_pending(transaction)
        if isinstance(stored, str):
            return self._refuse(stored)
        if stored.document != prepared.document:
            return self._refuse(NO_SUCH_PROPOSAL)  # forgotten meanwhile, and another has its id
        written = prepared.write.apply(transaction, prepared.skills)
        self.close(transaction, prepared.decision, stored, ProposalStatus.APPROVED)
        proposal = ProposalRecord.from_document(stored.document).proposal
        return self._report(written.reason, validate(self.governance, proposal), written)

    def _refuse(self, reason: str, validation: ProposalValidation | None = None) -> ProposalCommitReport:
        return self._report(reason, validation, None)

    def _report(
        self, reason: str, validation: ProposalValidation | None, written: MemoryWriteReport | None
    ) -> ProposalCommitReport:
        names = () if written is None else (each.detail for each in written.procedural_evolution.reports)
        return ProposalCommitReport(
            proposal_id=self.request.proposal_id,
            profile=self.governance.profile.name,
            validation=validation,
            submitted_candidates=0 if validation is None else len(validation.decisions),
            committed_writes=tuple(name for name in names if name is not None),
            write_operation=None if written is None else written.operation,
            lifecycle_operations=() if written is None else (str(written.lifecycle_report.operation),),
            accepted=written is not None,
            reason=reason,
        )

    def has_work(self, core: Core, result: ProposalCommitReport) -> bool:
        return result.accepted and not core.embedder.local

    def record_count(self, result: ProposalCommitReport) -> int:
        return len(result.committed_writes)


# --- reject -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RejectProposal(_Decision):
    """Close a proposal. Nothing of it is written."""

    action: ClassVar[Action] = Action.REJECT_PROPOSAL
    request: ProposalRejectRequest

    def __post_init__(self) -> None:
        self._check(ProposalRejectRequest)

    async def prepare(self, core: Core, grant: Grant) -> _PreparedDecision:
        return _PreparedDecision(core, str(grant.actor), core.clock.now())

    def apply(self, transaction: Transaction, prepared: _PreparedDecision) -> ProposalRejectReport:
        stored = self.find_pending(transaction)
        if isinstance(stored, str):
            return ProposalRejectReport(False, False, self.request.proposal_id, stored)
        self.close(transaction, prepared, stored, ProposalStatus.REJECTED)
        return ProposalRejectReport(True, True, self.request.proposal_id, DONE)

    def record_count(self, result: ProposalRejectReport) -> int:
        return int(result.changed)
