"""Write candidates in a transaction: resolve their evidence, judge them, then store, merge or reject them.

The rules are in `domain/candidates.py`. All decisions are made in the writing transaction, from its current state:
evidence that was masked or forgotten after a model read it no longer counts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from holdfast.domain import ids
from holdfast.domain.authorship import holds_recall, is_own_statement, states
from holdfast.domain.candidates import (
    GROUNDS,
    CandidatePrivacy,
    Judgement,
    Reason,
    Verdict,
    evidence_authority,
    is_of_a_user,
    is_supported,
    judge_candidate,
)
from holdfast.domain.checks import MAX_TEXT_CHARS
from holdfast.domain.ids import MemoryId, MessageId
from holdfast.domain.memory import ALWAYS, TRUST_LEVELS, MemoryRecord, Plane, Status, Trust, Validity
from holdfast.domain.reconciliation import can_end
from holdfast.domain.runtime_api.writing import CandidateVerdict
from holdfast.domain.runtime_skills import SkillContent
from holdfast.domain.scope import Scope
from holdfast.domain.skill_checks import reject_procedure
from holdfast.domain.transcript import Message, Role
from holdfast.domain.transcript_turns import Authority, TranscriptTurn
from holdfast.ports import NewRevision, Reader, StoredResponse, Transaction
from holdfast.runtime import indexing
from holdfast.runtime.gate import Core
from holdfast.runtime.idempotency import digest_of, is_answer_to, seal_digest
from holdfast.runtime.job_queue import enqueue_indexing
from holdfast.runtime.record_writes import add_revision
from holdfast.runtime.revisions import RESTATED, repeat_revision, time_after
from holdfast.runtime.skills.near_skills import NOTHING_NEAR, NearSkills, near_duplicate
from holdfast.runtime.skills.stored_skill import StoredSkill, skill_of, store_candidate_skill


class CandidateSource(NamedTuple):
    """A candidate's citation: a message, or all messages of a turn of that thread.

    With `by_user`, a turn counts for its user's own words alone, if they say what the candidate says.
    """

    message_id: str | None
    turn_id: str | None
    thread: Scope | None
    by_user: bool = False


@dataclass(frozen=True, slots=True)
class ValidatedCandidate:
    """A validated candidate. Without an authority it has that of its weakest evidence."""

    id: str
    authority: Authority | None
    target: Plane
    privacy: CandidatePrivacy
    content: str
    sources: tuple[CandidateSource, ...]
    validity: Validity = ALWAYS
    # True if a model worded it; then the cited messages must support its words.
    worded_by_model: bool = False

    def digest(self) -> str:
        return digest_of(
            self.authority, self.target, self.privacy, self.content,
            [(each.message_id, each.turn_id) for each in self.sources], self.validity,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class IndexedCandidate:
    """A candidate with its index data, and the known skills that are near a procedure."""

    given: ValidatedCandidate
    entry: indexing.IndexedText
    near: NearSkills = NOTHING_NEAR


@dataclass(frozen=True, slots=True)
class CandidateAuthor:
    """The author of candidates, their scope, and the maximum trust the author can claim."""

    core: Core
    scope: Scope
    author: str
    ceiling: Trust
    now: datetime


class CitedMessage(NamedTuple):
    message_id: MessageId
    ground: Authority
    text: str
    recorded_at: datetime


# --- evidence ---------------------------------------------------------------------------------------------------------


class EvidenceResolver:
    """Resolves citations in one transaction. A turn that several candidates cite is read once."""

    def __init__(self, reader: Reader, scope: Scope) -> None:
        self._reader = reader
        self._scope = scope
        self._turns: dict[tuple[Scope, str], TranscriptTurn | None] = {}

    def resolve(self, sources: Sequence[CandidateSource], content: str) -> list[CitedMessage] | Reason:
        """Return the messages cited for a content, each once, or the reason why the citations cannot be used."""
        found: dict[MessageId, CitedMessage] = {}
        for source in sources:
            cited = self._of_turn(source, content) if source.message_id is None else self._of_message(source.message_id)
            if isinstance(cited, Reason):
                return cited
            found |= {each.message_id: each for each in cited}
        return list(found.values())

    def message(self, message_id: str) -> Message | None:
        """Load a readable message of this partition."""
        found = self._reader.records.find(message_id)
        if found is None or not isinstance(found[1], Message) or found[1].scope.partition != self._scope.partition:
            return None
        return found[1]

    def cite(self, message: Message) -> CitedMessage | Reason:
        """Return the message with its authority, if it is active."""
        if message.status is not Status.ACCEPTED or message.superseded_at is not None:
            return Reason.EVIDENCE_NOT_ACTIVE
        turn = self._turn(message.scope.thread, message.turn_id)
        matches = () if turn is None else (each for each in turn.messages if each.id == message.id)
        for each in matches:
            return CitedMessage(message.id, _ground(each.authority, message), message.text, message.recorded_at)
        return Reason.EVIDENCE_NOT_FOUND

    def _of_message(self, message_id: str) -> list[CitedMessage] | Reason:
        message = self.message(message_id)
        cited = Reason.EVIDENCE_NOT_FOUND if message is None else self.cite(message)
        return cited if isinstance(cited, Reason) else [cited]

    def _of_turn(self, source: CandidateSource, content: str) -> list[CitedMessage] | Reason:
        if source.thread is None or source.turn_id is None or source.thread.partition != self._scope.partition:
            return Reason.EVIDENCE_NOT_FOUND
        turn = self._turn(source.thread, source.turn_id)
        if turn is None:
            return Reason.EVIDENCE_NOT_FOUND
        if source.by_user and (own := self._own_words(turn, content)):
            return own
        found: list[CitedMessage] = []
        for said in turn.messages:
            cited = self._of_message(said.id)
            if isinstance(cited, Reason):
                return cited
            found += cited
        return found

    def _own_words(self, turn: TranscriptTurn, content: str) -> list[CitedMessage]:
        """Return the user's own messages of a turn, if they say the content."""
        spoken = (self.message(said.id) for said in turn.messages if said.role is Role.USER)
        cited = [(message, self.cite(message)) for message in spoken if message is not None]
        own = [(message, each) for message, each in cited if not isinstance(each, Reason) and is_of_a_user(each.ground)]
        return [each for _, each in own] if states([message for message, _ in own], content) else []

    def _turn(self, thread: Scope, turn_id: str) -> TranscriptTurn | None:
        key = (thread, turn_id)
        if key not in self._turns:
            self._turns[key] = self._reader.transcripts.turn(thread, turn_id)
        return self._turns[key]


