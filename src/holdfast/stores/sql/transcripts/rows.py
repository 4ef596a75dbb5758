"""Rows of conversations and turns: their keys, the next position and turn, and their conversion to domain values.

A host's data about a turn is one text, its words.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from holdfast.domain.identity import key_of
from holdfast.domain.ids import TURN, MessageId, TurnId
from holdfast.domain.memory import Status
from holdfast.domain.scope import CONVERSATION_PARTS, Partition, PartitionKind, Scope
from holdfast.domain.times import from_micros
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import (
    ActorAttribution,
    Authority,
    DeliveryStatus,
    HostOpaqueRef,
    HostRefVisibility,
    Relation,
    TranscriptMessage,
    TranscriptState,
    TranscriptTurn,
)
from holdfast.errors import HoldfastError, StoreCorrupt
from holdfast.ports import NewTurn
from holdfast.stores.sql.dialect import Database

_LABEL = 5
_OURS = re.compile(f"{TURN}_[0-9a-f]{{32}}")
STATUSES = {
    TranscriptState.ACTIVE: Status.ACCEPTED,
    TranscriptState.ARCHIVED: Status.ARCHIVED,
    TranscriptState.MASKED: Status.MASKED,
    TranscriptState.RAW_DELETED: Status.RAW_DELETED,
}


class TurnRow(NamedTuple):
    """A row of `turns` with its words: `external_id` and `words` are None if there are none."""

    sequence: int
    id: str
    state: str
    delivery: str | None
    first_position: int
    messages: int
    recorded_at: int
    number: int | None
    external_id: Any
    words: Any

    @property
    def shown_id(self) -> TurnId:
        """The host's id, else our own. A blanked id counts as none."""
        return TurnId(self.external_id if isinstance(self.external_id, str) else self.id)


# Columns of a turn `u` and its words `w`, in the order of `TurnRow`.
TURN_COLUMNS = (
    "u.sequence, u.id, u.state, u.delivery, u.first_position, u.messages, u.recorded_at, u.words, w.external_id, w.text"
)
TURN_TABLES = "turns u LEFT JOIN texts w ON w.number = u.words"
# The words of turns, and what a forget needs to know about them.
WORDS = (
    "SELECT u.id, u.sequence, u.conversation_id, u.messages, u.external_key, u.words, w.external_id, w.text"
    " FROM turns u LEFT JOIN texts w ON w.number = u.words"
)


class MessageRow(NamedTuple):
    """A message as a transcript needs it."""

    number: int
    id: str
    turn_id: str
    position: int
    role: str
    authority: str | None
    status: str
    superseded_at: int | None
    text: Any

    @property
    def readable_text(self) -> str | None:
        return self.text if isinstance(self.text, str) and self.status != Status.RAW_DELETED else None


MESSAGE_COLUMNS = "r.number, r.id, r.turn_id, r.position, r.role, r.authority, r.status, r.superseded_at, t.text"
MESSAGE_TABLES = "records r LEFT JOIN texts t ON t.number = r.number"


class Span(NamedTuple):
    """Consecutive turns, and the positions of their messages: from `start` up to, not including, `end`, if any."""

    first: int
    last: int
    start: int
    end: int | None

    @property
    def condition(self) -> str:
        """The condition on a record `m`, besides its conversation."""
        return "m.position >= ?" if self.end is None else "m.position >= ? AND m.position < ?"

    @property
    def values(self) -> list[int]:
        return [self.start] if self.end is None else [self.start, self.end]


def read_turns(database: Database, conversation: int, condition: str, *values: Any) -> list[TurnRow]:
    found = database.execute(
        f"SELECT {TURN_COLUMNS} FROM {TURN_TABLES} WHERE u.conversation_id = ? AND {condition}",
        (conversation, *values),
    )
    return [TurnRow._make(row) for row in found.fetchall()]


def read_messages(database: Database, conversation: int, start: int, end: int | None) -> dict[str, list[MessageRow]]:
    """Return messages in order, by our own id of their turn."""
    span = Span(0, 0, start, end)
    found = database.execute(
        f"SELECT {MESSAGE_COLUMNS} FROM {MESSAGE_TABLES}"
        f" WHERE r.conversation_id = ? AND {span.condition.replace('m.', 'r.')} ORDER BY r.position",
        [conversation, *span.values],
    )
    gathered: dict[str, list[MessageRow]] = {}
    for row in map(MessageRow._make, found.fetchall()):
        gathered.setdefault(row.turn_id, []).append(row)
    return gathered


