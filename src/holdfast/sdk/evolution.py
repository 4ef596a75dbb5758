"""Proposals of a `MemoryRuntime`: propose, validate, list, show, approve and reject."""

from __future__ import annotations

from holdfast.domain.access import Action
from holdfast.domain.proposals import MemoryProposal, ProposalValidation
from holdfast.domain.runtime_api.evolution import (
    ProposalApproveRequest,
    ProposalCommitReport,
    ProposalDetailReport,
    ProposalDetailRequest,
    ProposalListReport,
    ProposalListRequest,
    ProposalRejectReport,
    ProposalRejectRequest,
    ProposeReport,
)
from holdfast.pending_call import pending_methods
from holdfast.runtime.evolution.decide import ApproveProposal, RejectProposal
from holdfast.runtime.evolution.propose import Propose, ValidateProposal
from holdfast.runtime.evolution.read_proposals import GetProposal, ListProposals
from holdfast.sdk.operations import Operations, request_from


@pending_methods("runtime")
class EvolutionOperations(Operations):
    async def propose(self, request: MemoryProposal) -> ProposeReport:
        """Store a proposal for an operator's decision. Nothing is recalled by it."""
        return await self._perform(Action.PROPOSE, lambda governance: Propose(governance, request))

    async def validate_proposal(self, request: MemoryProposal) -> ProposalValidation:
        """Decide on the candidates of a proposal as `propose` does, and store nothing."""
        return await self._perform(Action.VALIDATE_PROPOSAL, lambda governance: ValidateProposal(governance, request))

    async def list_proposals(self, request: ProposalListRequest | None = None) -> ProposalListReport:
        """List the proposals that wait for a decision, the newest first."""
        options = ProposalListRequest() if request is None else request
        return await self._perform(Action.LIST_PROPOSALS, lambda governance: ListProposals(governance, options))

    async def get_proposal(self, request: ProposalDetailRequest | str) -> ProposalDetailReport:
        """Show a proposal by its id: its candidates, evidence and validation."""
        wanted = request_from(request, ProposalDetailRequest, "proposal_id")
        return await self._perform(Action.GET_PROPOSAL, lambda governance: GetProposal(governance, wanted))

    async def approve_proposal(self, request: ProposalApproveRequest | str) -> ProposalCommitReport:
        """Write the procedures of a proposal. Only an operator does."""
        wanted = request_from(request, ProposalApproveRequest, "proposal_id")
        return await self._perform(Action.APPROVE_PROPOSAL, lambda governance: ApproveProposal(governance, wanted))

    async def reject_proposal(self, request: ProposalRejectRequest | str) -> ProposalRejectReport:
        """Close a proposal without writing anything. Only an operator does."""
        wanted = request_from(request, ProposalRejectRequest, "proposal_id")
        return await self._perform(Action.REJECT_PROPOSAL, lambda governance: RejectProposal(governance, wanted))
