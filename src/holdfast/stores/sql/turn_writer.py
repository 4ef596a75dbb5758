"""Write turns: insert new ones, apply states to their messages, and update them after a forget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from holdfast.domain.memory import Status
from holdfast.domain.scope import Scope
from holdfast.domain.times import to_micros
from holdfast.domain.transcript_turns import TranscriptState
from holdfast.errors import DuplicateId
from holdfast.ports import NewTurn
from holdfast.stores.sql.dialect import NewRows
from holdfast.stores.sql.row_ids import RowIdWriter
from holdfast.stores.sql.turn_rows import STATUSES, is_own_id, remove_labels, turn_key
from holdfast.stores.sql.turns import Span

TURN = 2  # kind of a tombstone; 0 is a message, 1 a memory
_COLUMNS = (
    "conversation_id", "sequence", "id", "external_key", "state", "delivery", "first_position", "messages",
    "recorded_at", "words",
)  # fmt: skip
TOMBSTONE_COLUMNS = (
    "partition_id", "change", "number", "id", "kind", "scope_id", "conversation_id", "external_key", "forgotten_at",
)  # fmt: skip
_KEYED = "external_key = ?"
_NAMED = "(external_key = ? OR id = ?)"
_LAST = "(SELECT max(u.sequence) FROM turns u WHERE u.conversation_id = conversations.id)"
_KEEP_SEQUENCES = f"UPDATE conversations SET least_sequence = {_LAST} + 1 WHERE least_sequence <= {_LAST}"
# Erases what was derived from the content of a message.
_UNDERIVED = "terms = ?, length = 0, flags = 0, embedder_id = NULL, content_key = NULL"
_WORDS = (
    "SELECT u.id, u.sequence, u.conversation_id, u.messages, u.external_key, u.words, w.external_id, w.text"
    " FROM turns u LEFT JOIN texts w ON w.number = u.words"
)


class TurnWriter(RowIdWriter):
    """The part of `ports.Transaction` that is about turns."""

    def _thread(self, thread: Scope) -> int | None:
        # Lock first: the conversation is read in order to be written.
        if self._grant.reaches(thread.partition):
            self.enter(thread.partition)
        return super()._thread(thread)

    # --- new ones ---

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

    def _put_turn(
        self, turn: NewTurn, words: str | None, drawn: Any, conversation: int, sequence: int, positions: Sequence[int]
    ) -> None:
        number = None
        if words is not None:
            text = NewRows(("external_id", "text"), [(turn.external_id, words)])
            number = self.dialect.add_text(self._db, drawn, text)
        key = None if turn.external_id is None else turn_key(turn.external_id)
        values = (
            conversation, sequence, turn.id, key, TranscriptState.ACTIVE, turn.delivery, positions[0], len(positions),
            to_micros(turn.recorded_at), number,
        )  # fmt: skip
        self.dialect.insert(self._db, "turns", _COLUMNS, [values])

    # --- their states ---

    def set_state(self, thread: Scope, sequences: Sequence[int], state: TranscriptState, at: datetime) -> int:
        conversation = self._thread(thread)
        if conversation is None:
            return 0
        change = self._change(self._partition_id(thread.partition))
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
        for condition, named in self._among("number", [row[0] for row in found]):
            self._db.execute(f"{self.dialect.blank_texts} WHERE {condition}", named)
            self._db.execute(f"UPDATE records SET {_UNDERIVED} WHERE {condition}", [b"", *named])
        self._delete_vectors([(row[2], row[0]) for row in found])
        message_ids = [row[1] for row in found]
        self._forget_hashes([*message_ids, *{row[3] for row in found}])
        self._forget_in_jobs(message_ids)

    def _delete_words(self, conversation: int, span: Span) -> None:
        """Blank a host's data about turns, and rewrite it without labels, which count as content."""
        found = self._db.execute(
            f"{_WORDS} WHERE u.conversation_id = ? AND u.sequence BETWEEN ? AND ? AND u.words IS NOT NULL",
            (conversation, span.first, span.last),
        ).fetchall()
        for _, sequence, _, _, _, number, external_id, text in found:
            shown = external_id if isinstance(external_id, str) else None
            self._forget_hashes([] if shown is None else [shown])
            unlabelled = remove_labels(text)
            if unlabelled == text:
                continue
            self._db.execute(f"{self.dialect.blank_texts} WHERE number = ?", (number,))
            rewritten = None
            if unlabelled is not None:
                drawn = self.dialect.reserve_numbers(self._db, 1)
                rewritten = self.dialect.add_text(
                    self._db, drawn, NewRows(("external_id", "text"), [(shown, unlabelled)])
                )
            self._db.execute(
                "UPDATE turns SET words = ? WHERE conversation_id = ? AND sequence = ?",
                (rewritten, conversation, sequence),
            )

    # --- after a forget ---

    def _lose_messages(self, found: Sequence[tuple[str, int, int, int]], at: int) -> None:
        """Uncount forgotten messages: (turn, conversation, partition, scope) of each. Turns left empty are deleted."""
        lost = Counter(row[0] for row in found)
        places = {row[0]: row[1:] for row in found}
        there = [row for conversation in {row[1] for row in found} for row in self._rows_in(conversation, sorted(lost))]
        self._forget_hashes([key for row in there for key in (row[0], row[6]) if isinstance(key, str)])
        self._db.executemany(
            "UPDATE turns SET messages = messages - ? WHERE conversation_id = ? AND sequence = ?",
            [(lost[row[0]], row[2], row[1]) for row in there],
        )
        if gone := [row for row in there if row[3] <= lost[row[0]]]:
            self._bury_turns(gone, places, at)

    def _rows_in(self, conversation: int, turn_ids: Sequence[str]) -> list[Any]:
        """Return the turns of a conversation with these ids."""
        return [
            row
            for condition, named in self._among("u.id", turn_ids)
            for row in self._db.execute(
                f"{_WORDS} WHERE u.conversation_id = ? AND {condition}", [conversation, *named]
            ).fetchall()
        ]

    def _bury_turns(self, gone: Sequence[Any], places: dict[str, tuple[int, int, int]], at: int) -> None:
        conversations = Counter(row[2] for row in gone)
        for condition, named in self._among("id", sorted(conversations)):
            self._db.execute(f"{_KEEP_SEQUENCES} AND {condition}", named)
        self._db.executemany(
            "UPDATE conversations SET forgotten_turns = forgotten_turns + ? WHERE id = ?",
            [(count, conversation) for conversation, count in conversations.items()],
        )
        for condition, named in self._among("number", [row[5] for row in gone if row[5] is not None]):
            self._db.execute(f"{self.dialect.blank_texts} WHERE {condition}", named)
        tombstones = []
        for turn_id, _, conversation, _, key, number, *_ in gone:
            _, partition, scope = places[turn_id]
            if key is not None and number is not None:
                # Keeps the host's turn with this id from being added again.
                change = self._change(partition)
                tombstones.append((partition, change, number, turn_id, TURN, scope, conversation, key, at))
        if tombstones:
            self.dialect.insert(self._db, "tombstones", TOMBSTONE_COLUMNS, tombstones)
        self._db.executemany(
            "DELETE FROM turns WHERE conversation_id = ? AND sequence = ?", [(row[2], row[1]) for row in gone]
        )

    def _forget_hashes(self, keys: Iterable[str]) -> None:
        """Erase content hashes from events: they are deleted with the content."""
        for condition, named in self._among("record_key", list(keys)):
            self._db.execute(
                f"UPDATE events SET content_hash = NULL WHERE content_hash IS NOT NULL AND {condition}", named
            )

    def _delete_vectors(self, places: Sequence[tuple[int, int]]) -> None:
        self._db.executemany("DELETE FROM vectors WHERE partition_id = ? AND number = ?", places)
