"""Proposals as a store holds them. `proposals.py` has their content."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from holdfast.domain.scope import Scope


class ProposalStatus(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class StoredProposal:
    """A proposal as a store holds it: `document` is its text, as JSON. Its id is unique in its scope."""

    scope: Scope
    proposal_id: str
    status: ProposalStatus
    document: str
    created_at: datetime
    decided_at: datetime | None = None
