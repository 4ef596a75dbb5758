"""The transaction that all SQL stores share. Every change to a partition increments its change number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from holdfast.domain.ids import MessageId
from holdfast.domain.memory import Plane, Status, Trust
from holdfast.domain.operations import Operation
from holdfast.domain.resources import Resource
from holdfast.domain.results import Record
from holdfast.domain.scope import Partition, PartitionKind, Scope
from holdfast.domain.times import to_micros
from holdfast.domain.transcript_turns import PLANES
from holdfast.errors import DuplicateId, NotFound, RevisionConflict
from holdfast.ports import IndexUpdate, NewMessage, NewRevision, NewTurn, StoredMessages, StoredResponse
from holdfast.stores.sql import rows
from holdfast.stores.sql.aliases_and_events import AliasEventWriter
from holdfast.stores.sql.conversations import NEXT_POSITION, NEXT_SEQUENCE, next_position, next_sequence
from holdfast.stores.sql.costs import CostWriter
from holdfast.stores.sql.dialect import NewRows
from holdfast.stores.sql.forget import ForgetWriter
from holdfast.stores.sql.operation_log import record_operation
from holdfast.stores.sql.operation_queries import OperationWriter
from holdfast.stores.sql.turn_rows import encode_words
from holdfast.stores.sql.users import UserWriter

# Columns of every record; then those of a message and of a memory's revision.
_COLUMNS = (
    "partition_id", "change", "kind", "scope_id", "source_key", "recorded_at", "analyzer", "flags", "length",
    "embedder_id", "terms", "id", "revision", "position", "status", "trust", "said_at",
)  # fmt: skip
_MESSAGE_COLUMNS = (
    *_COLUMNS,
    "conversation_id",
    "turn_id",
    "role",
    "external_key",
    "content_key",
    "plane",
    "authority",
)
_MEMORY_COLUMNS = (*_COLUMNS, "plane", "slot_key", "valid_from", "valid_to")
_TEXT_COLUMNS = ("sender", "source", "external_id", "author", "reason", "metadata", "text")
_VECTOR_COLUMNS = ("partition_id", "number", "piece", "embedder_id", "vector")
_ANSWER_COLUMNS = ("partition_id", "key", "digest", "recorded_at", "body")

_NEXT = f"SELECT {NEXT_POSITION}, {NEXT_SEQUENCE} FROM conversations c WHERE c.id = ?"

_AS_BEFORE = (
    "INSERT INTO evidence (memory_number, message_number) SELECT ?, e.message_number FROM evidence e"
    " JOIN records r ON r.number = e.memory_number WHERE r.id = ? AND r.revision = ? ON CONFLICT DO NOTHING"
)

# Identifies a message of a conversation: the column, and the key in it.
_Key = tuple[str, bytes]


class SqlTransaction(ForgetWriter, UserWriter, AliasEventWriter, OperationWriter, CostWriter):
    """Implements `ports.Transaction` on a connection that may write."""

    # --- messages ---

    def add_turn(self, turn: NewTurn, embedder: str, analyzer: int) -> StoredMessages:
        partition = self._partition_id(turn.scope.partition)
        conversation = self._conversation_id(partition, turn.scope)
        if self._is_forgotten(conversation, turn):
            return StoredMessages((None,) * len(turn.messages))
        keys = [_retry_key(message) for message in turn.messages]
        existing = self._there(conversation, [key for key in keys if key is not None])
        ids: list[MessageId | None] = []
        new: dict[int, NewMessage] = {}
        for index, (message, key) in enumerate(zip(turn.messages, keys, strict=True)):
            if key is not None and key in existing:
                ids.append(_match_existing(message, key, existing[key]))
                continue
            if key is not None:
                existing[key] = (message.id, _content_digest(message))
            ids.append(message.id)
            new[index] = message
        if not new:
            return StoredMessages(tuple(ids))
        sequence = self._insert_messages(turn, partition, conversation, list(new.values()), embedder, analyzer)
        return StoredMessages(tuple(ids), frozenset(new), sequence)

    def _there(self, conversation: int, keys: Sequence[_Key]) -> dict[_Key, tuple[MessageId | None, bytes]]:
        """Find these keys in the conversation, with the content that must match; None for a forgotten message."""
        found: dict[_Key, tuple[MessageId | None, bytes]] = {}
        if not keys:
            return found
        for column in ("external_key", "content_key"):
            for condition, named in self._among(f"r.{column}", [key for of, key in keys if of == column]):
                stored = self._db.execute(
                    f"SELECT r.{column}, r.id, r.status, t.sender, t.text"
                    " FROM records r LEFT JOIN texts t ON t.number = r.number"
                    f" WHERE r.conversation_id = ? AND {condition}",
                    [conversation, *named],
                )
                for key, record_id, status, sender, text in stored:
                    # A message whose content was deleted is not restored either.
                    found[column, bytes(key)] = (
                        (None, b"")
                        if status == Status.RAW_DELETED
                        else (MessageId(record_id), rows.content_key(sender, 0, text))
                    )
        for condition, named in self._among("external_key", [key for of, key in keys if of == "external_key"]):
            forgotten = self._db.execute(
                f"SELECT external_key FROM tombstones WHERE conversation_id = ? AND {condition}", [conversation, *named]
            )
            for (key,) in forgotten:
                found.setdefault(("external_key", bytes(key)), (None, b""))
        return found

    def _insert_messages(
        self,
        turn: NewTurn,
        partition: int,
        conversation: int,
        messages: Sequence[NewMessage],
        embedder: str,
        analyzer: int,
    ) -> int:
        """Insert messages and their turn; return the turn's sequence."""
        # Send all before reading any result: over a network they travel together.
        self._touch(partition)
        counted = self._db.execute(_NEXT, (conversation,))
        drawn = self.dialect.reserve_numbers(self._db, len(messages))
        words = encode_words(turn)
        drawn_for_words = None if words is None else self.dialect.reserve_numbers(self._db, 1)
        places = counted.fetchone()
        first, sequence = next_position(places[:2]), next_sequence(places[2:])
        recorded_at = to_micros(turn.recorded_at)
        shared = self._shared(partition, turn.scope, rows.MESSAGE, turn.source, recorded_at, analyzer)
        embedder_id = self._embedder_id(embedder)
        records, texts = [], []
        for position, message in enumerate(messages, first):
            column, key = _retry_key(message) or ("", None)
            said_at = recorded_at if message.said_at is turn.recorded_at else to_micros(message.said_at)
            records.append(
                (
                    *shared, *_index_values(message, embedder_id), message.id, 0, position, Status.ACCEPTED,
                    Trust.STATED, said_at, conversation, turn.id, message.role,
                    key if column == "external_key" else None,
                    key if column == "content_key" else None, _plane_of(message), message.authority,
                )
            )  # fmt: skip
            metadata = rows.metadata_json(message.metadata)
            texts.append((message.sender, turn.source, message.external_id, None, None, metadata, message.text))
        new = NewRows(_MESSAGE_COLUMNS, records), NewRows(_TEXT_COLUMNS, texts)
        numbers = self.dialect.add_records(self._db, drawn, *new)
        self._put_vectors(
            [(partition, number, message.vectors) for number, message in zip(numbers, messages, strict=True)],
            embedder_id,
        )
        positions = range(first, first + len(messages))
        self._put_turn(turn, words, drawn_for_words, conversation, sequence, positions)
        return sequence

    def _shared(
        self, partition: int, scope: Scope, kind: int, source: str | None, recorded_at: int, analyzer: int
    ) -> tuple[Any, ...]:
        """Return the first of `_COLUMNS`, equal for all records that a write adds."""
        scope_id, source_key = self._scope_id(partition, scope), rows.key_of(source)
        return partition, self._change(partition), kind, scope_id, source_key, recorded_at, analyzer

    def _put_vectors(self, entries: Iterable[tuple[int, int, Sequence[bytes]]], embedder_id: int) -> None:
        as_bound = self.dialect.vector
        values = [
            (partition, number, piece, embedder_id, as_bound(vector))
            for partition, number, vectors in entries
            for piece, vector in enumerate(vectors)
        ]
        if values:
            self.dialect.insert(self._db, "vectors", _VECTOR_COLUMNS, values)

    def seal(self, scope: Scope) -> int:
        row = self._conversation(scope)
        if row is None:
            return 0
        number, following, sealed = row
        self._db.execute("UPDATE conversations SET sealed = ? WHERE id = ?", (following, number))
        return following - sealed

    # --- memories ---

    def add_revision(self, revision: NewRevision, embedder: str, analyzer: int) -> int:
        partition = self._partition_id(revision.scope.partition)
        self._touch(partition)
        drawn = self.dialect.reserve_numbers(self._db, 1)
        change = self._change(partition)
        number = 1 if revision.supersedes is None else self._superseded(revision, partition, change)
        recorded_at = to_micros(revision.recorded_at)
        shared = self._shared(partition, revision.scope, rows.MEMORY, revision.source, recorded_at, analyzer)
        embedder_id = self._embedder_id(embedder)
        slot = rows.key_of(revision.slot) or self._slot_of(revision)
        values = _memory_values(revision, shared, embedder_id, number, slot)
        new = NewRows(_MEMORY_COLUMNS, [values]), NewRows(_TEXT_COLUMNS, [_memory_text(revision)])
        (record,) = self.dialect.add_records(self._db, drawn, *new)
        self._put_vectors([(partition, record, revision.vectors)], embedder_id)
        self._link(record, revision.evidence, moved=revision.moved)
        if revision.rests_as_before:
            self._db.execute(_AS_BEFORE, (record, revision.id, revision.supersedes))
        return number

    def add_resource(self, resource: Resource, chunks: Sequence[NewRevision], embedder: str, analyzer: int) -> None:
        partition = self._partition_id(resource.scope.partition)
        self._touch(partition)
        drawn = self.dialect.reserve_numbers(self._db, len(chunks))
        self._put_resource(partition, self._scope_id(partition, resource.scope), resource)
        if not chunks:
            return  # its chunks are added separately, as memories
        recorded_at = to_micros(resource.recorded_at)
        shared = self._shared(partition, resource.scope, rows.MEMORY, resource.uri, recorded_at, analyzer)
        embedder_id = self._embedder_id(embedder)
        values = [_memory_values(chunk, shared, embedder_id, 1, None) for chunk in chunks]
        new = NewRows(_MEMORY_COLUMNS, values), NewRows(_TEXT_COLUMNS, [_memory_text(chunk) for chunk in chunks])
        numbers = self.dialect.add_records(self._db, drawn, *new)
        self._put_vectors(
            [(partition, number, chunk.vectors) for number, chunk in zip(numbers, chunks, strict=True)], embedder_id
        )

    def _slot_of(self, revision: NewRevision) -> bytes | None:
        """Return the slot of the corrected revision, so that later statements replace the correction too."""
        if revision.supersedes is None:
            return None
        row = self._db.execute(
            "SELECT slot_key FROM records WHERE id = ? AND revision = ?", (revision.id, revision.supersedes)
        ).fetchone()
        return row[0] if row else None

    def _superseded(self, revision: NewRevision, partition: int, change: int) -> int:
        """Close the current revision; return the number of the next."""
        updated = self._db.execute(
            "UPDATE records SET superseded_at = ?, change = ?"
            " WHERE id = ? AND revision = ? AND partition_id = ? AND kind = 1 AND superseded_at IS NULL",
            (to_micros(revision.recorded_at), change, revision.id, revision.supersedes, partition),
        )
        if updated.rowcount != 1:
            raise RevisionConflict(
                f"{revision.id} is no longer at revision {revision.supersedes}; read it again and decide anew"
            )
        return (revision.supersedes or 0) + 1

    def supersede(self, message_id: str, at: datetime) -> None:
        reach, values = self._reach(keyed=True)
        row = self._db.execute(
            "SELECT r.number, r.partition_id FROM records r"
            f" WHERE r.id = ? AND r.kind = 0 AND r.superseded_at IS NULL AND {reach}",
            [message_id, *values],
        ).fetchone()
        if row is None:
            raise RevisionConflict(f"{message_id} was superseded meanwhile; read it again and decide anew")
        self._db.execute(
            "UPDATE records SET superseded_at = ?, change = ? WHERE number = ?",
            (to_micros(at), self._change(row[1]), row[0]),
        )

    def _link(self, memory: int, evidence: Sequence[MessageId], *, moved: bool = False) -> None:
        if not evidence:
            return
        within, values = self._within(keyed=True)
        shown = "TRUE" if moved else rows.SHOWN
        numbers = {
            record_id: number
            for condition, named in self._among("r.id", list(dict.fromkeys(evidence)))
            for record_id, number in self._db.execute(
                "SELECT r.id, r.number FROM records r JOIN scopes s ON s.id = r.scope_id"
                f" WHERE {condition} AND r.kind = 0 AND {shown} AND {within}",
                [*named, *values],
            )
        }
        for message_id in evidence:
            if message_id not in numbers and not moved:
                raise NotFound(f"evidence: there is no message {message_id} in this scope")
        self._db.executemany(
            "INSERT INTO evidence (memory_number, message_number) VALUES (?, ?) ON CONFLICT DO NOTHING",
            [(memory, number) for number in numbers.values()],
        )

    def in_slot(self, scope: Scope, slot: str) -> Record | None:
        # Lock first: the slot is read in order to be filled.
        self.enter(scope.partition)
        return super().in_slot(scope, slot)

    def add_evidence(self, memory_id: str, evidence: Sequence[MessageId]) -> None:
        reach, values = self._reach(keyed=True)
        row = self._db.execute(
            f"SELECT r.number, r.partition_id FROM records r WHERE r.id = ? AND r.superseded_at IS NULL AND {reach}",
            [memory_id, *values],
        ).fetchone()
        if row is None:
            raise NotFound(f"there is no memory {memory_id} in this scope")
        self._link(row[0], evidence)
        self._db.execute("UPDATE records SET change = ? WHERE number = ?", (self._change(row[1]), row[0]))

    def keep_answer(self, partition: Partition, key: str, answer: StoredResponse, at: datetime) -> None:
        values = (self._partition_id(partition), key, answer.digest, to_micros(at), answer.body)
        self.dialect.insert(self._db, "answers", _ANSWER_COLUMNS, [values])

    # --- indexes ---

    def index(self, entries: Iterable[IndexUpdate], embedder: str, analyzer: int) -> None:
        embedder_id = self._embedder_id(embedder)
        by_number = {entry.number: entry for entry in entries}
        places = self._places_of(list(by_number))
        changed = [(self._change(partition), embedder_id, number) for number, partition in places.items()]
        # Update the records first: a concurrent forget of one comes before or after all of this.
        self._db.executemany("UPDATE records SET change = ?, embedder_id = ? WHERE number = ?", changed)
        self._db.executemany(
            "UPDATE records SET analyzer = ?, flags = ?, length = ?, terms = ? WHERE number = ?",
            [
                (analyzer, int(made.flags), made.length, made.terms, number)
                for number in places
                if (made := by_number[number].analysis) is not None
            ],
        )
        self._delete_vectors([(partition, number) for number, partition in places.items()])
        self._put_vectors(
            ((partition, number, by_number[number].vectors) for number, partition in places.items()), embedder_id
        )

    def _places_of(self, numbers: Sequence[int]) -> dict[int, int]:
        """Return the partition of each record that still exists."""
        found = self._placed_records(numbers)
        homes = {Partition(space, PartitionKind(kind), owner) for _, _, space, kind, owner in found}
        waited = [self.enter(partition) for partition in sorted(homes)]
        if any(waited):
            found = self._placed_records(numbers)
        return {row[0]: row[1] for row in found}

    def _placed_records(self, numbers: Sequence[int]) -> list[Any]:
        reach, values = self._reach(keyed=True)
        return [
            row
            for condition, named in self._among("r.number", numbers)
            for row in self._db.execute(
                "SELECT r.number, p.id, p.space, p.kind, p.owner FROM records r"
                " JOIN partitions p ON p.id = r.partition_id"
                f" WHERE {condition} AND r.status <> 'raw_deleted' AND {reach}",
                [*named, *values],
            )
        ]

    def mark_stale(self) -> int:
        reach, values = self._reach()
        return self._db.execute(f"UPDATE records AS r SET analyzer = 0 WHERE {reach}", values).rowcount

    def put_fact(self, name: str, value: str) -> None:
        self._db.execute(
            "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (name, value),
        )

    # --- audit ---

    def record(self, operation: Operation) -> None:
        record_operation(self._db, operation, partition=self._known.get(operation.scope.partition))


