"""Requests and reports of proposals: made, validated, listed, shown, approved and rejected.

Requests are not validated here; the verbs do so after authorization, so that a refusal leaves its audit row.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from holdfast.domain.presentable import Presentable
from holdfast.domain.proposals import MemoryProposal, ProposalValidation
from holdfast.domain.stored_proposals import ProposalStatus

# The reasons of reports, besides those of `ProposalReason` and of a write.
PROPOSED = "proposed"
PROPOSAL_EXISTS = "proposal_exists"
NO_SUCH_PROPOSAL = "no_such_proposal"
ALREADY_DECIDED = {
    ProposalStatus.APPROVED: "proposal_already_approved",
    ProposalStatus.REJECTED: "proposal_already_rejected",
}
NO_SUBMISSION = "proposal_submission_not_allowed_for_profile"
INVALID_PROPOSAL = "proposal_validation_failed"
NOTE_HAS_NO_OPERATION = "governance_note_requires_future_sdk_operation"


@dataclass(frozen=True, slots=True)
class ProposeReport(Presentable):
    """The result of a proposal. A rejected one is not stored; the same one again is not stored twice."""

    _summary = ("accepted", "changed", "proposal_id", "reason")

    accepted: bool
    changed: bool
    proposal_id: str
    reason: str
    validation: ProposalValidation


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProposalListRequest:
    """Proposals, the newest first: those to decide on, or all."""

    include_decided: Annotated[bool, "Approved and rejected proposals, too."] = False
    limit: Annotated[int, "At most so many proposals."] = 50


@dataclass(frozen=True, slots=True)
class ProposalSummary(Presentable):
    """A proposal in one line. `procedures` and `notes` count its candidates."""

    _summary = ("proposal_id", "status", "procedures", "notes")

    proposal_id: str
    status: ProposalStatus
    procedures: int
    notes: int
    rationale: str
    author: str
    created_at: datetime
    decided_at: datetime | None


@dataclass(frozen=True, slots=True)
class ProposalListReport(Presentable):
    """Proposals of this memory. `pending` counts all that are not decided on."""

    pending: int
    proposals: tuple[ProposalSummary, ...]


@dataclass(frozen=True, slots=True)
class ProposalDetailRequest:
    proposal_id: str


@dataclass(frozen=True, slots=True)
class ProposalEvidence(Presentable):
    """A reference of a proposal. It is `known` if it is a record or a skill of this memory that can be read."""

    reference: str
    known: bool


@dataclass(frozen=True, slots=True)
class ProposalDetailReport(Presentable):
    """All of a proposal, its validation as of now, and the decision on it."""

    summary: ProposalSummary
    proposal: MemoryProposal
    evidence: tuple[ProposalEvidence, ...]
    validation: ProposalValidation
    decided_by: str | None
    decision_reason: str | None


# --- deciding ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProposalApproveRequest:
    """Write the procedures of a proposal."""

    proposal_id: str
    reason: Annotated[str | None, "The reason of the decision."] = None


@dataclass(frozen=True, slots=True)
class ProposalRejectRequest:
    """Close a proposal without writing anything."""

    proposal_id: str
    reason: Annotated[str | None, "The reason of the decision."] = None


@dataclass(frozen=True, slots=True)
class ProposalCommitReport(Presentable):
    """The result of an approval. If it was not accepted, nothing changed, and `reason` says why.

    `committed_writes` are the names of the written skills, `lifecycle_operations` the operations that wrote them.
    """

    _summary = ("accepted", "proposal_id", "committed_writes", "reason")

    proposal_id: str
    profile: str
    validation: ProposalValidation | None
    submitted_candidates: int
    committed_writes: tuple[str, ...]
    write_operation: str | None
    lifecycle_operations: tuple[str, ...]
    accepted: bool
    reason: str


@dataclass(frozen=True, slots=True)
class ProposalRejectReport(Presentable):
    """The result of a rejection. If it was not accepted, nothing changed, and `reason` says why."""

    accepted: bool
    changed: bool
    proposal_id: str
    reason: str
