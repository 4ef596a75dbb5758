"""Taking in what another store gave away: turns, memories, resources and aliases, each once.

What is there already stays as it is; what was forgotten here is not brought back. Texts are indexed anew, by this
store's own embedder and analyzer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from holdfast.domain import ids
from holdfast.domain.archived import (
    Archived,
    ArchivedAlias,
    ArchivedMemory,
    ArchivedMessage,
    ArchivedResource,
    ArchivedTurn,
)
from holdfast.domain.canonical import is_ours, planted, transplanted
from holdfast.domain.governed import ActorAttribution, Authority, TranscriptState
from holdfast.domain.ids import JobId, MemoryId, MessageId, ResourceId, TurnId
from holdfast.domain.jobs import JobKind, NewJob
from holdfast.domain.memory import Plane, Trust
from holdfast.domain.resources import URI_SCHEME, Resource, resource_uri
from holdfast.domain.scope import Scope
from holdfast.domain.surface.exchange import Taken
from holdfast.errors import DuplicateId
from holdfast.ports import KeptAlias, NewMessage, NewRevision, NewTurn, Transaction
from holdfast.runtime import indexing
from holdfast.runtime.perform import Core

# Stands for a text that did not travel until the turn is in the state that it has: then it is gone, like any other.
_NO_TEXT = "-"
_RECORDS_PER_JOB = 500
_TURN_PREFIX = f"{ids.TURN}_"


@dataclass(frozen=True, slots=True)
class Ready:
    """Something to be taken in, with its texts indexed, in the order of its messages or revisions."""

    archived: Archived
    entries: Sequence[indexing.Entry]


async def ready(core: Core, some: Sequence[Archived]) -> list[Ready]:
    """Index their texts, all at once."""
    texts = [_texts(archived) for archived in some]
    made = iter(await indexing.entries(core, [text for each in texts for text in each]))
    return [Ready(archived, [next(made) for _ in each]) for archived, each in zip(some, texts, strict=True)]


def _texts(archived: Archived) -> list[str]:
    if isinstance(archived, ArchivedTurn):
        return [_NO_TEXT if message.text is None else message.text for message in archived.messages]
    return [revision.text for revision in archived.revisions] if isinstance(archived, ArchivedMemory) else []


@dataclass(frozen=True, slots=True)
class Intake:
    """Where things go. `messages_home` and `memories_home` name what ids are made for; None if they are kept.

    `most_trust` is the most that what comes is trusted; `author` writes it, if it does not say who did.
    """

    core: Core
    messages_home: str | None
    memories_home: str | None
    author: str
    most_trust: Trust = Trust.VERIFIED
    keep_author: bool = False

    def take(self, transaction: Transaction, given: Ready) -> Taken:
        archived = given.archived
        if isinstance(archived, ArchivedTurn):
            return self._turn(transaction, archived, given.entries)
        if isinstance(archived, ArchivedMemory):
            return self._memory(transaction, archived, given.entries)
        if isinstance(archived, ArchivedResource):
            return self._resource(transaction, archived)
        return self._alias(transaction, archived)

    # --- turns ---

    def _turn(self, transaction: Transaction, turn: ArchivedTurn, entries: Sequence[indexing.Entry]) -> Taken:
        shown = self._turn_id(turn)
        if transaction.turn(turn.scope.thread, shown.external_id or shown.id) is not None:
            return Taken(known=1)
        wanted = [_placed(message.id, self.messages_home) for message in turn.messages]
        buried = transaction.buried(turn.scope.partition, wanted)
        there = transaction.present(wanted)
        new = [
            self._message(turn, message, message_id, entry)
            for message, message_id, entry in zip(turn.messages, wanted, entries, strict=True)
            if message_id not in buried and message_id not in there
        ]
        left = Taken(known=len(there - buried), forgotten=len(buried))
        if not new:
            return left
        try:
            stored = transaction.add_turn(
                replace(shown, messages=new), self.core.embedder.fingerprint, self.core.analyzer.version
            )
        except DuplicateId:
            # The host's id names another message here, which stays what it is.
            return left + Taken(known=len(new))
        if stored.sequence is None:
            return left + Taken(known=len(new))
        added = [new[index].id for index in sorted(stored.new)]
        self._finish_turn(transaction, turn, stored.sequence, set(added))
        self._index_later(transaction, turn.scope, added)
        return left + Taken(turns=1, messages=len(added), known=len(new) - len(added))

    def _turn_id(self, turn: ArchivedTurn) -> NewTurn:
        """The turn without its messages: by an id of ours, or by the host's and one that is made of it."""
        ours = is_ours(turn.id) and turn.id.startswith(_TURN_PREFIX)
        home = self.messages_home or str(turn.scope.thread.given())
        made = _placed(turn.id, self.messages_home) if ours else planted(ids.TURN, turn.committed_at, home, turn.id)
        return NewTurn(
            id=TurnId(made),
            scope=turn.scope,
            source=turn.source,
            recorded_at=turn.committed_at,
            messages=(),
            external_id=None if ours else turn.id,
            delivery=turn.delivery,
            attribution=None if turn.attribution == ActorAttribution() else turn.attribution,
            host_refs=turn.host_refs,
        )

    def _message(
        self, turn: ArchivedTurn, message: ArchivedMessage, message_id: str, entry: indexing.Entry
    ) -> NewMessage:
        said_at = message.said_at or turn.committed_at
        return NewMessage(
            id=MessageId(message_id),
            text=_NO_TEXT if message.text is None else message.text,
            sender=message.sender,
            role=message.role,
            said_at=said_at,
            # Of what was said when it was recorded, nobody gave the time.
            said_at_given=said_at != turn.committed_at and message.text is not None,
            external_id=message.external_id,
            metadata=message.metadata,
            analysis=entry.analysis,
            vectors=entry.vectors,
            authority=None if message.authority is Authority.LEGACY_TRANSCRIPT else message.authority,
        )

    def _finish_turn(self, transaction: Transaction, turn: ArchivedTurn, sequence: int, added: set[MessageId]) -> None:
        for message in turn.messages:
            message_id = _placed(message.id, self.messages_home)
            if message.superseded_at is not None and message_id in added:
                transaction.supersede(message_id, message.superseded_at)
        if turn.state is not TranscriptState.ACTIVE:
            transaction.set_state(turn.scope.thread, [sequence], turn.state, self.core.clock.now())

    # --- memories ---

    def _memory(self, transaction: Transaction, memory: ArchivedMemory, entries: Sequence[indexing.Entry]) -> Taken:
        memory_id = MemoryId(_placed(memory.id, self.memories_home))
        scope = memory.revisions[0].scope
        if transaction.buried(scope.partition, [memory_id]):
            return Taken(forgotten=1)
        if transaction.present([memory_id]):
            return Taken(known=1)
        fingerprint, version = self.core.embedder.fingerprint, self.core.analyzer.version
        number = None
        for revision in self._revisions(memory, memory_id, entries):
            number = transaction.add_revision(replace(revision, supersedes=number), fingerprint, version)
        self._index_later(transaction, scope, [memory_id])
        return Taken(memories=1)

    def _revisions(
        self, memory: ArchivedMemory, memory_id: MemoryId, entries: Sequence[indexing.Entry]
    ) -> list[NewRevision]:
        return [
            NewRevision(
                id=memory_id,
                scope=revision.scope,
                plane=revision.plane,
                text=revision.text,
                trust=min(revision.trust, self.most_trust),
                status=revision.status,
                validity=revision.validity,
                recorded_at=revision.recorded_at,
                source=self._source(revision.source, revision.plane, revision.scope),
                author=(revision.author if self.keep_author else None) or self.author,
                reason=revision.reason,
                evidence=tuple(MessageId(_placed(each, self.messages_home)) for each in revision.evidence),
                moved=True,
                metadata=revision.metadata,
                analysis=entry.analysis,
                vectors=entry.vectors,
            )
            for revision, entry in zip(memory.revisions, entries, strict=True)
        ]

    def _source(self, source: str | None, plane: Plane, scope: Scope) -> str | None:
        """A chunk's source is its resource, by the id that this has here."""
        if source is None or plane is not Plane.RESOURCE or not source.startswith(URI_SCHEME):
            return source
        resource_id = source.rpartition(":")[2]
        return resource_uri(scope, _placed(resource_id, self.memories_home)) if is_ours(resource_id) else source

    # --- the rest ---

    def _resource(self, transaction: Transaction, given: ArchivedResource) -> Taken:
        resource_id = ResourceId(_placed(given.id, self.memories_home))
        if transaction.resource(resource_id) is not None:
            return Taken(known=1)
        made = Resource(
            id=resource_id,
            uri=resource_uri(given.scope, resource_id),
            name=given.name,
            media_type=given.media_type,
            sha256=given.sha256,
            bytes=given.bytes,
            chunks=given.chunks,
            external_uri=given.external_uri,
            scope=given.scope,
            recorded_at=given.recorded_at,
        )
        # Its chunks came before it. None is there: it was forgotten here, and leaves no tombstone of its own.
        if given.chunks and not transaction.chunks_of(made):
            return Taken(forgotten=1)
        transaction.add_resource(made, (), self.core.embedder.fingerprint, self.core.analyzer.version)
        return Taken(resources=1)

    def _alias(self, transaction: Transaction, given: ArchivedAlias) -> Taken:
        kept = KeptAlias(given.thread, bytes.fromhex(given.key), given.trusted, given.recorded_at)
        return Taken(aliases=1) if transaction.keep_alias(kept) else Taken(known=1)

    def _index_later(self, transaction: Transaction, scope: Scope, record_ids: Sequence[str]) -> None:
        """Vectors that a remote embedder owes are made by a job."""
        if self.core.embedder.local:
            return
        for start in range(0, len(record_ids), _RECORDS_PER_JOB):
            job = NewJob(JobKind.INDEX, scope, tuple(record_ids[start : start + _RECORDS_PER_JOB]))
            transaction.enqueue(JobId(self.core.ids.new(ids.JOB)), job, self.core.clock.now())


def _placed(record_id: str, home: str | None) -> str:
    return record_id if home is None else transplanted(record_id, home)


Tell = Callable[[int, int], None]
