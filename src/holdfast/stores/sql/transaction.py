"""Writing: all of it commits, or nothing. Whatever changes a partition moves its change number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from holdfast.domain.ids import MessageId
from holdfast.domain.memory import Status, Trust
from holdfast.domain.operations import Operation
from holdfast.domain.results import Record
from holdfast.domain.scope import Partition, PartitionKind, Scope
from holdfast.domain.times import to_micros
from holdfast.errors import DuplicateId, NotFound, RevisionConflict
from holdfast.ports import Answer, Indexed, NewMessage, NewRevision, NewTurn, StoredMessages
from holdfast.stores.sql import rows
from holdfast.stores.sql.audit import record_operation
from holdfast.stores.sql.burial import Burial
from holdfast.stores.sql.users import UserWriter

# What a record is unless it says otherwise; the columns of every insert.
_BLANK: dict[str, Any] = dict.fromkeys(
    (
        "conversation_id", "turn_id", "role", "external_key", "content_key", "source_key", "slot_key", "plane",
        "valid_from", "valid_to",
    )
) | {"position": 0, "revision": 0}  # fmt: skip
_COLUMNS = (
    *_BLANK, "id", "partition_id", "change", "kind", "scope_id", "status", "trust", "said_at", "recorded_at",
    "analyzer", "flags", "length", "embedder_id", "terms",
)  # fmt: skip
_TEXT_COLUMNS = ("number", "sender", "source", "external_id", "author", "reason", "metadata", "text")
_VECTOR_COLUMNS = ("partition_id", "number", "piece", "embedder_id", "vector")
_ANSWER_COLUMNS = ("partition_id", "key", "digest", "recorded_at", "body")

# By which a message of a conversation is known: the column, and the key in it.
_Key = tuple[str, bytes]
_Entry = tuple[dict[str, Any], tuple[str | None, ...], NewMessage | NewRevision]


class SqlTransaction(Burial, UserWriter):
    """Implements `ports.Transaction` on a connection that may write."""

    # --- messages ---

    def add_turn(self, turn: NewTurn, embedder: str, analyzer: int) -> StoredMessages:
        partition = self._partition_id(turn.scope.partition)
        conversation = self._conversation_id(partition, turn.scope)
        keys = [_key_of(message) for message in turn.messages]
        there = self._there(conversation, [key for key in keys if key is not None])
        ids: list[MessageId | None] = []
        new: dict[int, NewMessage] = {}
        for index, (message, key) in enumerate(zip(turn.messages, keys, strict=True)):
            if key is not None and key in there:
                ids.append(_same_message(message, key, there[key]))
                continue
            if key is not None:
                there[key] = (message.id, _same(message))
            ids.append(message.id)
            new[index] = message
        if new:
            self._insert_messages(turn, partition, conversation, list(new.values()), embedder, analyzer)
        return StoredMessages(tuple(ids), frozenset(new))

    def _there(self, conversation: int, keys: Sequence[_Key]) -> dict[_Key, tuple[MessageId | None, bytes]]:
        """Which of these the conversation holds already, with what must be equal; None for one that was forgotten."""
        found: dict[_Key, tuple[MessageId | None, bytes]] = {}
        if not keys:
            return found
        for column in ("external_key", "content_key"):
            for condition, named in self._among(f"r.{column}", [key for of, key in keys if of == column]):
                stored = self._db.execute(
                    f"SELECT r.{column}, r.id, t.sender, t.text FROM records r JOIN texts t ON t.number = r.number"
                    f" WHERE r.conversation_id = ? AND {condition}",
                    [conversation, *named],
                )
                for key, record_id, sender, text in stored:
                    found[column, bytes(key)] = (MessageId(record_id), rows.content_key(sender, 0, text))
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
    ) -> None:
        # All asked before any is looked at: on a network they travel together.
        self._touch(partition)
        taken = self._db.execute(
            "UPDATE conversations SET next_position = next_position + ? WHERE id = ? RETURNING next_position - ?",
            (len(messages), conversation, len(messages)),
        )
        drawn = self.dialect.draw(self._db, len(messages))
        (position,) = taken.fetchone()
        shared = {
            "partition_id": partition,
            "change": self._change(partition),
            "kind": rows.MESSAGE,
            "scope_id": self._scope_id(partition, turn.scope),
            "conversation_id": conversation,
            "turn_id": turn.id,
            "status": Status.ACCEPTED,
            "trust": Trust.STATED,
            "source_key": rows.key_of(turn.source),
            "recorded_at": to_micros(turn.recorded_at),
        }
        entries: list[_Entry] = []
        for offset, message in enumerate(messages):
            column, key = _key_of(message) or ("content_key", None)
            own = {
                "id": message.id,
                "position": position + offset,
                "role": message.role,
                "said_at": to_micros(message.said_at),
                column: key,
            }
            said = (message.sender, turn.source, message.external_id, None, None)
            entries.append((shared | own, said, message))
        self._insert(entries, drawn, self._embedder_id(embedder), analyzer)

    def _insert(self, entries: Sequence[_Entry], drawn: Any, embedder_id: int, analyzer: int) -> list[int]:
        """Records with their texts and vectors; their numbers."""
        made = [
            _BLANK
            | values
            | {
                "analyzer": analyzer,
                "flags": int(new.analysis.flags),
                "length": new.analysis.length,
                "terms": new.analysis.terms,
                "embedder_id": embedder_id if new.vectors else None,
            }
            for values, _, new in entries
        ]
        numbers = self.dialect.add_records(
            self._db, drawn, _COLUMNS, [[values[column] for column in _COLUMNS] for values in made]
        )
        self.dialect.insert(
            self._db,
            "texts",
            _TEXT_COLUMNS,
            [
                (number, *said, rows.metadata_json(new.metadata), new.text)
                for number, (_, said, new) in zip(numbers, entries, strict=True)
            ],
        )
        self._put_vectors(
            [
                (values["partition_id"], number, new.vectors)
                for number, (values, _, new) in zip(numbers, entries, strict=True)
            ],
            embedder_id,
        )
        return numbers

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
        self._db.execute("UPDATE conversations SET sealed = next_position WHERE id = ?", (row[0],))
        return row[1] - row[2]

    # --- memories ---

    def add_revision(self, revision: NewRevision, embedder: str, analyzer: int) -> int:
        partition = self._partition_id(revision.scope.partition)
        self._touch(partition)
        drawn = self.dialect.draw(self._db, 1)
        change = self._change(partition)
        number = 1 if revision.supersedes is None else self._superseded(revision, partition, change)
        recorded_at = to_micros(revision.recorded_at)
        values = {
            "id": revision.id,
            "revision": number,
            "partition_id": partition,
            "change": change,
            "kind": rows.MEMORY,
            "scope_id": self._scope_id(partition, revision.scope),
            "plane": revision.plane,
            "slot_key": rows.key_of(revision.slot) or self._slot_of(revision),
            "status": revision.status,
            "trust": revision.trust,
            "source_key": rows.key_of(revision.source),
            "said_at": recorded_at,
            "recorded_at": recorded_at,
            "valid_from": rows.micros(revision.validity.since),
            "valid_to": rows.micros(revision.validity.until),
        }
        said = (None, revision.source, None, revision.author, revision.reason)
        (record,) = self._insert([(values, said, revision)], drawn, self._embedder_id(embedder), analyzer)
        self._link(record, revision.evidence)
        return number

    def _slot_of(self, revision: NewRevision) -> bytes | None:
        """A correction fills the slot of what it corrects, so that what is said later replaces it too."""
        if revision.supersedes is None:
            return None
        row = self._db.execute(
            "SELECT slot_key FROM records WHERE id = ? AND revision = ?", (revision.id, revision.supersedes)
        ).fetchone()
        return row[0] if row else None

    def _superseded(self, revision: NewRevision, partition: int, change: int) -> int:
        """Close the current revision; the number of the next."""
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

    def _link(self, memory: int, evidence: Sequence[MessageId]) -> None:
        if not evidence:
            return
        within, values = self._within(keyed=True)
        numbers = {
            record_id: number
            for condition, named in self._among("r.id", list(dict.fromkeys(evidence)))
            for record_id, number in self._db.execute(
                "SELECT r.id, r.number FROM records r JOIN scopes s ON s.id = r.scope_id"
                f" WHERE {condition} AND r.kind = 0 AND {within}",
                [*named, *values],
            )
        }
        for message_id in evidence:
            if message_id not in numbers:
                raise NotFound(f"evidence: there is no message {message_id} in this scope")
        self._db.executemany(
            "INSERT INTO evidence (memory_number, message_number) VALUES (?, ?) ON CONFLICT DO NOTHING",
            [(memory, number) for number in numbers.values()],
        )

    def in_slot(self, scope: Scope, slot: str) -> Record | None:
        # Looked at in order to be filled.
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

    def keep_answer(self, partition: Partition, key: str, answer: Answer, at: datetime) -> None:
        values = (self._partition_id(partition), key, answer.digest, to_micros(at), answer.body)
        self.dialect.insert(self._db, "answers", _ANSWER_COLUMNS, [values])

    # --- indexes ---

    def index(self, entries: Iterable[Indexed], embedder: str, analyzer: int) -> None:
        embedder_id = self._embedder_id(embedder)
        given = {entry.number: entry for entry in entries}
        places = self._places_of(list(given))
        changed = [(self._change(partition), embedder_id, number) for number, partition in places.items()]
        # The records first: whoever forgets one of them meanwhile comes before or after all of this.
        self._db.executemany("UPDATE records SET change = ?, embedder_id = ? WHERE number = ?", changed)
        self._db.executemany(
            "UPDATE records SET analyzer = ?, flags = ?, length = ?, terms = ? WHERE number = ?",
            [
                (analyzer, int(made.flags), made.length, made.terms, number)
                for number in places
                if (made := given[number].analysis) is not None
            ],
        )
        self._delete_vectors([(partition, number) for number, partition in places.items()])
        self._put_vectors(
            ((partition, number, given[number].vectors) for number, partition in places.items()), embedder_id
        )

    def _places_of(self, numbers: Sequence[int]) -> dict[int, int]:
        """The partition of each record that is still there."""
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
                f" JOIN partitions p ON p.id = r.partition_id WHERE {condition} AND {reach}",
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


def _same_message(message: NewMessage, key: _Key, there: tuple[MessageId | None, bytes]) -> MessageId | None:
    """The id of the one that is there already."""
    found, same = there
    if found is not None and key[0] == "external_key" and same != _same(message):
        raise DuplicateId(
            "id: a message of this id, with another text or sender, is in this conversation already;"
            " give each message an id of its own"
        )
    return found


def _key_of(message: NewMessage) -> _Key | None:
    """What makes a message a retry: the id that its caller gave; else, at a given time, its content."""
    if message.external_id is not None:
        key = rows.key_of(message.external_id)
        assert key is not None
        return "external_key", key
    if message.said_at_given:
        return "content_key", rows.content_key(message.sender, to_micros(message.said_at), message.text)
    return None


def _same(message: NewMessage) -> bytes:
    """What must be equal for a message id to be a retry: sender and text."""
    return rows.content_key(message.sender, 0, message.text)
