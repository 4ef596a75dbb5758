"""Write threads: insert new turns with their messages, and apply states to them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from holdfast.domain.ids import MessageId
from holdfast.domain.memory import Plane, Status, Trust
from holdfast.domain.scope import Scope
from holdfast.domain.times import to_micros
from holdfast.domain.transcript_turns import PLANES, TranscriptState
from holdfast.errors import DuplicateId
from holdfast.ports import NewMessage, NewTurn, StoredMessages
from holdfast.stores.sql import rows
from holdfast.stores.sql.dialect import NewRows
from holdfast.stores.sql.events import erase_hashes
from holdfast.stores.sql.jobs import SqlJobWriter
from holdfast.stores.sql.proposals import forget_proposals, proposals_resting_on
from holdfast.stores.sql.transcripts.reader import SqlTranscriptReader
from holdfast.stores.sql.transcripts.rows import (
    NEXT_POSITION,
    NEXT_SEQUENCE,
    STATUSES,
    WORDS,
    Span,
    encode_words,
    is_own_id,
    next_position,
    next_sequence,
    remove_labels,
    turn_key,
)
from holdfast.stores.sql.write_scope import (
    RECORD_COLUMNS,
    TEXT_COLUMNS,
    WriteScope,
    delete_vectors,
    index_values,
    put_vectors,
    shared_values,
)

_COLUMNS = (
    "conversation_id", "sequence", "id", "external_key", "state", "delivery", "first_position", "messages",
    "recorded_at", "words",
)  # fmt: skip
_KEYED = "external_key = ?"
_NAMED = "(external_key = ? OR id = ?)"
# Not enumerations: they cost more to bind.
_ACCEPTED, _STATED, _ACTIVE = str(Status.ACCEPTED), Trust.STATED.level, str(TranscriptState.ACTIVE)
# Erases what was derived from the content of a message.
_UNDERIVED = "terms = ?, length = 0, flags = 0, embedder_id = NULL, content_key = NULL"
_MESSAGE_COLUMNS = (
    *RECORD_COLUMNS,
    "conversation_id",
    "turn_id",
    "role",
    "external_key",
    "content_key",
    "plane",
    "authority",
)
_NEXT = f"SELECT {NEXT_POSITION}, {NEXT_SEQUENCE} FROM conversations c WHERE c.id = ?"
# Identifies a message of a conversation: the column, and the key in it.
_Key = tuple[str, bytes]


class SqlTranscriptWriter(SqlTranscriptReader):
    """Implements `TranscriptWriter`."""

    _scope: WriteScope

    def _thread(self, thread: Scope) -> int | None:
        # Lock first: the conversation is read in order to be written.
        if self._scope.grant.reaches(thread.partition):
            self._scope.enter(thread.partition)
        return super()._thread(thread)

    # --- new ones ---

    def add_turn(self, turn: NewTurn, embedder: str, analyzer: int) -> StoredMessages:
        partition = self._scope.partition_id(turn.scope.partition)
        conversation = self._scope.conversation_id(partition, turn.scope)
        if self._is_forgotten(conversation, turn):
            return StoredMessages((None,) * len(turn.messages))
        keys = [_retry_key(message) for message in turn.messages]
        existing = self._find_existing(conversation, [key for key in keys if key is not None])
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

    def _find_existing(self, conversation: int, keys: Sequence[_Key]) -> dict[_Key, tuple[MessageId | None, bytes]]:
        """Find these keys in the conversation, with the content that must match; None for a forgotten message."""
        found: dict[_Key, tuple[MessageId | None, bytes]] = {}
        if not keys:
            return found
        for column in ("external_key", "content_key"):
            for condition, named in self._scope.among(f"r.{column}", [key for of, key in keys if of == column]):
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
        for condition, named in self._scope.among("external_key", [key for of, key in keys if of == "external_key"]):
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
        scope, dialect, database = self._scope, self._scope.dialect, self._db
        # Send all before reading any result: over a network they travel together.
        scope.touch(partition)
        counted = database.execute(_NEXT, (conversation,))
        drawn = dialect.reserve_numbers(database, len(messages))
        words = encode_words(turn)
        drawn_for_words = None if words is None else dialect.reserve_numbers(database, 1)
        places = counted.fetchone()
        first, sequence = next_position(places[:2]), next_sequence(places[2:])
        recorded_at = to_micros(turn.recorded_at)
        shared = shared_values(scope, partition, turn.scope, rows.MESSAGE, turn.source, recorded_at, analyzer)
        embedder_id = scope.embedder_id(embedder)
        records, texts = [], []
        for position, message in enumerate(messages, first):
            column, key = _retry_key(message) or ("", None)
            said_at = recorded_at if message.said_at is turn.recorded_at else to_micros(message.said_at)
            records.append(
                (
                    *shared, *index_values(message, embedder_id), message.id, 0, position, _ACCEPTED, _STATED, said_at,
                    conversation, turn.id, None if message.role is None else str(message.role),
                    key if column == "external_key" else None,
                    key if column == "content_key" else None, _plane_of(message), message.authority,
                )
            )  # fmt: skip
            metadata = rows.metadata_json(message.metadata)
            texts.append((message.sender, turn.source, message.external_id, None, None, metadata, message.text))
        new = NewRows(_MESSAGE_COLUMNS, records), NewRows(TEXT_COLUMNS, texts)
        numbers = dialect.add_records(database, drawn, *new)
        vectors = [(partition, number, message.vectors) for number, message in zip(numbers, messages, strict=True)]
        put_vectors(scope, vectors, embedder_id)
        positions = range(first, first + len(messages))
        self._insert_turn(turn, words, drawn_for_words, conversation, sequence, positions)
        return sequence

    def _is_forgotten(self, conversation: int, turn: NewTurn) -> bool:
        """True if the host's turn with this id was forgotten. `DuplicateId` if it exists."""
        if turn.external_id is None:
            return False
        key = turn_key(turn.external_id)
        existing = self._db.execute(
            f"SELECT 1 FROM turns WHERE conversation_id = ? AND {_NAMED if is_own_id(turn.external_id) else _KEYED}",
            (conversation, key, *([turn.external_id] if is_own_id(turn.external_id) else [])),
        )
        gone = self._db.execute(
            "SELECT 1 FROM tombstones WHERE conversation_id = ? AND external_key = ?", (conversation, key)
        )
        if existing.fetchone() is not None:
            raise DuplicateId("turn_id: this conversation already has a turn with this id; give each an id of its own")
        return gone.fetchone() is not None

    def _insert_turn(
        self, turn: NewTurn, words: str | None, drawn: Any, conversation: int, sequence: int, positions: Sequence[int]
    ) -> None:
        number = None
        if words is not None:
            text = NewRows(("external_id", "text"), [(turn.external_id, words)])
            number = self._scope.dialect.add_text(self._db, drawn, text)
        key = None if turn.external_id is None else turn_key(turn.external_id)
        values = (
            conversation, sequence, turn.id, key, _ACTIVE, turn.delivery, positions[0], len(positions),
            to_micros(turn.recorded_at), number,
        )  # fmt: skip
        self._scope.dialect.insert(self._db, "turns", _COLUMNS, [values])

    # --- their states ---

    def seal(self, scope: Scope) -> int:
        row = self._conversation(scope)
        if row is None:
            return 0
        number, following, sealed = row
        self._db.execute("UPDATE conversations SET sealed = ? WHERE id = ?", (following, number))
        return following - sealed

    def set_state(self, thread: Scope, sequences: Sequence[int], state: TranscriptState, at: datetime) -> int:
        conversation = self._thread(thread)
        if conversation is None:
            return 0
        change = self._scope.change(self._scope.partition_id(thread.partition))
        return sum(self._set_span(conversation, span, state, change) for span in self._spans(conversation, sequences))

    def _set_span(self, conversation: int, span: Span, state: TranscriptState, change: int) -> int:
        if state is TranscriptState.RAW_DELETED:
            self._delete_words(conversation, span)
            self._delete_raw(conversation, span)
        # Deleted turns stay deleted, whatever the requested state.
        self._db.execute(
            "UPDATE turns SET state = ? WHERE conversation_id = ? AND sequence BETWEEN ? AND ?"
            " AND state <> 'raw_deleted'",
            (state, conversation, span.first, span.last),
        )
        status = STATUSES[state]
        moved = self._db.execute(
            f"UPDATE records AS m SET status = ?, change = ? WHERE m.conversation_id = ? AND {span.condition}"
            " AND m.status <> ? AND m.status <> 'raw_deleted'",
            [status, change, conversation, *span.values, status],
        )
        return moved.rowcount

    def _delete_raw(self, conversation: int, span: Span) -> None:
        """Erase the content of messages, and what was derived from it. The rows stay, with their references."""
        found = self._db.execute(
            "SELECT m.number, m.id, m.partition_id, m.turn_id FROM records m"
            f" WHERE m.conversation_id = ? AND {span.condition} AND m.status <> ?",
            [conversation, *span.values, Status.RAW_DELETED],
        ).fetchall()
        for condition, named in self._scope.among("number", [row[0] for row in found]):
            self._db.execute(f"{self._scope.dialect.blank_texts} WHERE {condition}", named)
            self._db.execute(f"UPDATE records SET {_UNDERIVED} WHERE {condition}", [b"", *named])
        delete_vectors(self._scope, [(row[2], row[0]) for row in found])
        message_ids = [row[1] for row in found]
        erase_hashes(self._scope, [*message_ids, *{row[3] for row in found}])
        SqlJobWriter(self._scope).forget_records(message_ids)
        forget_proposals(self._scope, proposals_resting_on(self._scope, message_ids))

    def _delete_words(self, conversation: int, span: Span) -> None:
        """Blank a host's data about turns, and rewrite it without labels, which count as content."""
        found = self._db.execute(
            f"{WORDS} WHERE u.conversation_id = ? AND u.sequence BETWEEN ? AND ? AND u.words IS NOT NULL",
            (conversation, span.first, span.last),
        ).fetchall()
        for _, sequence, _, _, _, number, external_id, text in found:
            shown = external_id if isinstance(external_id, str) else None
            erase_hashes(self._scope, [] if shown is None else [shown])
            unlabelled = remove_labels(text)
            if unlabelled == text:
                continue
            self._db.execute(f"{self._scope.dialect.blank_texts} WHERE number = ?", (number,))
            rewritten = None
            if unlabelled is not None:
                drawn = self._scope.dialect.reserve_numbers(self._db, 1)
                rewritten = self._scope.dialect.add_text(
                    self._db, drawn, NewRows(("external_id", "text"), [(shown, unlabelled)])
                )
            self._db.execute(
                "UPDATE turns SET words = ? WHERE conversation_id = ? AND sequence = ?",
                (rewritten, conversation, sequence),
            )


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
