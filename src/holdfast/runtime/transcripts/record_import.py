"""Import archived records of another store: turns, memories, resources and aliases, each once.

Existing records are not changed; records forgotten here are not brought back. Texts are indexed again, with this
store's own embedder and analyzer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.domain import ids
from holdfast.domain.archive_format import (
    Archived,
    ArchivedAlias,
    ArchivedMemory,
    ArchivedMessage,
    ArchivedResource,
    ArchivedTurn,
)
from holdfast.domain.canonical import derive_id, is_holdfast_id, transfer_id
from holdfast.domain.field_copies import copy_fields
from holdfast.domain.ids import MemoryId, MessageId, ResourceId, TurnId
from holdfast.domain.memory import Plane, Trust
from holdfast.domain.resources import URI_SCHEME, Resource, resource_uri
from holdfast.domain.runtime_api.exchange import Taken
from holdfast.domain.runtime_skills import SkillState
from holdfast.domain.scope import Scope
from holdfast.domain.transcript_turns import ActorAttribution, Authority, TranscriptState
from holdfast.errors import DuplicateId
from holdfast.ports import NewMessage, NewRevision, NewTurn, StoredAlias, Transaction
from holdfast.runtime import indexing
from holdfast.runtime.gate import Core
from holdfast.runtime.job_queue import enqueue_indexing
from holdfast.runtime.record_writes import add_history, add_resource, add_turn
from holdfast.runtime.skills.stored_skill import restore_skill

# Placeholder for a text that was not exported, until the turn gets its archived state and the text is removed.
_NO_TEXT = "-"
_TURN_PREFIX = f"{ids.TURN}_"


@dataclass(frozen=True, slots=True)
class IndexedRecord:
    """A record to import, with its indexed texts in the order of its messages or revisions."""

    archived: Archived
    entries: Sequence[indexing.IndexedText]


async def index_records(core: Core, records: Sequence[Archived]) -> list[IndexedRecord]:
    """Index the texts of all records in one batch."""
    texts = [_texts(archived) for archived in records]
    made = iter(await indexing.make_entries(core, [text for each in texts for text in each]))
    return [IndexedRecord(archived, [next(made) for _ in each]) for archived, each in zip(records, texts, strict=True)]


def _texts(archived: Archived) -> list[str]:
    if isinstance(archived, ArchivedTurn):
        return [_NO_TEXT if message.text is None else message.text for message in archived.messages]
    return [revision.text for revision in archived.revisions] if isinstance(archived, ArchivedMemory) else []


@dataclass(frozen=True, slots=True)
class RecordImporter:
    """The target of an import. New ids are derived from `messages_home` and `memories_home`; None keeps the ids.

    `most_trust` caps the trust of imported memories; `author` is used where a memory names none.
    """

    core: Core
    messages_home: str | None
    memories_home: str | None
    author: str
    most_trust: Trust = Trust.VERIFIED
    keep_author: bool = False

    def import_record(self, transaction: Transaction, record: IndexedRecord) -> Taken:
        archived = record.archived
        if isinstance(archived, ArchivedTurn):
            return self._turn(transaction, archived, record.entries)
        if isinstance(archived, ArchivedMemory):
            return self._memory(transaction, archived, record.entries)
        if isinstance(archived, ArchivedResource):
            return self._resource(transaction, archived)
        return self._alias(transaction, archived)

    # --- turns ---

    def _turn(self, transaction: Transaction, turn: ArchivedTurn, entries: Sequence[indexing.IndexedText]) -> Taken:
        new_turn = self._new_turn(turn)
        if transaction.transcripts.turn(turn.scope.thread, new_turn.external_id or new_turn.id) is not None:
            return Taken(known=1)
        message_ids = [_target_id(message.id, self.messages_home) for message in turn.messages]
        buried = transaction.records.tombstones(turn.scope.partition, message_ids)
        there = transaction.records.existing_ids(message_ids)
        new = [
            self._message(turn, message, message_id, entry)
            for message, message_id, entry in zip(turn.messages, message_ids, entries, strict=True)
            if message_id not in buried and message_id not in there
        ]
        skipped = Taken(known=len(there - buried), forgotten=len(buried))
        if not new:
            return skipped
        try:
            stored = add_turn(transaction, self.core, replace(new_turn, messages=new))
        except DuplicateId:
            # The host's id names another message here, which is not changed.
            return skipped + Taken(known=len(new))
        if stored.sequence is None:
            return skipped + Taken(known=len(new))
        added = [new[index].id for index in sorted(stored.new)]
        self._finish_turn(transaction, turn, stored.sequence, set(added))
        self._queue_indexing(transaction, turn.scope, added)
        return skipped + Taken(turns=1, messages=len(added), known=len(new) - len(added))

    def _new_turn(self, turn: ArchivedTurn) -> NewTurn:
        """Build the turn without its messages: with our own id, or with the host's id and one derived from it."""
        ours = is_holdfast_id(turn.id) and turn.id.startswith(_TURN_PREFIX)
        home = self.messages_home or str(turn.scope.thread.given())
        turn_id = (
            _target_id(turn.id, self.messages_home) if ours else derive_id(ids.TURN, turn.committed_at, home, turn.id)
        )
        return NewTurn(
            id=TurnId(turn_id),
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
        self, turn: ArchivedTurn, message: ArchivedMessage, message_id: str, entry: indexing.IndexedText
    ) -> NewMessage:
        said_at = message.said_at or turn.committed_at
        return NewMessage(
            id=MessageId(message_id),
            text=_NO_TEXT if message.text is None else message.text,
            sender=message.sender,
            role=message.role,
            said_at=said_at,
            # A time equal to the commit's was not given by the host.
            said_at_given=said_at != turn.committed_at and message.text is not None,
            external_id=message.external_id,
            metadata=message.metadata,
            analysis=entry.analysis,
            vectors=entry.vectors,
            authority=None if message.authority is Authority.LEGACY_TRANSCRIPT else message.authority,
        )

    def _finish_turn(self, transaction: Transaction, turn: ArchivedTurn, sequence: int, added: set[MessageId]) -> None:
        for message in turn.messages:
            message_id = _target_id(message.id, self.messages_home)
            if message.superseded_at is not None and message_id in added:
                transaction.records.supersede(message_id, message.superseded_at)
        if turn.state is not TranscriptState.ACTIVE:
            transaction.transcripts.set_state(turn.scope.thread, [sequence], turn.state, self.core.clock.now())

    # --- memories ---

    def _memory(
        self, transaction: Transaction, memory: ArchivedMemory, entries: Sequence[indexing.IndexedText]
    ) -> Taken:
        memory_id = MemoryId(_target_id(memory.id, self.memories_home))
        scope = memory.revisions[0].scope
        if transaction.records.tombstones(scope.partition, [memory_id]):
            return Taken(forgotten=1)
        if transaction.records.existing_ids([memory_id]):
            return Taken(known=1)
        add_history(transaction, self.core, self._revisions(memory, memory_id, entries))
        if memory.skill is not None:
            restore_skill(transaction, memory_id, copy_fields(SkillState, memory.skill), self.core.clock.now())
        self._queue_indexing(transaction, scope, [memory_id])
        return Taken(memories=1)

    def _revisions(
        self, memory: ArchivedMemory, memory_id: MemoryId, entries: Sequence[indexing.IndexedText]
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
                evidence=tuple(MessageId(_target_id(each, self.messages_home)) for each in revision.evidence),
                moved=True,
                by_runtime=True,
                metadata=revision.metadata,
                analysis=entry.analysis,
                vectors=entry.vectors,
                contradicts=tuple(MemoryId(_target_id(each, self.memories_home)) for each in revision.contradicts),
            )
            for revision, entry in zip(memory.revisions, entries, strict=True)
        ]

    def _source(self, source: str | None, plane: Plane, scope: Scope) -> str | None:
        """Map a chunk's source to the id that its resource has here."""
        if source is None or plane is not Plane.RESOURCE or not source.startswith(URI_SCHEME):
            return source
        resource_id = source.rpartition(":")[2]
        return (
            resource_uri(scope, _target_id(resource_id, self.memories_home)) if is_holdfast_id(resource_id) else source
        )

    # --- the rest ---

    def _resource(self, transaction: Transaction, archived: ArchivedResource) -> Taken:
        resource_id = ResourceId(_target_id(archived.id, self.memories_home))
        if transaction.resources.find(resource_id) is not None:
            return Taken(known=1)
        resource = copy_fields(Resource, archived, id=resource_id, uri=resource_uri(archived.scope, resource_id))
        # Chunks are imported before their resource. If none exists, it was forgotten here; resources have no tombstone.
        if archived.chunks and not transaction.resources.chunks(resource):
            return Taken(forgotten=1)
        add_resource(transaction, self.core, resource, ())
        return Taken(resources=1)

    def _alias(self, transaction: Transaction, archived: ArchivedAlias) -> Taken:
        alias = StoredAlias(archived.thread, bytes.fromhex(archived.key), archived.trusted, archived.recorded_at)
        return Taken(aliases=1) if transaction.aliases.import_alias(alias) else Taken(known=1)

    def _queue_indexing(self, transaction: Transaction, scope: Scope, record_ids: Sequence[str]) -> None:
        """Queue jobs that make the vectors, if the embedder is remote."""
        if not self.core.embedder.local:
            enqueue_indexing(transaction, self.core, scope, record_ids)


def _target_id(record_id: str, home: str | None) -> str:
    return record_id if home is None else transfer_id(record_id, home)
