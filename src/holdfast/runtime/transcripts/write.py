"""`write`: judge the candidates of a host or pipeline one by one and commit them together."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from holdfast.domain.access import Action, ActorKind, Grant
from holdfast.domain.candidates import TARGETS, CandidatePrivacy, is_of_a_user
from holdfast.domain.checks import checked_instance, checked_instances, checked_text
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope
from holdfast.domain.ids import checked_id
from holdfast.domain.memory import Plane, Trust, Validity
from holdfast.domain.runtime_api.writing import (
    LongTermExtraction,
    LongTermFact,
    MemoryWriteCandidate,
    MemoryWriteReport,
    MemoryWriteRequest,
    SemanticGovernance,
    TranscriptEvidenceRef,
)
from holdfast.domain.scope import Scope
from holdfast.domain.times import checked_iso_time
from holdfast.domain.transcript_turns import Authority, checked_member
from holdfast.errors import AliasNotTrusted, InvalidInput
from holdfast.ports import Reader, Transaction
from holdfast.runtime import indexing
from holdfast.runtime.gate import Core, Write
from holdfast.runtime.skills.near_skills import NearSkills, near_procedures
from holdfast.runtime.transcripts.budgets import require_budget
from holdfast.runtime.transcripts.candidate_writer import (
    CandidateAuthor,
    CandidateSource,
    IndexedCandidate,
    ValidatedCandidate,
    write_candidates,
)
from holdfast.runtime.transcripts.conversation_address import ConversationAddress, StartedOperation

MAX_CANDIDATES = 256
MAX_EVIDENCE_REFS = 256
MIXED = "mixed"
EXTRACTION = "long_term_extraction"
# Maximum trust of a candidate by the kind of actor that writes it.
_CEILINGS = {ActorKind.OPERATOR: Trust.VERIFIED, ActorKind.SYSTEM: Trust.VERIFIED, ActorKind.USER: Trust.STATED}


@dataclass(frozen=True, slots=True)
class _PreparedWrite:
    started: StartedOperation
    writer: CandidateAuthor
    entries: Sequence[indexing.IndexedText]
    near: Sequence[NearSkills]


@dataclass(frozen=True, slots=True)
class WriteMemory(Write[_PreparedWrite, MemoryWriteReport]):
    """Judge candidates for memories, and write the accepted and deferred ones."""

    action: ClassVar[Action] = Action.WRITE
    scope: Scope
    governance: Governance
    operation: str
    candidates: tuple[MemoryWriteCandidate, ...]
    where: MemoryScope | None

    @classmethod
    def of(cls, governance: Governance, request: MemoryWriteRequest, last: MemoryScope | None) -> WriteMemory:
        if (request.extraction is None) == (not request.given):
            raise InvalidInput("candidates", "give at least one candidate or an extraction, not both")
        operation, candidates = "candidates", tuple(request.given)
        if request.extraction is not None:
            operation, candidates = EXTRACTION, _extraction_candidates(request.extraction)
        if len(candidates) > MAX_CANDIDATES:
            raise InvalidInput("candidates", f"has {len(candidates):,} entries; at most {MAX_CANDIDATES:,} are allowed")
        for place, candidate in enumerate(candidates):
            _validate_candidate(candidate, f"candidates[{place}]", governance)
        names = [candidate.candidate_id for candidate in candidates]
        if len(set(names)) < len(names):
            raise InvalidInput("candidates", "two of them have the same candidate_id; give each its own")
        return cls(governance.identity.scope, governance, operation, candidates, request.scope or last)

    async def prepare(self, core: Core, grant: Grant) -> _PreparedWrite:
        now = core.clock.now()
        entries = await indexing.make_entries(core, [candidate.content for candidate in self.candidates])
        ceiling = _CEILINGS.get(grant.actor.kind, Trust.MODEST)
        writer = CandidateAuthor(core, self.scope, str(grant.actor), ceiling, now)
        texts = [
            (Plane(each.target), each.content, entry) for each, entry in zip(self.candidates, entries, strict=True)
        ]
        near = await near_procedures(core, grant, self.scope, texts)
        return _PreparedWrite(StartedOperation(core, self.action, now), writer, entries, near)

    def apply(self, transaction: Transaction, prepared: _PreparedWrite) -> MemoryWriteReport:
        governed = SemanticGovernance(
            write_candidates(
                transaction,
                prepared.writer,
                [
                    IndexedCandidate(self._to_candidate(transaction, candidate), entry, near)
                    for candidate, entry, near in zip(self.candidates, prepared.entries, prepared.near, strict=True)
                ],
            )
        )
        changed = any(verdict.changed for verdict in governed.verdicts)
        if changed:
            require_budget(transaction, self.governance)
        reasons = {verdict.reason.value for verdict in governed.verdicts}
        summary = f"{governed.accepted} accepted, {governed.deferred} deferred, {governed.rejected} rejected"
        return MemoryWriteReport(
            accepted=governed.accepted > 0,
            changed=changed,
            operation=self.operation,
            reason=reasons.pop() if len(reasons) == 1 else MIXED,
            lifecycle_report=prepared.started.report(summary, changed=changed),
            semantic_governance=governed,
        )

    def _to_candidate(self, reader: Reader, candidate: MemoryWriteCandidate) -> ValidatedCandidate:
        return ValidatedCandidate(
            id=candidate.candidate_id,
            authority=Authority(candidate.authority),
            target=Plane(candidate.target),
            privacy=CandidatePrivacy(candidate.privacy),
            content=candidate.content,
            sources=tuple(self._source(reader, ref, candidate) for ref in candidate.evidence_refs),
            validity=Validity(candidate.valid_from, candidate.valid_until),
        )

    def _source(
        self, reader: Reader, ref: TranscriptEvidenceRef | str, candidate: MemoryWriteCandidate
    ) -> CandidateSource:
        if isinstance(ref, str):
            return CandidateSource(ref, None, None)
        if ref.message_id is not None:
            return CandidateSource(ref.message_id, None, None)
        where, thread = ref.scope or self.where, None
        if where is not None:
            # An ambiguous chat id resolves to no turn.
            with contextlib.suppress(AliasNotTrusted):
                thread = ConversationAddress.of(self.governance, where).resolve(reader)
        # A pipeline reads whole turns. What it says of a user rests on the user's part of them.
        by_user = self.operation == EXTRACTION and is_of_a_user(Authority(candidate.authority))
        return CandidateSource(None, ref.turn_id, thread, by_user)

    def has_work(self, core: Core, result: MemoryWriteReport) -> bool:
        return result.changed and not core.embedder.local

    def record_count(self, result: MemoryWriteReport) -> int:
        return sum(verdict.changed for verdict in result.semantic_governance.verdicts)


def _extraction_candidates(extraction: LongTermExtraction) -> tuple[MemoryWriteCandidate, ...]:
    """Convert an extraction's facts to candidates, each with an id derived from the extraction's."""
    checked_instance(extraction, LongTermExtraction, "extraction")
    checked_text(extraction.extraction_id, "extraction.extraction_id", max_chars=128)
    checked_text(extraction.pipeline, "extraction.pipeline", max_chars=64)
    facts = checked_instances(extraction.facts, LongTermFact, "extraction.facts")
    if not facts:
        raise InvalidInput("extraction.facts", "is empty; there is nothing to write")
    return tuple(
        MemoryWriteCandidate(
            candidate_id=f"{extraction.pipeline}/{extraction.extraction_id}/{place}",
            authority=fact.authority,
            content=fact.content,
            privacy=fact.privacy,
            evidence_refs=fact.evidence_refs,
            valid_from=fact.valid_from,
            valid_until=fact.valid_until,
        )
        for place, fact in enumerate(facts)
    )


def _validate_candidate(given: object, place: str, governance: Governance) -> None:
    candidate = checked_instance(given, MemoryWriteCandidate, place)
    checked_id(candidate.candidate_id, f"{place}.candidate_id")
    checked_member(Authority, candidate.authority, f"{place}.authority")
    checked_member(CandidatePrivacy, candidate.privacy, f"{place}.privacy")
    if candidate.target not in TARGETS:
        raise InvalidInput(f"{place}.target", f"must be one of {', '.join(TARGETS)}, not {candidate.target!r:.40}")
    checked_text(candidate.content, f"{place}.content", max_chars=governance.budget.source_chars)
    if isinstance(candidate.evidence_refs, str) or len(candidate.evidence_refs) > MAX_EVIDENCE_REFS:
        raise InvalidInput(f"{place}.evidence_refs", f"give a tuple of references, at most {MAX_EVIDENCE_REFS}")
    for ref in candidate.evidence_refs:
        _check_ref(ref, f"{place}.evidence_refs", governance)
    for name in ("valid_from", "valid_until"):
        if (moment := getattr(candidate, name)) is not None:
            checked_iso_time(moment, f"{place}.{name}")
    Validity(candidate.valid_from, candidate.valid_until)


def _check_ref(ref: object, place: str, governance: Governance) -> None:
    if isinstance(ref, str):
        checked_id(ref, place)
        return
    if not isinstance(ref, TranscriptEvidenceRef):
        raise InvalidInput(place, f"expected a TranscriptEvidenceRef or a message's id, got {type(ref).__name__}")
    if (ref.message_id is None) == (ref.turn_id is None):
        raise InvalidInput(place, "give a message_id or a turn_id, and not both")
    checked_id(ref.message_id if ref.turn_id is None else ref.turn_id, place)
    if ref.scope is not None:
        ConversationAddress.of(governance, ref.scope)
