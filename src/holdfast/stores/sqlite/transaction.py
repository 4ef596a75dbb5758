"""Writing: all of it commits, or nothing. Whatever changes a partition moves its change number."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from holdfast.domain.access import Grant
from holdfast.domain.ids import MessageId
from holdfast.domain.memory import Status, Trust
from holdfast.domain.operations import Operation
from holdfast.domain.scope import SCOPE_PARTS, Partition, Scope
from holdfast.domain.times import to_micros
from holdfast.errors import AccessDenied, DuplicateId, NotFound, RevisionConflict
from holdfast.ports import Answer, Doomed, Indexed, NewMessage, NewRevision, NewTurn, StoredMessages
from holdfast.stores.sqlite import rows
from holdfast.stores.sqlite.jobs import JobTable
from holdfast.stores.sqlite.reader import CONVERSATION_COLUMNS, chunks, conversation_key, marks

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
_INSERT_RECORD = (
    f"INSERT INTO records ({', '.join(_COLUMNS)}) VALUES ({', '.join(f':{column}' for column in _COLUMNS)})"
)
_TEXT_COLUMNS = ("sender", "source", "external_id", "author", "reason", "metadata", "text")
_INSERT_TEXT = f"INSERT INTO texts (number, {', '.join(_TEXT_COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
# A blank of the same length stays in its place, and so does everything around it.
_BLANK_TEXT = "UPDATE texts SET " + ", ".join(
    f"{column} = iif({column} IS NULL, NULL, zeroblob(length(CAST({column} AS BLOB))))" for column in _TEXT_COLUMNS
)


class SqliteTransaction(JobTable):
    """Implements `ports.Transaction` on the writer's connection."""

    def __init__(self, connection: sqlite3.Connection, grant: Grant) -> None:
        super().__init__(connection, grant)
        self._changes: dict[int, int] = {}

    # --- places ---

    def _partition_id(self, partition: Partition) -> int:
        """Its number, made if it is new. A partition out of the grant's reach is refused here, last of all places."""
        if not self._grant.reaches(partition):
            raise AccessDenied("the grant does not reach this scope")
        known = self._partitions().get(partition)
        if known is None:
            cursor = self._db.execute(
                "INSERT INTO partitions (space, kind, owner) VALUES (?, ?, ?)",
                (partition.space, partition.kind, partition.owner),
            )
            known = self._partitions()[partition] = int(cursor.lastrowid or 0)
        return known

    def _scope_id(self, partition: int, scope: Scope) -> int:
        values = (partition, *rows.scope_values(scope))
        where = " AND ".join(f"{part} = ?" for part in SCOPE_PARTS)
        row = self._db.execute(f"SELECT id FROM scopes WHERE partition_id = ? AND {where}", values).fetchone()
        if row:
            return int(row[0])
        columns = ", ".join(SCOPE_PARTS)
        cursor = self._db.execute(f"INSERT INTO scopes (partition_id, {columns}) VALUES ({marks(values)})", values)
        return int(cursor.lastrowid or 0)

    def _embedder_id(self, fingerprint: str) -> int:
        row = self._db.execute("SELECT id FROM embedders WHERE fingerprint = ?", (fingerprint,)).fetchone()
        if row:
            return int(row[0])
        cursor = self._db.execute("INSERT INTO embedders (fingerprint) VALUES (?)", (fingerprint,))
        return int(cursor.lastrowid or 0)

    def _change(self, partition: int) -> int:
        """This transaction's change number of the partition."""
        if partition not in self._changes:
            row = self._db.execute(
                "UPDATE partitions SET change = change + 1 WHERE id = ? RETURNING change", (partition,)
            ).fetchone()
            self._changes[partition] = int(row[0])
        return self._changes[partition]

    # --- messages ---

    def add_turn(self, turn: NewTurn, embedder: str, analyzer: int) -> StoredMessages:
        partition = self._partition_id(turn.scope.partition)
        conversation = self._ensured_conversation(partition, turn.scope)
        ids: list[MessageId | None] = []
        new: dict[int, NewMessage] = {}
        earlier: dict[str | bytes, tuple[MessageId, bytes]] = {}
        for index, message in enumerate(turn.messages):
            known, found = self._existing(conversation, message, earlier)
            ids.append(found if known else message.id)
            if not known:
                new[index] = message
        if new:
            self._insert_messages(turn, partition, conversation, list(new.values()), embedder, analyzer)
        return StoredMessages(tuple(ids), frozenset(new))

    def _ensured_conversation(self, partition: int, scope: Scope) -> int:
        if row := self._conversation(scope):
            return row[0]
        cursor = self._db.execute(
            f"INSERT INTO conversations (partition_id, {', '.join(CONVERSATION_COLUMNS)})"
            f" VALUES (?, {marks(CONVERSATION_COLUMNS)})",
            (partition, *conversation_key(scope)),
        )
        return int(cursor.lastrowid or 0)

    def _existing(
        self, conversation: int, message: NewMessage, earlier: dict[str | bytes, tuple[MessageId, bytes]]
    ) -> tuple[bool, MessageId | None]:
        """Whether this message is there already (or was, and is forgotten: None), in the store or in this turn."""
        content = rows.content_key(message.sender, to_micros(message.said_at), message.text)
        keys: list[str | bytes] = [message.external_id] if message.external_id is not None else []
        if message.said_at_given and not keys:
            keys.append(content)
        for key in keys:
            found = earlier.get(key) or self._stored(conversation, key)
            if found:
                if isinstance(key, str) and found[1] != _same(message):
                    raise DuplicateId(
                        "id: a message of this id, with another text or sender, is in this conversation already;"
                        " give each message an id of its own"
                    )
                return True, found[0]
            if isinstance(key, str) and self._was_forgotten(conversation, key):
                return True, None
            earlier[key] = (message.id, _same(message))
        return False, None

    def _stored(self, conversation: int, key: str | bytes) -> tuple[MessageId, bytes] | None:
        column, value = ("external_key", rows.key_of(key)) if isinstance(key, str) else ("content_key", key)
        row = self._db.execute(
            "SELECT r.id, t.sender, t.text FROM records r JOIN texts t ON t.number = r.number"
            f" WHERE r.conversation_id = ? AND r.{column} = ?",
            (conversation, value),
        ).fetchone()
        return (MessageId(row[0]), rows.content_key(row[1], 0, row[2])) if row else None

    def _was_forgotten(self, conversation: int, external_id: str) -> bool:
        row = self._db.execute(
            "SELECT 1 FROM tombstones WHERE conversation_id = ? AND external_key = ?",
            (conversation, rows.key_of(external_id)),
        ).fetchone()
        return row is not None

    def _insert_messages(
        self,
        turn: NewTurn,
        partition: int,
        conversation: int,
        messages: Sequence[NewMessage],
        embedder: str,
        analyzer: int,
    ) -> None:
        change, scope = self._change(partition), self._scope_id(partition, turn.scope)
        recorded_at, embedder_id = to_micros(turn.recorded_at), self._embedder_id(embedder)
        (position,) = self._db.execute(
            "UPDATE conversations SET next_position = next_position + ? WHERE id = ? RETURNING next_position - ?",
            (len(messages), conversation, len(messages)),
        ).fetchone()
        for offset, message in enumerate(messages):
            said_at = to_micros(message.said_at)
            keyed = message.said_at_given and message.external_id is None
            values = {
                "id": message.id,
                "partition_id": partition,
                "change": change,
                "kind": rows.MESSAGE,
                "scope_id": scope,
                "conversation_id": conversation,
                "position": position + offset,
                "turn_id": turn.id,
                "role": message.role,
                "external_key": rows.key_of(message.external_id),
                "content_key": rows.content_key(message.sender, said_at, message.text) if keyed else None,
                "status": Status.ACCEPTED,
                "trust": Trust.STATED,
                "source_key": rows.key_of(turn.source),
                "said_at": said_at,
                "recorded_at": recorded_at,
            }
            said = (message.sender, turn.source, message.external_id, None, None)
            self._insert(values, said, message, embedder_id, analyzer)

    def _insert(
        self,
        values: dict[str, Any],
        said: tuple[str | None, ...],
        new: NewMessage | NewRevision,
        embedder_id: int,
        analyzer: int,
    ) -> int:
        derived = {
            "analyzer": analyzer,
            "flags": int(new.analysis.flags),
            "length": new.analysis.length,
            "terms": new.analysis.terms,
            "embedder_id": embedder_id if new.vectors else None,
        }
        number = int(self._db.execute(_INSERT_RECORD, _BLANK | values | derived).lastrowid or 0)
        self._db.execute(_INSERT_TEXT, (number, *said, rows.metadata_json(new.metadata), new.text))
        self._put_vectors(values["partition_id"], number, new.vectors, embedder_id)
        return number

    def _put_vectors(self, partition: int, number: int, vectors: Sequence[bytes], embedder_id: int) -> None:
        self._db.executemany(
            "INSERT INTO vectors (partition_id, number, piece, embedder_id, vector) VALUES (?, ?, ?, ?, ?)",
            [(partition, number, piece, embedder_id, vector) for piece, vector in enumerate(vectors)],
        )

    def seal(self, scope: Scope) -> int:
        row = self._conversation(scope)
        if row is None:
            return 0
        self._db.execute("UPDATE conversations SET sealed = next_position WHERE id = ?", (row[0],))
        return row[1] - row[2]

    # --- memories ---

    def add_revision(self, revision: NewRevision, embedder: str, analyzer: int) -> int:
        partition = self._partition_id(revision.scope.partition)
        change, embedder_id = self._change(partition), self._embedder_id(embedder)
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
        record = self._insert(values, said, revision, embedder_id, analyzer)
        self._link(record, revision.evidence)
        return number

    def _slot_of(self, revision: NewRevision) -> bytes | None:
        """A correction fills the slot of what it corrects, so that what is said later replaces it too."""
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
        within, values = self._within(keyed=True)
        for message_id in dict.fromkeys(evidence):
            row = self._db.execute(
                "SELECT r.number FROM records r JOIN scopes s ON s.id = r.scope_id"
                f" WHERE r.id = ? AND r.kind = 0 AND {within}",
                [message_id, *values],
            ).fetchone()
            if row is None:
                raise NotFound(f"evidence: there is no message {message_id} in this scope")
            self._db.execute(
                "INSERT OR IGNORE INTO evidence (memory_number, message_number) VALUES (?, ?)", (memory, row[0])
            )

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
        self._db.execute(
            "INSERT INTO answers (partition_id, key, digest, ids, turn_id, recorded_at) VALUES (?, ?, ?, ?, ?, ?)",
            (
                self._partition_id(partition),
                key,
                answer.digest,
                json.dumps(answer.ids),
                answer.turn_id,
                to_micros(at),
            ),
        )

    # --- forgetting ---

    def forget(self, doomed: Doomed, at: datetime) -> tuple[int, int]:
        record_ids = [*doomed.message_ids, *doomed.memory_ids, *doomed.derived_ids]
        found = self._rows_of(record_ids, doomed.baseless)
        for chunk in chunks(found):
            self._bury(chunk, to_micros(at))
        # A memory that only lost an older revision is still there to be worked on.
        self._forget_in_jobs(record_ids)
        return len(found), len(self._rows_of(record_ids, doomed.baseless))

    def _rows_of(self, record_ids: Sequence[str], numbers: Sequence[int]) -> list[Any]:
        """`doomed` decided what may be taken; here only the wall between spaces is checked once more."""
        space, values = self._in_space()
        return [
            row
            for column, keys in (("id", record_ids), ("number", numbers))
            for chunk in chunks(keys)
            for row in self._db.execute(
                "SELECT r.number, r.id, r.kind, r.partition_id, r.scope_id, r.conversation_id, r.external_key"
                f" FROM records r WHERE r.{column} IN ({marks(chunk)}) AND {space}",
                [*chunk, *values],
            )
        ]

    def _bury(self, found: Sequence[Any], at: int) -> None:
        numbers = [row[0] for row in found]
        self._loosen(numbers)
        for column in ("message_number", "memory_number"):
            self._db.execute(f"DELETE FROM evidence WHERE {column} IN ({marks(numbers)})", numbers)
        self._db.execute(f"{_BLANK_TEXT} WHERE number IN ({marks(numbers)})", numbers)
        for number, record_id, kind, partition, scope, conversation, key in found:
            self._db.execute("DELETE FROM vectors WHERE partition_id = ? AND number = ?", (partition, number))
            self._db.execute(
                "INSERT INTO tombstones (partition_id, change, number, id, kind, scope_id, conversation_id,"
                " external_key, forgotten_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (partition, self._change(partition), number, record_id, kind, scope, conversation, key, at),
            )
        self._db.execute(f"DELETE FROM records WHERE number IN ({marks(numbers)})", numbers)

    def _loosen(self, messages: Sequence[int]) -> None:
        """Memories that lose a link have changed."""
        touched = self._db.execute(
            "SELECT DISTINCT r.number, r.partition_id FROM evidence e JOIN records r ON r.number = e.memory_number"
            f" WHERE e.message_number IN ({marks(messages)})",
            messages,
        ).fetchall()
        for number, partition in touched:
            self._db.execute("UPDATE records SET change = ? WHERE number = ?", (self._change(partition), number))

    # --- indexes ---

    def index(self, entries: Iterable[Indexed], embedder: str, analyzer: int) -> None:
        embedder_id = self._embedder_id(embedder)
        reach, values = self._reach(keyed=True)
        for entry in entries:
            row = self._db.execute(
                f"SELECT r.partition_id FROM records r WHERE r.number = ? AND {reach}", [entry.number, *values]
            ).fetchone()
            if row is not None:  # else it was forgotten meanwhile
                self._index_one(int(row[0]), entry, embedder_id, analyzer)

    def _index_one(self, partition: int, entry: Indexed, embedder_id: int, analyzer: int) -> None:
        self._db.execute("DELETE FROM vectors WHERE partition_id = ? AND number = ?", (partition, entry.number))
        self._put_vectors(partition, entry.number, entry.vectors, embedder_id)
        self._db.execute(
            "UPDATE records SET change = ?, embedder_id = ? WHERE number = ?",
            (self._change(partition), embedder_id, entry.number),
        )
        if entry.analysis is not None:
            self._db.execute(
                "UPDATE records SET analyzer = ?, flags = ?, length = ?, terms = ? WHERE number = ?",
                (analyzer, entry.analysis.flags, entry.analysis.length, entry.analysis.terms, entry.number),
            )

    def mark_stale(self) -> int:
        return sum(
            self._db.execute("UPDATE records SET analyzer = 0 WHERE partition_id = ?", (partition,)).rowcount
            for partition in self._partitions().values()
        )

    def put_fact(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (name, value))

    # --- audit ---

    def record(self, operation: Operation) -> None:
        record_operation(self._db, operation)


def record_operation(connection: sqlite3.Connection, operation: Operation, *, unless_there: bool = False) -> None:
    """Write an audit row. It names the partition it belongs to, so that only those who reach that can read it."""
    partition = operation.scope.partition
    connection.execute(
        f"INSERT {'OR IGNORE ' if unless_there else ''}INTO operations"
        " (id, space, scope, partition_id, actor_kind, actor_id, action, outcome, error_code,"
        " touched, started_at, duration_micros) VALUES (?, ?, ?,"
        " (SELECT id FROM partitions WHERE space = ? AND kind = ? AND owner = ?), ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            operation.id, operation.scope.space, rows.scope_json(operation.scope), partition.space, partition.kind,
            partition.owner, operation.actor.kind, operation.actor.id, operation.action, operation.outcome,
            operation.error_code, operation.touched, to_micros(operation.started_at), operation.duration_micros,
        ),
    )  # fmt: skip


def _same(message: NewMessage) -> bytes:
    """What must be equal for a message id to be a retry: sender and text."""
    return rows.content_key(message.sender, 0, message.text)