def _memory_values(
    revision: NewRevision, shared: tuple[Any, ...], embedder_id: int, number: int, slot: bytes | None
) -> tuple[Any, ...]:
    return (
        *shared, *_index_values(revision, embedder_id), revision.id, number, 0, revision.status, revision.trust,
        to_micros(revision.recorded_at), revision.plane, slot, rows.micros(revision.validity.since),
        rows.micros(revision.validity.until),
    )  # fmt: skip


def _memory_text(revision: NewRevision) -> tuple[str | None, ...]:
    metadata = rows.metadata_json(revision.metadata)
    return None, revision.source, None, revision.author, revision.reason, metadata, revision.text


def _index_values(new: NewMessage | NewRevision, embedder_id: int) -> tuple[Any, ...]:
    """Return those of `_COLUMNS` that are derived from the text."""
    made = new.analysis
    return int(made.flags), made.length, embedder_id if new.vectors else None, made.terms


def _plane_of(message: NewMessage) -> Plane | None:
    return None if message.authority is None else PLANES.get(message.authority)


def _match_existing(message: NewMessage, key: _Key, existing: tuple[MessageId | None, bytes]) -> MessageId | None:
    """Return the id of the existing message; `DuplicateId` if its content differs."""
    found, same = existing
    if found is not None and key[0] == "external_key" and same != _content_digest(message):
        raise DuplicateId(
            "id: this conversation already has a message with this id and another text or sender;"
            " give each message an id of its own"
        )
    return found


def _retry_key(message: NewMessage) -> _Key | None:
    """Return the key that makes a message a retry: the caller's id or, if the time was given, the content."""
    if message.external_id is not None:
        key = rows.key_of(message.external_id)
        assert key is not None
        return "external_key", key
    if message.said_at_given:
        return "content_key", rows.content_key(message.sender, to_micros(message.said_at), message.text)
    return None


def _content_digest(message: NewMessage) -> bytes:
    """Digest what must be equal for a message id to be a retry: sender and text."""
    return rows.content_key(message.sender, 0, message.text)