def _ground(authority: Authority, message: Message) -> Authority:
    """Return the authority of a message as evidence. Only a subject's own words are what a user asserts."""
    ground = evidence_authority(authority, message.role)
    if message.role is not Role.USER or not is_of_a_user(ground) or is_own_statement(message):
        return ground
    return Authority.SUBJECT_PROJECTION if holds_recall(message.text) else Authority.EXTERNAL_CONTENT


# --- decisions --------------------------------------------------------------------------------------------------------


def write_candidates(
    transaction: Transaction, writer: CandidateAuthor, proposed: Iterable[IndexedCandidate]
) -> tuple[CandidateVerdict, ...]:
    """Judge candidates and store the accepted and deferred ones, one after the other, in one commit."""
    evidence = EvidenceResolver(transaction, writer.scope)
    verdicts: list[CandidateVerdict] = []
    for ready in proposed:
        near = ready.near.ids([verdict.memory_id for verdict in verdicts])
        verdicts.append(_write_candidate(transaction, evidence, writer, replace(ready, near=NearSkills(near))))
    return tuple(verdicts)


def _write_candidate(
    transaction: Transaction, evidence: EvidenceResolver, writer: CandidateAuthor, ready: IndexedCandidate
) -> CandidateVerdict:
    """Judge one candidate. A repeated candidate id gets its first verdict again."""
    given, partition = ready.given, writer.scope.partition
    key = digest_of("candidate", writer.scope.given(), given.id)
    stored = transaction.records.response(partition, key)
    if stored is not None:
        return _replay_verdict(transaction, given, stored)
    cited = evidence.resolve(given.sources, given.content)
    if isinstance(cited, Reason):
        return _unchanged_verdict(given, Judgement(cited, Trust.UNTRUSTED))
    verdict = _store_candidate(transaction, writer, ready, cited, _judge(given, cited, writer.ceiling))
    if verdict.status is not None:
        transaction.records.put_response(
            partition,
            key,
            StoredResponse(seal_digest(given.digest(), given.id), json.dumps(verdict_to_json(verdict))),
            writer.now,
        )
    return verdict


