"""From sealed messages to memories: what an extractor proposes becomes a memory, a revision of one, or nothing new."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.domain import ids
from holdfast.domain.access import SYSTEM, Action, authorize
from holdfast.domain.ids import MemoryId
from holdfast.domain.jobs import Job
from holdfast.domain.memory import Memory, Plane, Status
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Message
from holdfast.ports import Candidate, NewRevision, Reader, Transaction
from holdfast.runtime import indexing
from holdfast.runtime.charging import paid
from holdfast.runtime.perform import Core
from holdfast.runtime.remember import later


@dataclass(frozen=True, slots=True)
class _Indexed:
    candidate: Candidate
    entry: indexing.Entry


async def extracted(core: Core, job: Job) -> Callable[[Transaction], None]:
    """The effect of an extraction job. Done twice, it writes nothing twice: a slot that says the same stays."""
    grant = authorize(SYSTEM, Action.WORK, job.scope)
    messages = await core.store.read(grant, lambda reader: _messages(reader, job.record_ids))
    candidates = await core.extractor.extract(messages, job.scope.subject)
    # Here nobody waits for an answer, so a remote embedder is waited for.
    analyses = await indexing.analyzed(core, [candidate.text for candidate in candidates])
    vectors = await indexing.embedded(core, analyses)
    proposed = [
        _Indexed(candidate, indexing.Entry(analysis, made))
        for candidate, analysis, made in zip(candidates, analyses, vectors.result, strict=True)
    ]
    scope = lasting(job.scope)

    def effect(transaction: Transaction) -> None:
        for proposal in proposed:
            _accept(core, transaction, scope, proposal)

    return await paid(core, grant, vectors.took, effect, job)


def lasting(scope: Scope) -> Scope:
    """What was learned outlives the conversation and the run it was learned in."""
    return Scope(
        space=scope.space,
        app=scope.app,
        project=scope.project,
        agent=scope.agent,
        subject=scope.subject,
        namespace=scope.namespace,
    )


def _messages(reader: Reader, message_ids: tuple[str, ...]) -> list[Message]:
    found = (reader.find(message_id) for message_id in message_ids)
    messages = [entry[1] for entry in found if entry is not None and isinstance(entry[1], Message)]
    return [message for message in messages if _is_ground(message)]


def _is_ground(message: Message) -> bool:
    """Whether it may be learned from: not what was corrected or put away since, nor what is private."""
    return message.superseded_at is None and message.status is Status.ACCEPTED and message.plane is None


def takes_over(candidate: Candidate, old: Memory) -> bool:
    """Whether what is said now replaces what fills its slot. Old news does not, nor does the end of something else."""
    if candidate.former is not None:
        return candidate.former in old.text
    since, until_now = candidate.validity.since, old.validity.since
    return candidate.replaces or since is None or until_now is None or since >= until_now


def _accept(core: Core, transaction: Transaction, scope: Scope, proposal: _Indexed) -> None:
    candidate = proposal.candidate
    # Forgotten or put away since it was read: what rested on it is not learned.
    if len(_messages(transaction, candidate.evidence)) < len(candidate.evidence):
        return
    slot = f"{core.extractor.name}/{candidate.key}"
    old = transaction.in_slot(scope, slot)
    if isinstance(old, Memory) and old.text == candidate.text:
        # Said again: it rests on both, and stays if one of them is forgotten.
        transaction.add_evidence(old.id, candidate.evidence)
        return
    if old is not None and not (isinstance(old, Memory) and takes_over(candidate, old)):
        return
    now = core.clock.now()
    transaction.add_revision(
        NewRevision(
            id=old.id if isinstance(old, Memory) else MemoryId(core.ids.new(ids.MEMORY)),
            scope=old.scope if isinstance(old, Memory) else scope,
            plane=Plane.LONG_TERM,
            text=candidate.text,
            trust=candidate.trust,
            status=Status.ACCEPTED,
            validity=candidate.validity,
            recorded_at=later(now, old) if isinstance(old, Memory) else now,
            source=None,
            author=f"extractor:{core.extractor.name}",
            reason="said anew" if isinstance(old, Memory) else None,
            evidence=candidate.evidence,
            metadata={},
            analysis=proposal.entry.analysis,
            vectors=proposal.entry.vectors,
            supersedes=old.revision if isinstance(old, Memory) else None,
            slot=slot,
        ),
        core.embedder.fingerprint,
        core.analyzer.version,
    )
