"""Read threads: turns in order, with keyset pagination, and the memories that rest on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.domain.derived_refs import DerivedMemoryRef, TranscriptCheck
from holdfast.domain.ids import MemoryId, MessageId, TurnId
from holdfast.domain.memory import Plane
from holdfast.domain.scope import FILTER_PARTS, Partition, PartitionKind, Scope
from holdfast.domain.times import from_micros
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import PLANES, TranscriptState, TranscriptTurn, Utterance
from holdfast.errors import StoreCorrupt
from holdfast.ports import ThreadSummary, TurnState
from holdfast.stores.sql import rows
from holdfast.stores.sql.grant_scope import SqlRepository
from holdfast.stores.sql.transcripts.broken_evidence import find_resting_on_broken
from holdfast.stores.sql.transcripts.check import check_thread
from holdfast.stores.sql.transcripts.rows import (
    CONVERSATION_COLUMNS,
    MESSAGE_COLUMNS,
    MESSAGE_TABLES,
    NEXT_POSITION,
    NEXT_SEQUENCE,
    OF_CONVERSATION,
    MessageRow,
    Span,
    TurnRow,
    build_turn,
    conversation_key,
    is_own_id,
    next_position,
    next_sequence,
    read_messages,
    read_turns,
    thread_of,
    turn_key,
)


class SqlTranscriptReader(SqlRepository):
    """Implements `TranscriptReader`."""

    def _thread(self, thread: Scope) -> int | None:
        """Return the conversation's number; None if it does not exist, or the grant does not reach it."""
        granted = self._scope.grant.scope
        # A grant for one run does not reach the whole conversation.
        if any(getattr(granted, part) not in (None, getattr(thread, part)) for part in FILTER_PARTS):
            return None
        partition = self._scope.number_of(thread.partition)
        if partition is None or thread.conversation is None:
            return None
        row = self._db.execute(
            f"SELECT c.id FROM conversations c WHERE c.partition_id = ? AND {OF_CONVERSATION}",
            (partition, *conversation_key(thread)),
        ).fetchone()
        return int(row[0]) if row else None

    def tail(self, thread: Scope, limit: int) -> Sequence[Utterance]:
        conversation = self._thread(thread)
        if conversation is None:
            return []
        found = self._db.execute(
            f"SELECT {MESSAGE_COLUMNS} FROM {MESSAGE_TABLES}"
            " WHERE r.conversation_id = ? ORDER BY r.position DESC LIMIT ?",
            (conversation, limit),
        ).fetchall()
        return [
            Utterance(Role(row.role), row.readable_text, row.authority in PLANES)
            for row in map(MessageRow._make, reversed(found))
        ]

    def turn_count(self, thread: Scope) -> int:
        conversation = self._thread(thread)
        if conversation is None:
            return 0
        row = self._db.execute(
            f"SELECT {NEXT_SEQUENCE}, c.forgotten_turns FROM conversations c WHERE c.id = ?", (conversation,)
        ).fetchone()
        return next_sequence(row[:2]) - 1 - int(row[2])

    def turns(self, thread: Scope, after: int, limit: int) -> Sequence[TranscriptTurn]:
        conversation = self._thread(thread)
        if conversation is None or limit < 1:
            return []
        # Read one more turn: the last one wanted ends where it begins.
        found = read_turns(self._db, conversation, "u.sequence > ? ORDER BY u.sequence LIMIT ?", after, limit + 1)
        end = found[limit].first_position if len(found) > limit else None
        return self._build_turns(thread, conversation, found[:limit], end)

    def last_turns(self, thread: Scope, limit: int) -> Sequence[TranscriptTurn]:
        conversation = self._thread(thread)
        if conversation is None or limit < 1:
            return []
        found = read_turns(self._db, conversation, "TRUE ORDER BY u.sequence DESC LIMIT ?", limit)
        return self._build_turns(thread, conversation, found[::-1], None)

    def turn(self, thread: Scope, turn_id: str) -> TranscriptTurn | None:
        conversation = self._thread(thread)
        if conversation is None:
            return None
        found = read_turns(self._db, conversation, "u.external_key = ?", turn_key(turn_id))
        if not found and is_own_id(turn_id):
            found = read_turns(self._db, conversation, "u.id = ?", turn_id)
        if not found:
            return None
        end = self._begins_after(conversation, found[0].sequence)
        return self._build_turns(thread, conversation, found[:1], end)[0]

    def turn_states(self, thread: Scope, after: int, limit: int) -> Sequence[TurnState]:
        conversation = self._thread(thread)
        if conversation is None:
            return []
        found = read_turns(self._db, conversation, "u.sequence > ? ORDER BY u.sequence LIMIT ?", after, limit)
        return [
            TurnState(row.sequence, row.shown_id, _parse_state(row), row.messages, from_micros(row.recorded_at))
            for row in found
        ]

    def _build_turns(
        self, thread: Scope, conversation: int, found: Sequence[TurnRow], end: int | None
    ) -> list[TranscriptTurn]:
        if not found:
            return []
        messages = read_messages(self._db, conversation, found[0].first_position, end)
        return [build_turn(row, messages.get(row.id, ()), thread) for row in found]

    def _begins_after(self, conversation: int, sequence: int) -> int | None:
        row = self._db.execute(
            "SELECT first_position FROM turns WHERE conversation_id = ? AND sequence > ? ORDER BY sequence LIMIT 1",
            (conversation, sequence),
        ).fetchone()
        return None if row is None else int(row[0])

    def _spans(self, conversation: int, sequences: Sequence[int]) -> Iterator[Span]:
        """Yield the existing turns of those sequences in as few spans as possible."""
        for first, last in _consecutive_runs(sequences):
            row = self._db.execute(
                "SELECT first_position FROM turns WHERE conversation_id = ? AND sequence BETWEEN ? AND ?"
                " ORDER BY sequence LIMIT 1",
                (conversation, first, last),
            ).fetchone()
            if row is not None:
                yield Span(first, last, int(row[0]), self._begins_after(conversation, last))

    def derived_from(self, thread: Scope, sequences: Sequence[int], limit: int) -> Sequence[DerivedMemoryRef]:
        conversation = self._thread(thread)
        if conversation is None or limit < 1:
            return []
        spans = list(self._spans(conversation, sequences))
        memory_ids = sorted({found for span in spans for found in self._resting_on(conversation, span, limit)})[:limit]
        gathered: dict[str, list[Any]] = {memory_id: [] for memory_id in memory_ids}
        space, space_values = self._scope.in_space()
        for span in spans:
            for condition, named in self._scope.among("r.id", memory_ids):
                for row in self._db.execute(
                    f"SELECT {_LINK_COLUMNS} FROM {_LINKS} WHERE m.conversation_id = ? AND {span.condition}"
                    f" AND {condition} AND r.superseded_at IS NULL AND {space} ORDER BY m.position",
                    [conversation, *span.values, *named, *space_values],
                ):
                    gathered[row[0]].append(row)
        shown = (
            {name: shown for span in spans for name, shown in self._shown_ids(conversation, span)} if gathered else {}
        )
        return [_to_derived_ref(links, shown) for links in gathered.values()]

    def _shown_ids(self, conversation: int, span: Span) -> list[tuple[str, TurnId]]:
        """Return (our id, host's id) of the turns to which a host gave an id."""
        condition = "u.sequence BETWEEN ? AND ? AND u.external_key IS NOT NULL"
        return [(row.id, row.shown_id) for row in read_turns(self._db, conversation, condition, span.first, span.last)]

    def _resting_on(self, conversation: int, span: Span, limit: int) -> list[str]:
        space, values = self._scope.in_space()
        found = self._db.execute(
            f"SELECT DISTINCT r.id FROM {_RESTING} WHERE m.conversation_id = ? AND {span.condition}"
            f" AND r.superseded_at IS NULL AND {space} ORDER BY r.id LIMIT ?",
            [conversation, *span.values, *values, limit],
        )
        return [row[0] for row in found.fetchall()]

    def threads(self, after: Scope | None, limit: int) -> Sequence[ThreadSummary]:
        condition, values = self._scope.reach("c")
        for part in FILTER_PARTS:
            if (value := getattr(self._scope.grant.scope, part)) is None:
                continue
            if part in ("run", "issue"):
                return []  # no conversation belongs to a single run or issue
            condition += f" AND c.{'name' if part == 'conversation' else part} = ?"
            values.append(value)
        if after is not None:
            number = self._thread(after)
            if number is None:
                return []
            condition += " AND c.id > ?"
            values.append(number)
        found = self._db.execute(f"{_THREADS} WHERE {condition} ORDER BY c.id LIMIT ?", [*values, limit])
        return [_summary(row) for row in found.fetchall()]

    def unsealed_messages(self, scope: Scope) -> Sequence[MessageId]:
        row = self._conversation(scope)
        if row is None:
            return []
        found = self._db.execute(
            "SELECT id FROM records r WHERE conversation_id = ? AND position >= ? AND superseded_at IS NULL"
            f" AND {rows.LEARNED_FROM} ORDER BY position",
            (row[0], row[2]),
        )
        return [MessageId(record_id) for (record_id,) in found]

    def _conversation(self, scope: Scope) -> tuple[int, int, int] | None:
        """Return (number, next position, sealed position)."""
        row = self._db.execute(
            f"SELECT c.id, c.sealed, {NEXT_POSITION} FROM conversations c"
            f" WHERE c.partition_id = ? AND {OF_CONVERSATION}",
            (self._scope.number_of(scope.partition), *conversation_key(scope)),
        ).fetchone()
        return (row[0], next_position(row[2:]), row[1]) if row else None

    def resting_on_broken(self, record_ids: Sequence[str]) -> frozenset[str]:
        return find_resting_on_broken(self._scope, record_ids)

    def check(self, thread: Scope, limit: int) -> TranscriptCheck:
        conversation = self._thread(thread)
        return (
            TranscriptCheck(0, 0, ())
            if conversation is None
            else check_thread(self._scope, thread, conversation, limit)
        )