def _judge(given: ValidatedCandidate, cited: Sequence[CitedMessage], ceiling: Trust) -> Judgement:
    grounds = [each.ground for each in cited]
    if given.authority is None and not grounds:
        return Judgement(Reason.EVIDENCE_NOT_FOUND, Trust.UNTRUSTED)
    if given.target is Plane.PROCEDURAL and (weak := reject_procedure(given.content, MAX_TEXT_CHARS)) is not None:
        return Judgement(Reason(weak.value), Trust.UNTRUSTED)
    return judge_candidate(
        given.authority or min(grounds, key=lambda ground: GROUNDS[ground].trust),
        given.target,
        given.privacy,
        grounds,
        ceiling=ceiling,
        supported=not given.worded_by_model or is_supported(given.content, [each.text for each in cited]),
    )


def _store_candidate(
    transaction: Transaction,
    writer: CandidateAuthor,
    ready: IndexedCandidate,
    cited: Sequence[CitedMessage],
    judgement: Judgement,
) -> CandidateVerdict:
    given, evidence = ready.given, tuple(each.message_id for each in cited)
    if judgement.status is None:
        return _unchanged_verdict(given, judgement)
    old = transaction.records.in_slot(writer.scope, _slot(given))
    if not isinstance(old, MemoryRecord):
        skill = near_duplicate(transaction, writer.scope, SkillContent.read(given.content, {}), ready.near.known)
        if skill is not None and (repeated := _repeat_skill(transaction, writer, ready, cited, judgement, skill)):
            return repeated
        return _add_revision(transaction, writer, ready, judgement, evidence, None)
    if _normalize(old.text) != _normalize(given.content):
        newer = any(each.recorded_at > old.recorded_at for each in cited)
        if newer and judgement.verdict is Verdict.ACCEPTED and can_end(judgement.trust, old.trust):
            return _add_revision(transaction, writer, ready, judgement, evidence, old)
        return _unchanged_verdict(given, Judgement(Reason.CORRECTED_SINCE, judgement.trust))
    stronger = old.status is not Status.ACCEPTED or judgement.trust > old.trust
    if judgement.verdict is Verdict.ACCEPTED and stronger:
        return _add_revision(transaction, writer, ready, Judgement(Reason.CONFIRMED, judgement.trust), evidence, old)
    if judgement.verdict is Verdict.DEFERRED and old.status is Status.ACCEPTED:
        # Not even as further evidence: an accepted memory must go when the messages it was accepted for do.
        return _unchanged_verdict(given, Judgement(Reason.ALREADY_KNOWN, judgement.trust), old)
    return _merge_evidence(transaction, writer, given, judgement, evidence, old)


def _repeat_skill(
    transaction: Transaction,
    writer: CandidateAuthor,
    ready: IndexedCandidate,
    cited: Sequence[CitedMessage],
    judgement: Judgement,
    skill: StoredSkill,
) -> CandidateVerdict | None:
    """Add the evidence to a skill that says the same in other words. None if only one of both needs an approval."""
    deferred = judgement.verdict is Verdict.DEFERRED
    # A skill without evidence gets none: it must not go when these messages do.
    evidence = tuple(each.message_id for each in cited) if skill.memory.evidence else ()
    if deferred is skill.state.needs_approval:
        return _merge_evidence(transaction, writer, ready.given, judgement, evidence, skill.memory)
    if deferred:
        return _unchanged_verdict(ready.given, Judgement(Reason.ALREADY_KNOWN, judgement.trust), skill.memory)
    return None


def _add_revision(
    transaction: Transaction,
    writer: CandidateAuthor,
    ready: IndexedCandidate,
    judgement: Judgement,
    evidence: tuple[MessageId, ...],
    old: MemoryRecord | None,
) -> CandidateVerdict:
    core, given = writer.core, ready.given
    before = None if old is None else skill_of(transaction, old.id)
    memory_id = old.id if old is not None else MemoryId(core.ids.new(ids.MEMORY))
    revision = add_revision(
        transaction,
        core,
        NewRevision(
            id=memory_id,
            scope=writer.scope,
            plane=given.target,
            text=given.content,
            trust=judgement.trust,
            status=judgement.status or Status.QUARANTINED,
            validity=given.validity,
            recorded_at=writer.now if old is None else time_after(writer.now, old),
            source=None,
            author=writer.author,
            reason=judgement.reason,
            evidence=evidence,
            metadata={},
            analysis=ready.entry.analysis,
            vectors=ready.entry.vectors,
            supersedes=None if old is None else old.revision,
            slot=_slot(given),
            by_runtime=True,
        ),
        _details(judgement),
    )
    if given.target is Plane.PROCEDURAL:
        store_candidate_skill(transaction, memory_id, before, judgement.verdict, writer.now)
    if ready.entry.analysis.pieces and not ready.entry.vectors:
        enqueue_indexing(transaction, core, writer.scope, (memory_id,))
    return _verdict(given, judgement, True, memory_id, revision, evidence)


