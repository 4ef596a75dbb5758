"""Reconcile proposed facts with what is known: each becomes a memory, a revision, further evidence, a mark, or nothing.

`domain/reconciliation.py` decides, from the state in the writing transaction: what was near a fact when it was prepared
may have changed since. Every decision is a revision, so its author and reason are in the history, and `revert` undoes
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.domain import ids
from holdfast.domain.access import SYSTEM, Action, authorize
from holdfast.domain.authorship import limit_trust
from holdfast.domain.contract import Usage
from holdfast.domain.ids import MemoryId
from holdfast.domain.memory import Candidate, FactRelation, MemoryRecord, Plane, Status, Validity
from holdfast.domain.reconciliation import (
    Decision,
    DecisionReason,
    decide,
    decide_in_slot,
    normalize_statement,
    was_learned_before,
)
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Message
from holdfast.ports import NewRevision, Reader, Transaction
from holdfast.runtime import indexing
from holdfast.runtime.gate import Core
from holdfast.runtime.record_writes import add_revision
from holdfast.runtime.related import find_related, is_comparable
from holdfast.runtime.revisions import RESTATED, repeat_revision, time_after

# Every revision has links of its own, so a fact that is said every day does not add to them without end.
_ENOUGH_EVIDENCE = 100


@dataclass(frozen=True, slots=True)
class IndexedProposal:
    """A proposed fact with its analysis and vectors, and the known memories that were near it."""

    candidate: Candidate
    entry: indexing.IndexedText
    related: tuple[MemoryId, ...] = ()


async def prepare_proposals(
    core: Core, scope: Scope, candidates: Sequence[Candidate]
) -> tuple[tuple[IndexedProposal, ...], tuple[Usage, ...]]:
    """Index the candidates and find what is known near them. Also return the usage of a metered embedder."""
    # No caller waits for learning, so it can wait for a remote embedder.
    texts = [candidate.text for candidate in candidates]
    analyses = await indexing.analyze_texts(core, texts)
    vectors = await indexing.embed_analyses(core, analyses)
    entries = [indexing.IndexedText(*each) for each in zip(analyses, vectors.result, strict=True)]
    grant = authorize(SYSTEM, Action.WORK, scope)
    near = tuple(memory.id for memory in await find_related(core, grant, scope, texts, entries))
    proposed = (IndexedProposal(candidate, entry, near) for candidate, entry in zip(candidates, entries, strict=True))
    return tuple(proposed), vectors.took


def reconcile_proposals(
    core: Core, transaction: Transaction, scope: Scope, proposed: Sequence[IndexedProposal], author: str
) -> None:
    """Write the proposals, one after the other, in one commit."""
    reconciler = _Reconciler(core, transaction, scope, author)
    for proposal in proposed:
        reconciler.accept(proposal)


def learnable_messages(reader: Reader, message_ids: tuple[str, ...]) -> list[Message]:
    found = (reader.records.find(message_id) for message_id in message_ids)
    messages = [entry[1] for entry in found if entry is not None and isinstance(entry[1], Message)]
    return [message for message in messages if _is_learnable(message)]


def _is_learnable(message: Message) -> bool:
    """True if the message may be learned from: accepted, not superseded, and not on a private plane."""
    return message.superseded_at is None and message.status is Status.ACCEPTED and message.plane is None


@dataclass(slots=True)
class _Reconciler:
    """Applies decisions in one transaction. `known` are the memories to compare with, as they are now."""

    core: Core
    transaction: Transaction
    scope: Scope
    author: str
    known: dict[MemoryId, MemoryRecord | None] = field(default_factory=dict)

    def accept(self, proposal: IndexedProposal) -> None:
        candidate = proposal.candidate
        # In a slot, facts of rules replace each other. It is read first: that locks the partition.
        slot = self._rule_slot(candidate)
        occupant = None if slot is None else self._in_slot(slot)
        alike = self._in_slot(_words_slot(candidate.text))
        evidence = learnable_messages(self.transaction, candidate.evidence)
        # Some evidence was forgotten or put away since it was read: do not learn from it.
        if len(evidence) < len(candidate.evidence):
            return
        self._load(proposal.related if candidate.target is None else (*proposal.related, candidate.target))
        concerned = occupant if candidate.target is None else self.known.get(candidate.target)
        candidate = limit_trust(candidate, evidence, concerned, worded_by_model=slot is None)
        evidence = [message for message in evidence if message.id in candidate.evidence]
        if self._was_learned_before(candidate):
            return
        found = {each.id: each for each in (*self.known.values(), occupant, alike) if each is not None}
        comparable = [each for each in found.values() if is_comparable(each, self.scope)]
        decision = decide(candidate, evidence, comparable, subject=self.scope.subject)
        if occupant is not None and decision.reason is not DecisionReason.SAME_WORDS:
            decision = decide_in_slot(candidate, occupant)
            # The slot is the other's, if both are kept.
            slot = None if decision.relation is FactRelation.NEW else slot
        self._apply(decision, replace(proposal, candidate=candidate), slot)

    def _rule_slot(self, candidate: Candidate) -> str | None:
        return f"{self.core.extractor.name}/{candidate.key}" if candidate.key else None

    def _in_slot(self, slot: str) -> MemoryRecord | None:
        found = self.transaction.records.in_slot(self.scope, slot)
        return found if isinstance(found, MemoryRecord) else None

    def _was_learned_before(self, candidate: Candidate) -> bool:
        records = self.transaction.records
        histories = records.histories(records.resting_on(candidate.evidence))
        return was_learned_before(candidate, (each for each in histories if each[-1].scope == self.scope))

    def _load(self, memory_ids: Iterable[MemoryId]) -> None:
        missing = [memory_id for memory_id in memory_ids if memory_id not in self.known]
        if missing:
            self.known |= dict.fromkeys(missing)
            self.known |= {each[-1].id: each[-1] for each in self.transaction.records.histories(missing)}

    # --- writing ---

    def _apply(self, decision: Decision, proposal: IndexedProposal, slot: str | None) -> None:
        candidate, target = proposal.candidate, decision.target
        if decision.relation is FactRelation.NEW:
            self._add(proposal, candidate.validity, slot)
        elif decision.relation is None or target is None:
            return
        elif decision.relation is FactRelation.DUPLICATE:
            if len(target.evidence) >= _ENOUGH_EVIDENCE:
                return
            linked = {link.message_id for link in target.evidence}
            further = tuple(message_id for message_id in candidate.evidence if message_id not in linked)
            if further:
                self._repeat(target, RESTATED, evidence=further)
        elif decision.relation is FactRelation.CONTRADICTION:
            # The slot is the other's: both are kept.
            new = self._add(proposal, candidate.validity, None, contradicts=target.id)
            self._repeat(target, f"contradicted by {new}", contradicts=(*target.contradicts, new))
        elif decision.ends_at is None:
            self._revise(proposal, target, slot)
        else:
            until = min(decision.ends_at, target.validity.until or decision.ends_at)
            new = self._add(proposal, _begin_at(decision, candidate.validity), slot)
            self._repeat(target, f"ended by {new}", validity=Validity(target.validity.since, until), contradicts=())

    def _add(
        self, proposal: IndexedProposal, validity: Validity, slot: str | None, contradicts: MemoryId | None = None
    ) -> MemoryId:
        memory_id = MemoryId(self.core.ids.new(ids.MEMORY))
        new = self._first_revision(proposal, memory_id, validity, slot or _words_slot(proposal.candidate.text))
        marks = () if contradicts is None else (contradicts,)
        self._write(replace(new, contradicts=marks))
        return memory_id

    def _revise(self, proposal: IndexedProposal, target: MemoryRecord, slot: str | None) -> None:
        new = self._first_revision(proposal, target.id, proposal.candidate.validity, slot)
        self._write(
            replace(
                new,
                scope=target.scope,
                recorded_at=time_after(new.recorded_at, target),
                reason="said anew",
                supersedes=target.revision,
            )
        )

    def _first_revision(
        self, proposal: IndexedProposal, memory_id: MemoryId, validity: Validity, slot: str | None
    ) -> NewRevision:
        candidate = proposal.candidate
        return NewRevision(
            id=memory_id,
            scope=self.scope,
            plane=Plane.LONG_TERM,
            text=candidate.text,
            trust=candidate.trust,
            status=Status.ACCEPTED,
            validity=validity,
            recorded_at=self.core.clock.now(),
            source=None,
            author=self.author,
            reason=None,
            evidence=candidate.evidence,
            metadata={},
            analysis=proposal.entry.analysis,
            vectors=proposal.entry.vectors,
            slot=slot,
        )

    def _repeat(self, target: MemoryRecord, reason: str, **changes: Any) -> None:
        """Add a revision with the same text."""
        again = repeat_revision(target, self.core.clock.now(), self.author, reason)
        self._write(replace(again, **changes))

    def _write(self, revision: NewRevision) -> None:
        add_revision(self.transaction, self.core, revision)
        # Read again: the next proposal is compared with it.
        self.known.pop(revision.id, None)
        self._load([revision.id])


def _begin_at(decision: Decision, validity: Validity) -> Validity:
    """Return the validity of a fact that succeeds another: from its end on, unless it says from when."""
    since = validity.since or decision.ends_at
    until = validity.until
    return Validity(since, None if until is not None and since is not None and until <= since else until)


def _words_slot(text: str) -> str:
    """The slot of a fact without another: the same words are found whatever else is known."""
    return f"fact/{normalize_statement(text)}"
