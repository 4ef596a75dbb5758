"""Store proposals with the records that they rest on, and load them."""

from __future__ import annotations

from datetime import datetime

from holdfast.domain.access import Action
from holdfast.domain.events import EventKind
from holdfast.domain.governance import Governance
from holdfast.domain.memory import Plane
from holdfast.domain.proposals import (
    MAX_PENDING,
    MemoryProposal,
    ProposalPolicy,
    ProposalRecord,
    ProposalValidation,
    validate_proposal,
)
from holdfast.domain.runtime_api.evolution import ProposalSummary
from holdfast.domain.stored_proposals import ProposalStatus, StoredProposal
from holdfast.errors import BudgetExceeded
from holdfast.ports import Reader, Transaction
from holdfast.runtime.event_log import append_event
from holdfast.runtime.gate import Core
from holdfast.runtime.skills.stored_skill import find_skill


def validate(governance: Governance, proposal: MemoryProposal) -> ProposalValidation:
    return validate_proposal(proposal, governance.profile.name, ProposalPolicy.of(governance.catalogue))


def add_proposal(
    transaction: Transaction, core: Core, governance: Governance, record: ProposalRecord, action: Action, at: datetime
) -> bool:
    """Store a pending proposal, with its event. False if this memory has one of its id already."""
    scope, proposal = governance.identity.scope, record.proposal
    if transaction.proposals.count(scope, ProposalStatus.PENDING) >= MAX_PENDING:
        raise BudgetExceeded(
            f"proposals: {MAX_PENDING} wait for a decision; approve or reject some: `holdfast evolution list`"
        )
    stored = StoredProposal(scope, proposal.proposal_id, ProposalStatus.PENDING, record.to_document(), at)
    if not transaction.proposals.add(stored, _records_of(transaction, governance, proposal)):
        return False
    append_proposal_event(transaction, core, governance, EventKind.MAINTENANCE, action, proposal)
    return True


def append_proposal_event(
    transaction: Transaction,
    core: Core,
    governance: Governance,
    kind: EventKind,
    action: Action,
    proposal: MemoryProposal,
) -> None:
    append_event(
        transaction,
        core,
        kind,
        governance.identity.scope,
        keep=governance.budget.events,
        plane=Plane.PROCEDURAL,
        details={"operation": action, "procedures": len(proposal.writes), "notes": len(proposal.notes)},
    )


def _records_of(reader: Reader, governance: Governance, proposal: MemoryProposal) -> tuple[str, ...]:
    """Return the records that the proposal rests on or speaks about. A skill's name stands for its memory."""
    home = [governance.identity.scope.partition]
    skills = (find_skill(reader, home, name) for name in proposal.skill_names)
    return (*proposal.record_ids, *(skill.memory.id for skill in skills if skill is not None))


def summary_of(stored: StoredProposal, record: ProposalRecord) -> ProposalSummary:
    return ProposalSummary(
        proposal_id=stored.proposal_id,
        status=stored.status,
        procedures=len(record.proposal.writes),
        notes=len(record.proposal.notes),
        rationale=record.proposal.rationale,
        author=record.author,
        created_at=stored.created_at,
        decided_at=stored.decided_at,
    )
