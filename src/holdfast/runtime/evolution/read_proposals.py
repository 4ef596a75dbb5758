"""List the proposals of one memory, and show one with its evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.domain.access import Action, Grant
from holdfast.domain.canonical import is_holdfast_id
from holdfast.domain.checks import checked_flag, checked_instance, checked_text, checked_whole
from holdfast.domain.governance import Governance
from holdfast.domain.ids import EVENT, kind_of
from holdfast.domain.proposals import MAX_PROPOSAL_ID_CHARS, ProposalRecord
from holdfast.domain.runtime_api.evolution import (
    ProposalDetailReport,
    ProposalDetailRequest,
    ProposalEvidence,
    ProposalListReport,
    ProposalListRequest,
)
from holdfast.domain.runtime_skills import is_skill_name
from holdfast.domain.scope import Scope
from holdfast.domain.stored_proposals import ProposalStatus
from holdfast.errors import NotFound
from holdfast.ports import Reader
from holdfast.runtime.evolution.stored_proposal import summary_of, validate
from holdfast.runtime.gate import Core, Read
from holdfast.runtime.skills.stored_skill import find_skill

MAX_LISTED = 1_000


@dataclass(frozen=True, slots=True)
class ListProposals(Read[Core, ProposalListReport]):
    """List the proposals of exactly this memory, the newest first."""

    action: ClassVar[Action] = Action.LIST_PROPOSALS
    governance: Governance
    request: ProposalListRequest

    def __post_init__(self) -> None:
        request = checked_instance(self.request, ProposalListRequest)
        checked_flag(request.include_decided, "include_decided")
        checked_whole(request.limit, "limit", 1, MAX_LISTED)

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return self.governance.identity.scope

    async def prepare(self, core: Core, grant: Grant) -> Core:
        return core

    def apply(self, reader: Reader, prepared: Core) -> ProposalListReport:
        status = None if self.request.include_decided else ProposalStatus.PENDING
        found = reader.proposals.page(self.scope, status, self.request.limit)
        return ProposalListReport(
            pending=reader.proposals.count(self.scope, ProposalStatus.PENDING),
            proposals=tuple(summary_of(each, ProposalRecord.from_document(each.document)) for each in found),
        )

    def record_count(self, result: ProposalListReport) -> int:
        return len(result.proposals)


@dataclass(frozen=True, slots=True)
class GetProposal(Read[Core, ProposalDetailReport]):
    """Show a proposal, validate it again, and say which evidence is known here."""

    action: ClassVar[Action] = Action.GET_PROPOSAL
    governance: Governance
    request: ProposalDetailRequest

    def __post_init__(self) -> None:
        request = checked_instance(self.request, ProposalDetailRequest)
        checked_text(request.proposal_id, "proposal_id", max_chars=MAX_PROPOSAL_ID_CHARS)

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return self.governance.identity.scope

    async def prepare(self, core: Core, grant: Grant) -> Core:
        return core

    def apply(self, reader: Reader, prepared: Core) -> ProposalDetailReport:
        stored = reader.proposals.find(self.scope, self.request.proposal_id)
        if stored is None:
            raise NotFound(f"there is no proposal {self.request.proposal_id!r:.120} in this memory; list them to see")
        record = ProposalRecord.from_document(stored.document)
        proposal = record.proposal
        return ProposalDetailReport(
            summary=summary_of(stored, record),
            proposal=proposal,
            evidence=tuple(ProposalEvidence(each, self._is_known(reader, each)) for each in proposal.evidence_refs),
            validation=validate(self.governance, proposal),
            decided_by=record.decided_by,
            decision_reason=record.decision_reason,
        )

    def _is_known(self, reader: Reader, reference: str) -> bool:
        if is_skill_name(reference):
            return find_skill(reader, [self.scope.partition], reference) is not None
        if kind_of(reference) == EVENT:
            newest = reader.events.page(1, None, f"{reference}~")
            return bool(newest) and newest[0].id == reference
        if not is_holdfast_id(reference):
            return False
        return reader.records.find(reference) is not None or reader.resources.find(reference) is not None

    def record_count(self, result: ProposalDetailReport) -> int:
        return 1
