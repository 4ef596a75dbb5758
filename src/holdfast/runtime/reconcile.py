"""Reconcile proposed facts with what is known: each becomes a memory, a revision, further evidence, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.domain import ids
from holdfast.domain.ids import MemoryId
from holdfast.domain.memory import Candidate, MemoryRecord, Plane, Status
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Message
from holdfast.ports import NewRevision, Reader, Transaction
from holdfast.runtime import indexing
from holdfast.runtime.gate import Core
from holdfast.runtime.remember import time_after


@dataclass(frozen=True, slots=True)
class IndexedProposal:
    """A proposed fact with its analysis and vectors."""

    candidate: Candidate
    entry: indexing.IndexedText


def reconcile_proposals(
    core: Core, transaction: Transaction, scope: Scope, proposed: Sequence[IndexedProposal], author: str
) -> None:
    """Write the proposals of an author, such as `extractor:rules`, one after the other, in one commit."""
    for proposal in proposed:
        _accept(core, transaction, scope, proposal, author)


def learnable_messages(reader: Reader, message_ids: tuple[str, ...]) -> list[Message]:
    found = (reader.records.find(message_id) for message_id in message_ids)
    messages = [entry[1] for entry in found if entry is not None and isinstance(entry[1], Message)]
    return [message for message in messages if _is_learnable(message)]


def _is_learnable(message: Message) -> bool:
    """True if the message may be learned from: accepted, not superseded, and not on a private plane."""
    return message.superseded_at is None and message.status is Status.ACCEPTED and message.plane is None


def replaces_memory(candidate: Candidate, old: MemoryRecord) -> bool:
    """True if the candidate replaces the memory in its slot. An older fact does not, nor the end of another fact."""
    if candidate.former is not None:
        return candidate.former in old.text
    since, until_now = candidate.validity.since, old.validity.since
    return candidate.replaces or since is None or until_now is None or since >= until_now


def _accept(core: Core, transaction: Transaction, scope: Scope, proposal: IndexedProposal, author: str) -> None:
    candidate = proposal.candidate
    # Some evidence was forgotten or put away since it was read: do not learn from it.
    if len(learnable_messages(transaction, candidate.evidence)) < len(candidate.evidence):
        return
    slot = f"{author.partition(':')[2]}/{candidate.key}"
    old = transaction.records.in_slot(scope, slot)
    if isinstance(old, MemoryRecord) and old.text == candidate.text:
        # Repeated: it now has both as evidence, and stays if one of them is forgotten.
        transaction.records.add_evidence(old.id, candidate.evidence)
        return
    if old is not None and not (isinstance(old, MemoryRecord) and replaces_memory(candidate, old)):
        return
    now = core.clock.now()
    transaction.records.add_revision(
        NewRevision(
            id=old.id if isinstance(old, MemoryRecord) else MemoryId(core.ids.new(ids.MEMORY)),
            scope=old.scope if isinstance(old, MemoryRecord) else scope,
            plane=Plane.LONG_TERM,
            text=candidate.text,
            trust=candidate.trust,
            status=Status.ACCEPTED,
            validity=candidate.validity,
            recorded_at=time_after(now, old) if isinstance(old, MemoryRecord) else now,
            source=None,
            author=author,
            reason="said anew" if isinstance(old, MemoryRecord) else None,
            evidence=candidate.evidence,
            metadata={},
            analysis=proposal.entry.analysis,
            vectors=proposal.entry.vectors,
            supersedes=old.revision if isinstance(old, MemoryRecord) else None,
            slot=slot,
        ),
        core.embedder.fingerprint,
        core.analyzer.version,
    )