_RESTING = (
    "records m JOIN evidence e ON e.message_number = m.number"
    " JOIN records r ON r.number = e.memory_number AND r.kind = 1"
)
_LINKS = f"{_RESTING} JOIN scopes s ON s.id = r.scope_id LEFT JOIN texts t ON t.number = r.number"
_LINK_COLUMNS = "r.id, r.plane, s.subject, t.author, r.recorded_at, m.id, m.turn_id"
_THREADS = (
    "SELECT p.space, p.kind, p.owner, u.sequence, u.recorded_at, c.least_sequence, c.forgotten_turns, "
    + ", ".join(f"c.{column}" for column in CONVERSATION_COLUMNS)
    + " FROM conversations c JOIN partitions p ON p.id = c.partition_id JOIN turns u ON u.conversation_id = c.id"
    " AND u.sequence = (SELECT max(last.sequence) FROM turns last WHERE last.conversation_id = c.id)"
)


def _parse_state(row: TurnRow) -> TranscriptState:
    try:
        return TranscriptState(row.state)
    except ValueError:
        problem = f"turn {row.sequence} of this conversation ({row.id}) has an unknown state"
    raise StoreCorrupt(f"{problem}; run `holdfast transcript repair` to see what is wrong")


def _consecutive_runs(sequences: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of each run without a gap."""
    ordered = sorted(set(sequences))
    if not ordered:
        return
    first = last = ordered[0]
    for sequence in ordered[1:]:
        if sequence != last + 1:
            yield first, last
            first = sequence
        last = sequence
    yield first, last


def _to_derived_ref(links: Sequence[Any], shown: Mapping[str, TurnId]) -> DerivedMemoryRef:
    memory_id, plane, subject, author, recorded_at = links[0][:5]
    return DerivedMemoryRef(
        plane=Plane(plane),
        store_key=MemoryId(memory_id),
        subject_id=subject or None,
        source=author,
        created_at=from_micros(recorded_at),
        turn_ids=tuple(dict.fromkeys(shown.get(link[6], TurnId(link[6])) for link in links)),
        message_ids=tuple(MessageId(link[5]) for link in links),
    )


def _summary(row: Sequence[Any]) -> ThreadSummary:
    space, kind, owner, sequence, recorded_at, least, forgotten, *conversation = row
    thread = thread_of(Partition(space, PartitionKind(kind), owner), conversation)
    turns = next_sequence((least, sequence)) - 1 - int(forgotten)
    return ThreadSummary(thread, turns, from_micros(recorded_at))
