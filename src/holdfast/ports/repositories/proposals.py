"""Port of proposals: suggested changes of one memory, and the records that they rest on.

A proposal goes with any of its records: it is deleted when one is forgotten or its content deleted, and as long as one
is masked, it counts as missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.domain.scope import Scope
from holdfast.domain.stored_proposals import ProposalStatus, StoredProposal


class ProposalReader(Protocol):
    def find(self, scope: Scope, proposal_id: str) -> StoredProposal | None:
        """Return the proposal of exactly this scope."""

    def page(self, scope: Scope, status: ProposalStatus | None, limit: int) -> Sequence[StoredProposal]:
        """Return the proposals of exactly this scope, the newest first; those of one status, if it is given."""

    def count(self, scope: Scope, status: ProposalStatus) -> int: ...

    def is_cited(self, scope: Scope, record_id: str, status: ProposalStatus) -> bool:
        """Return True if a proposal of this scope and status rests on the record, also a hidden one."""


class ProposalWriter(ProposalReader, Protocol):
    def add(self, proposal: StoredProposal, record_ids: Sequence[str]) -> bool:
        """Store a proposal that rests on these records. False if its scope has one of this id already."""

    def replace(self, proposal: StoredProposal) -> None:
        """Replace status, document and time of decision of a stored proposal."""