def _merge_evidence(
    transaction: Transaction,
    writer: CandidateAuthor,
    given: ValidatedCandidate,
    judgement: Judgement,
    evidence: tuple[MessageId, ...],
    old: MemoryRecord,
) -> CandidateVerdict:
    """Add the evidence of a repeated statement in a revision, so that the memory stays if one message is forgotten."""
    linked = {each.message_id for each in old.evidence}
    further = [message_id for message_id in evidence if message_id not in linked]
    accepted = judgement.verdict is Verdict.ACCEPTED
    merged = Judgement(Reason.MERGED, old.trust) if accepted else judgement
    revision = old.revision
    if further:
        again = repeat_revision(old, writer.now, writer.author, RESTATED)
        revision = add_revision(
            transaction, writer.core, replace(again, evidence=tuple(further), by_runtime=True), _details(merged)
        )
    return _verdict(given, merged, bool(further), old.id, revision, evidence)


def _details(judgement: Judgement) -> dict[str, str | int | None]:
    return {"verdict": judgement.verdict, "reason": judgement.reason, "trust": judgement.trust}


def _normalize(content: str) -> str:
    return " ".join(content.split()).casefold()


def _slot(given: ValidatedCandidate) -> str:
    """The slot of a candidate: equal words on one plane share it, whatever their spacing and case."""
    return f"candidate/{given.target}/{hashlib.sha256(_normalize(given.content).encode()).hexdigest()}"


# --- verdicts ---------------------------------------------------------------------------------------------------------


def _verdict(
    given: ValidatedCandidate,
    judgement: Judgement,
    changed: bool,
    memory_id: MemoryId | None = None,
    revision: int | None = None,
    evidence: tuple[MessageId, ...] = (),
) -> CandidateVerdict:
    return CandidateVerdict(
        given.id,
        judgement.verdict,
        judgement.reason,
        given.target,
        judgement.trust,
        judgement.status,
        changed,
        memory_id,
        revision,
        evidence,
    )


def _unchanged_verdict(
    given: ValidatedCandidate, judgement: Judgement, known: MemoryRecord | None = None
) -> CandidateVerdict:
    """The verdict on a candidate that changes nothing."""
    if known is None:
        return _verdict(given, judgement, False)
    return replace(_verdict(given, judgement, False, known.id, known.revision), status=known.status)


def verdict_to_json(verdict: CandidateVerdict) -> dict[str, object]:
    """The part of a verdict to store: our own names, ids and numbers, not the candidate's id, which is the host's."""
    return {
        "reason": verdict.reason,
        "target": verdict.target,
        "trust": verdict.trust.level,
        "status": verdict.status,
        "memory": verdict.memory_id,
        "revision": verdict.revision,
        "evidence": verdict.evidence,
        "changed": verdict.changed,
    }


def verdict_from_json(candidate_id: str, stored: dict[str, object], *, replayed: bool) -> CandidateVerdict:
    judgement = Judgement(Reason(str(stored["reason"])), TRUST_LEVELS[int(str(stored["trust"]))])
    memory_id, revision, evidence = stored["memory"], stored["revision"], stored["evidence"]
    return CandidateVerdict(
        candidate_id=candidate_id,
        verdict=judgement.verdict,
        reason=judgement.reason,
        target=Plane(str(stored["target"])),
        trust=judgement.trust,
        status=None if stored["status"] is None else Status(str(stored["status"])),
        changed=bool(stored["changed"]) and not replayed,
        memory_id=None if memory_id is None else MemoryId(str(memory_id)),
        revision=revision if isinstance(revision, int) else None,
        evidence=tuple(MessageId(str(each)) for each in evidence) if isinstance(evidence, list) else (),
        replayed=replayed,
    )


def _replay_verdict(transaction: Transaction, given: ValidatedCandidate, stored: StoredResponse) -> CandidateVerdict:
    if not is_answer_to(stored, given.digest(), given.id):
        return _unchanged_verdict(given, Judgement(Reason.CANDIDATE_ID_REUSED, Trust.UNTRUSTED))
    verdict = verdict_from_json(given.id, json.loads(stored.body), replayed=True)
    if verdict.memory_id is not None and transaction.records.find(verdict.memory_id) is None:
        return _unchanged_verdict(given, Judgement(Reason.FORGOTTEN_SINCE, Trust.UNTRUSTED))
    return verdict
