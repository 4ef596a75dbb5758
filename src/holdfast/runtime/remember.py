"""`remember` and `correct`: write explicit memories and supersede them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, ClassVar

from holdfast.domain import ids
from holdfast.domain.access import Action, Actor, ActorKind, Grant
from holdfast.domain.arguments import GROUP, IdempotencyKey, MetadataArgument, many, text_rule
from holdfast.domain.authorship import is_own_statement, states
from holdfast.domain.checks import MAX_TEXT_CHARS, check_count, check_metadata, checked_flag, checked_text
from holdfast.domain.ids import ID_RULE, MemoryId, MessageId
from holdfast.domain.memory import ALWAYS, MemoryRecord, Plane, Status, Trust, Validity
from holdfast.domain.reconciliation import normalize_statement
from holdfast.domain.results import RememberResult
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Message
from holdfast.errors import NotFound, RevisionConflict
from holdfast.ports import NewRevision, Reader, Transaction
from holdfast.runtime import indexing
from holdfast.runtime.add import NewSource, check_source
from holdfast.runtime.gate import Core, Write
from holdfast.runtime.idempotency import digest_of
from holdfast.runtime.job_queue import enqueue_indexing
from holdfast.runtime.record_writes import add_revision
from holdfast.runtime.revisions import (
    RESTATED,
    ExpectedRevision,
    repeat_revision,
    require_revision,
    time_after,
    validate_expected_revision,
)

MAX_REASON_CHARS = 1_000
Text = Annotated[str, text_rule(MAX_TEXT_CHARS), "A statement that can be understood on its own."]
MAX_EVIDENCE = 1_000
EvidenceIds = Annotated[
    tuple[Annotated[MessageId, ID_RULE], ...],
    many(MAX_EVIDENCE, noun="ID"),
    "The ids of the messages that it comes from.",
]


@dataclass(frozen=True, slots=True)
class PreparedText:
    """An indexed text with its author and time."""

    core: Core
    entry: indexing.IndexedText
    now: datetime
    author: str
    trust: Trust


async def prepare_text(core: Core, grant: Grant, text: str) -> PreparedText:
    (only,) = await prepare_texts(core, grant, [text])
    return only


async def prepare_texts(core: Core, grant: Grant, texts: Sequence[str]) -> list[PreparedText]:
    entries = await indexing.make_entries(core, texts)
    trust, now = trust_of(grant.actor), core.clock.now()
    return [PreparedText(core, entry, now, str(grant.actor), trust) for entry in entries]


def trust_of(actor: Actor) -> Trust:
    """Return the trust in what this actor states."""
    return Trust.STATED if actor.kind in (ActorKind.OPERATOR, ActorKind.USER) else Trust.MODEST


class _IndexedWrite(Write[PreparedText, RememberResult]):
    """Common base of both verbs: with a remote embedder, a job makes the vectors."""

    __slots__ = ()

    def _write_revision(
        self, transaction: Transaction, prepared: PreparedText, revision: NewRevision
    ) -> RememberResult:
        core = prepared.core
        add_revision(transaction, core, revision)
        if not core.embedder.local:
            enqueue_indexing(transaction, core, revision.scope, (revision.id,))
        return RememberResult(current_memory(transaction, revision.id))

    def has_work(self, core: Core, result: RememberResult) -> bool:
        return not core.embedder.local

    def record_count(self, result: RememberResult) -> int:
        return 0 if result.replayed else 1


@dataclass(frozen=True, slots=True)
class Remember(_IndexedWrite):
    """Store a memory. The same statement again is a revision of the first, with the evidence of both.

    It is the same if the words are, but for case, spacing and the full stop, and if scope, plane, source, trust,
    validity, metadata and quarantine are. A statement with evidence and one without stay apart: the first goes when
    its evidence is forgotten.
    """

    action: ClassVar[Action] = Action.REMEMBER
    scope: Scope
    text: Text
    plane: Annotated[Plane, "The plane that the memory belongs to."] = Plane.LONG_TERM
    evidence: EvidenceIds = ()
    validity: Annotated[Validity, GROUP] = ALWAYS
    source: NewSource | None = None
    metadata: Annotated[MetadataArgument, "Texts, numbers, True, False or None by name, of your own."] = field(
        default_factory=dict
    )
    quarantined: Annotated[bool, "Store it without showing it to searches."] = False
    idempotency_key: IdempotencyKey | None = None

    def __post_init__(self) -> None:
        checked_text(self.text, "text")
        check_source(self.source)
        check_metadata(self.metadata)
        check_evidence(self.evidence)
        checked_flag(self.quarantined, "quarantined")

    async def prepare(self, core: Core, grant: Grant) -> PreparedText:
        return await prepare_text(core, grant, self.text)

    def apply(self, transaction: Transaction, prepared: PreparedText) -> RememberResult:
        memory_id = MemoryId(prepared.core.ids.new(ids.MEMORY))
        revision = self.revision(transaction, memory_id, prepared)
        slot = _statement_slot(revision)
        known = transaction.records.in_slot(self.scope, slot)
        if isinstance(known, MemoryRecord) and _states_the_same(revision, known):
            revision = _restate(revision, known)
        else:
            revision = replace(revision, slot=slot)
        return self._write_revision(transaction, prepared, revision)

    def revision(self, reader: Reader, memory_id: MemoryId, prepared: PreparedText) -> NewRevision:
        return NewRevision(
            id=memory_id,
            scope=self.scope,
            plane=self.plane,
            text=self.text,
            trust=self._trust(reader, prepared),
            status=Status.QUARANTINED if self.quarantined else Status.ACCEPTED,
            validity=self.validity,
            recorded_at=prepared.now,
            source=self.source,
            author=prepared.author,
            reason=None,
            evidence=self.evidence,
            metadata=self.metadata,
            analysis=prepared.entry.analysis,
            vectors=prepared.entry.vectors,
        )

    def _trust(self, reader: Reader, prepared: PreparedText) -> Trust:
        """Return the trust of the author's own statement; text from elsewhere has a low one.

        What an agent writes about somebody may come from anywhere, unless that person's own words say it.
        """
        if self.source is not None:
            return Trust.LOW
        if prepared.trust >= Trust.STATED or self.scope.subject is None:
            return prepared.trust
        cited = (reader.records.find(message_id) for message_id in self.evidence)
        own = [found[1] for found in cited if found and isinstance(found[1], Message) and is_own_statement(found[1])]
        return prepared.trust if states(own, self.text) else Trust.LOW

    def digest(self) -> str:
        # Keep this form: older stores hold answers under it.
        metadata = dict(self.metadata)
        parts = (self.text, self.plane, self.evidence, self.validity, self.source, metadata, self.quarantined)
        return digest_of(self.scope.given(), *parts)

    def replay_state(self, result: RememberResult) -> dict[str, Any]:
        return {"memory_id": result.memory.id}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> RememberResult:
        """Return the memory as it is now."""
        return RememberResult(_load_revisions(transaction, kept["memory_id"])[-1], replayed=True)


@dataclass(frozen=True, slots=True)
class Correct(_IndexedWrite):
    """Replace the text of a memory or message. The old revision stays readable with `as_of` and `history`.

    Correcting a message creates a memory that replaces it in search. The message stays readable by its id and in
    the history of both. Forgetting that memory also forgets the message.
    """

    action: ClassVar[Action] = Action.CORRECT
    scope: Scope
    memory_id: ids.Id
    text: Text
    reason: Annotated[str | None, text_rule(MAX_REASON_CHARS), "Who said so, or what changed."] = None
    expected_revision: ExpectedRevision | None = None
    validity: Annotated[Validity | None, GROUP] = None
    evidence: EvidenceIds | None = None
    idempotency_key: IdempotencyKey | None = None

    def __post_init__(self) -> None:
        checked_text(self.text, "text")
        if self.reason is not None:
            checked_text(self.reason, "reason", max_chars=MAX_REASON_CHARS)
        validate_expected_revision(self.expected_revision)
        check_evidence(self.evidence or ())
        ids.checked_id(self.memory_id, "memory_id")

    async def prepare(self, core: Core, grant: Grant) -> PreparedText:
        return await prepare_text(core, grant, self.text)

    def apply(self, transaction: Transaction, prepared: PreparedText) -> RememberResult:
        found = transaction.records.find(self.memory_id)
        if found is not None and isinstance(found[1], Message):
            return self._supersede_message(transaction, prepared, found[1])
        old = current_memory(transaction, self.memory_id)
        require_revision(old, self.expected_revision)
        return self._write_revision(
            transaction,
            prepared,
            NewRevision(
                id=old.id,
                scope=old.scope,
                plane=old.plane,
                text=self.text,
                trust=prepared.trust,
                status=old.status,
                validity=self.validity or old.validity,
                recorded_at=time_after(prepared.now, old),
                source=old.source,
                author=prepared.author,
                reason=self.reason,
                evidence=self.evidence or (),
                # Keep all evidence, also masked or deleted messages that the author of a correction cannot see.
                rests_as_before=self.evidence is None,
                metadata=old.metadata,
                analysis=prepared.entry.analysis,
                vectors=prepared.entry.vectors,
                supersedes=old.revision,
            ),
        )

    def _supersede_message(self, transaction: Transaction, prepared: PreparedText, message: Message) -> RememberResult:
        require_revision(message, self.expected_revision)
        if message.superseded_at is not None:
            raise RevisionConflict(f"{message.id} was already corrected; correct the memory that replaced it")
        revision = NewRevision(
            id=MemoryId(prepared.core.ids.new(ids.MEMORY)),
            scope=message.scope,
            # A correction of a private message stays on its private plane.
            plane=message.plane or Plane.LONG_TERM,
            text=self.text,
            trust=prepared.trust,
            status=Status.ACCEPTED,
            validity=self.validity or ALWAYS,
            recorded_at=time_after(prepared.now, message),
            source=None,
            author=prepared.author,
            reason=self.reason,
            evidence=(message.id, *(self.evidence or ())),
            # The message's metadata is not copied: it must disappear when the message is forgotten.
            metadata={},
            analysis=prepared.entry.analysis,
            vectors=prepared.entry.vectors,
        )
        transaction.records.supersede(message.id, revision.recorded_at)
        return self._write_revision(transaction, prepared, revision)

    def replay_state(self, result: RememberResult) -> dict[str, Any]:
        return {"memory_id": result.memory.id, "revision": result.memory.revision}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> RememberResult:
        """Return the revision the first call made, if it still exists."""
        return find_replayed_revision(transaction, kept)


# --- the same statement again -----------------------------------------------------------------------------------------


def _conditions_of(statement: NewRevision | MemoryRecord) -> tuple[object, ...]:
    """Return what must be equal in two statements for the second to be the first one again."""
    validity = statement.validity
    return (
        normalize_statement(statement.text),
        statement.plane.value,
        statement.source,
        statement.trust.level,
        statement.status.value,
        validity.since and validity.since.isoformat(),
        validity.until and validity.until.isoformat(),
        sorted(statement.metadata.items()),
        bool(statement.evidence),
    )


def _statement_slot(revision: NewRevision) -> str:
    # The store keeps a digest of it.
    return f"stated/{_conditions_of(revision)!r}"


def _states_the_same(revision: NewRevision, known: MemoryRecord) -> bool:
    """True if the memory in the slot still says this, and has room for evidence; it may have been corrected."""
    has_room = len(known.evidence) + len(revision.evidence) <= MAX_EVIDENCE
    return has_room and _conditions_of(revision) == _conditions_of(known)


def _restate(revision: NewRevision, known: MemoryRecord) -> NewRevision:
    again = repeat_revision(known, revision.recorded_at, revision.author, RESTATED)
    return replace(again, evidence=revision.evidence)


def check_evidence(evidence: tuple[MessageId, ...]) -> None:
    check_count(evidence, "evidence", 0, MAX_EVIDENCE)
    for message_id in evidence:
        ids.checked_id(message_id, "evidence")


def current_memory(transaction: Transaction, memory_id: str) -> MemoryRecord:
    found = transaction.records.find(memory_id)
    if found is None or not isinstance(found[1], MemoryRecord):
        raise NotFound(f"there is no memory {memory_id!r:.80} in this scope")
    return found[1]


def find_replayed_revision(transaction: Transaction, kept: dict[str, Any]) -> RememberResult:
    for memory in _load_revisions(transaction, kept["memory_id"]):
        if memory.revision == kept["revision"]:
            return RememberResult(memory, replayed=True)
    raise NotFound("the revision that this idempotency_key made has been forgotten")


def _load_revisions(transaction: Transaction, memory_id: str) -> list[MemoryRecord]:
    """Load all revisions of the memory that an earlier call made."""
    found = [memory for memory in transaction.records.revisions(memory_id) if isinstance(memory, MemoryRecord)]
    if not found:
        raise NotFound("the memory that this idempotency_key made has been forgotten")
    return found
