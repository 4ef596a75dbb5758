"""Propose a change, or only validate it. Neither changes what anything recalls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from holdfast.domain.access import Action, Grant
from holdfast.domain.governance import Governance
from holdfast.domain.proposals import MemoryProposal, ProposalRecord, ProposalValidation, checked_proposal
from holdfast.domain.runtime_api.evolution import PROPOSAL_EXISTS, PROPOSED, ProposeReport
from holdfast.domain.scope import Scope
from holdfast.ports import Reader, Transaction
from holdfast.runtime.evolution.stored_proposal import add_proposal, validate
from holdfast.runtime.gate import Core, Read, Write


class PreparedProposal(NamedTuple):
    core: Core
    author: str


@dataclass(frozen=True, slots=True)
class Propose(Write[PreparedProposal, ProposeReport]):
    """Store a proposal for an operator's decision. One that is not valid is reported, and not stored."""

    action: ClassVar[Action] = Action.PROPOSE
    governance: Governance
    proposal: MemoryProposal

    def __post_init__(self) -> None:
        checked_proposal(self.proposal, self.governance.budget.source_chars)

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return self.governance.identity.scope

    async def prepare(self, core: Core, grant: Grant) -> PreparedProposal:
        return PreparedProposal(core, str(grant.actor))

    def apply(self, transaction: Transaction, prepared: PreparedProposal) -> ProposeReport:
        validation = validate(self.governance, self.proposal)
        if not validation.accepted:
            return self._report(validation, validation.reason, accepted=False)
        core, record = prepared.core, ProposalRecord(self.proposal, prepared.author)
        added = add_proposal(transaction, core, self.governance, record, self.action, core.clock.now())
        if added:
            return self._report(validation, PROPOSED, accepted=True, changed=True)
        known = transaction.proposals.find(self.scope, self.proposal.proposal_id)
        # Sent again by a host that missed the answer.
        same = known is not None and known.document == record.to_document()
        return self._report(validation, PROPOSAL_EXISTS, accepted=same)

    def _report(
        self, validation: ProposalValidation, reason: str, *, accepted: bool, changed: bool = False
    ) -> ProposeReport:
        return ProposeReport(accepted, changed, self.proposal.proposal_id, reason, validation)

    def record_count(self, result: ProposeReport) -> int:
        return int(result.changed)


@dataclass(frozen=True, slots=True)
class ValidateProposal(Read[Core, ProposalValidation]):
    """Decide on the candidates of a proposal, and store nothing."""

    action: ClassVar[Action] = Action.VALIDATE_PROPOSAL
    governance: Governance
    proposal: MemoryProposal

    def __post_init__(self) -> None:
        checked_proposal(self.proposal, self.governance.budget.source_chars)

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return self.governance.identity.scope

    async def prepare(self, core: Core, grant: Grant) -> Core:
        return core

    def apply(self, reader: Reader, prepared: Core) -> ProposalValidation:
        return validate(self.governance, self.proposal)