def is_own_id(turn_id: str) -> bool:
    """True if it has the form of our own ids: only then is it looked up among them."""
    return _OURS.fullmatch(turn_id) is not None


def turn_key(external_id: str) -> bytes:
    """Digest that replaces a host's id of a turn in an index; never equal to the key of a message."""
    return hashlib.blake2b(external_id.encode(), digest_size=16, person=b"turn").digest()


def encode_words(turn: NewTurn) -> str | None:
    """Encode a host's data about a turn, except its id; None if there is none."""
    by = {} if turn.attribution is None else {k: v for k, v in asdict(turn.attribution).items() if v is not None}
    refs = [
        [ref.host_kind, ref.business_ref_type, ref.business_ref_id, ref.relation, ref.visibility, ref.label]
        for ref in turn.host_refs
    ]
    if not by and not refs and turn.external_id is None:
        return None
    return json.dumps({"by": by, "refs": refs}, ensure_ascii=False)


def remove_labels(words: Any) -> str | None:
    """Remove labels from the words of a turn whose content was deleted; None if the words cannot be read."""
    try:
        read = json.loads(words)
        refs = [[*ref[:_LABEL], None] for ref in read["refs"]]
        return json.dumps({"by": read["by"], "refs": refs}, ensure_ascii=False)
    except (TypeError, ValueError, KeyError):
        return None


def build_turn(row: TurnRow, messages: Sequence[MessageRow], thread: Scope) -> TranscriptTurn:
    """Build a turn. `StoreCorrupt` if its rows are invalid; the error never contains a text."""
    try:
        attribution, host_refs = _decode_words(row)
        return TranscriptTurn(
            id=row.shown_id,
            sequence=row.sequence,
            key=key_of(thread),
            state=TranscriptState(row.state),
            messages=tuple(_build_message(message) for message in messages),
            committed_at=from_micros(row.recorded_at),
            host_refs=host_refs,
            attribution=attribution,
            delivery=None if row.delivery is None else DeliveryStatus(row.delivery),
        )
    except (HoldfastError, TypeError, ValueError, KeyError, OverflowError):
        problem = f"turn {row.sequence} of this conversation ({row.id}) cannot be read"
    raise StoreCorrupt(f"{problem}; run `holdfast transcript repair` to see what is wrong")


def _build_message(row: MessageRow) -> TranscriptMessage:
    authority = Authority.LEGACY_TRANSCRIPT if row.authority is None else Authority(row.authority)
    return TranscriptMessage(
        MessageId(row.id), Role(row.role), row.readable_text, authority, superseded=row.superseded_at is not None
    )


def _decode_words(row: TurnRow) -> tuple[ActorAttribution, tuple[HostOpaqueRef, ...]]:
    if row.number is None:
        return ActorAttribution(), ()
    read = json.loads(row.words)
    refs = tuple(
        HostOpaqueRef(kind, ref_type, ref_id, Relation(relation), HostRefVisibility(visibility), label)
        for kind, ref_type, ref_id, relation, visibility, label in read["refs"]
    )
    return ActorAttribution(**read["by"]), refs


CONVERSATION_COLUMNS = tuple("name" if part == "conversation" else part for part in CONVERSATION_PARTS)
OF_CONVERSATION = " AND ".join(f"c.{column} = ?" for column in CONVERSATION_COLUMNS)

# Columns of a conversation `c` that `next_position` and `next_sequence` take.
NEXT_POSITION = "c.least_position, (SELECT max(r.position) FROM records r WHERE r.conversation_id = c.id)"
NEXT_SEQUENCE = "c.least_sequence, (SELECT max(u.sequence) FROM turns u WHERE u.conversation_id = c.id)"


def next_position(found: Sequence[Any]) -> int:
    """Return the position after the last message, and after all forgotten ones."""
    least, last = found
    return int(least) if last is None else max(int(least), int(last) + 1)


# The same holds for turns.
next_sequence = next_position


def thread_of(partition: Partition, values: Sequence[str]) -> Scope:
    """Return the thread of a conversation in that partition, from its `CONVERSATION_COLUMNS`."""
    owner = {} if partition.kind is PartitionKind.SHARED else {partition.kind.value: partition.owner}
    named = {part: value for part, value in zip(CONVERSATION_PARTS, values, strict=True) if value}
    return Scope(space=partition.space, **owner, **named)


def conversation_key(scope: Scope) -> tuple[str, ...]:
    return tuple(getattr(scope, part) or "" for part in CONVERSATION_PARTS)
