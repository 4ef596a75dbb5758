"""Aliases of conversations (chat ids) and the event log of a space."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.domain.events import Event, EventKind
from holdfast.domain.ids import EventId, MessageId
from holdfast.domain.memory import WITHHELD, MemoryRecord, Plane
from holdfast.domain.results import Record
from holdfast.domain.scope import CONVERSATION_PARTS, Partition, PartitionKind, Scope
from holdfast.domain.times import from_micros, to_micros
from holdfast.domain.transcript import Message
from holdfast.errors import AccessDenied
from holdfast.ports.transcripts import Alias, StoredAlias
from holdfast.stores.sql import rows
from holdfast.stores.sql.repair import RepairReader, RepairWriter

_EVENT_COLUMNS = "id, kind, scope, at, plane, record_key, content_hash, details"
_ALIAS = (
    "SELECT c.name, a.trusted, a.conversation_id FROM aliases a JOIN conversations c ON c.id = a.conversation_id"
    " WHERE a.partition_id = ? AND a.key = ?"
)
_PLACES = tuple(part for part in CONVERSATION_PARTS if part != "conversation")


def _alias_key(thread: Scope, chat_id: str) -> bytes:
    """Digest a chat id, as every name in an index: an index moves its entries, and would leave copies of the text."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (*(getattr(thread, name) or "" for name in _PLACES), chat_id):
        raw = part.encode()
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.digest()


def _thread(partition: Partition, name: str, parts: Sequence[str]) -> Scope:
    named = {part: value for part, value in zip(_PLACES, parts, strict=True) if value}
    owner = {} if partition.kind is PartitionKind.SHARED else {partition.kind.value: partition.owner}
    return Scope(space=partition.space, conversation=name or None, **owner, **named)


def _event(row: Sequence[Any]) -> Event:
    return Event(
        id=EventId(row[0]),
        kind=EventKind(row[1]),
        scope=rows.scope_from_json(row[2]),
        at=from_micros(row[3]),
        plane=None if row[4] is None else Plane(row[4]),
        record_key=row[5],
        content_hash=row[6],
        details=json.loads(row[7]) if row[7] else {},
    )


class AliasEventReader(RepairReader):
    """The part of `ports.Reader` that is about aliases and events."""

    def alias(self, thread: Scope, chat_id: str) -> Alias | None:
        row = self._alias_row(self._number_of(thread.partition), thread, chat_id)
        return None if row is None else Alias(row[0], bool(row[1]))

    def _alias_row(self, partition: int | None, thread: Scope, chat_id: str) -> Any:
        # A grant for one conversation may look up which one a chat id stands for.
        granted = self._grant.scope
        if partition is None or any(getattr(granted, part) not in (None, getattr(thread, part)) for part in _PLACES):
            return None
        return self._db.execute(_ALIAS, (partition, _alias_key(thread, chat_id))).fetchone()

    def aliases(self, partition: Partition, after: bytes, limit: int) -> Sequence[StoredAlias]:
        number = self._number_of(partition)
        if number is None:
            return []
        found = self._db.execute(
            f"SELECT a.key, a.trusted, a.recorded_at, c.name, {', '.join(f'c.{part}' for part in _PLACES)}"
            " FROM aliases a JOIN conversations c ON c.id = a.conversation_id"
            " WHERE a.partition_id = ? AND a.key > ? ORDER BY a.key LIMIT ?",
            (number, after, limit),
        )
        return [
            StoredAlias(_thread(partition, row[3], row[4:]), bytes(row[0]), bool(row[1]), from_micros(row[2]))
            for row in found
        ]

    def messages(self, message_ids: Sequence[str]) -> Mapping[str, Message]:
        within, values = self._within(keyed=True)
        shown, withheld = self.dialect.among("r.status", sorted(WITHHELD))
        found = (
            rows.record(row)
            for condition, named in self._among("r.id", message_ids)
            for row in self._db.execute(
                f"SELECT {rows.RECORD_COLUMNS} FROM {rows.RECORD_TABLES}"
                f" WHERE {condition} AND r.kind = {rows.MESSAGE} AND NOT {shown} AND {within}",
                [*named, *withheld, *values],
            )
        )
        return {message.id: message for message in found if isinstance(message, Message)}

    def memories(self, after: str, limit: int) -> Sequence[Sequence[MemoryRecord]]:
        within, values = self._within(keyed=True)
        of_memories = f"FROM {rows.RECORD_TABLES} WHERE r.kind = {rows.MEMORY} AND {within}"
        ids = [
            row[0]
            for row in self._db.execute(
                f"SELECT DISTINCT r.id {of_memories} AND r.id > ? ORDER BY r.id LIMIT ?", [*values, after, limit]
            )
        ]
        found: dict[str, list[MemoryRecord]] = {memory_id: [] for memory_id in ids}
        for condition, named in self._among("r.id", ids):
            statement = f"SELECT {rows.RECORD_COLUMNS} {of_memories} AND {condition} ORDER BY r.id, r.revision"
            for built in self._built(self._db.execute(statement, [*values, *named]).fetchall()):
                if isinstance(built, MemoryRecord):
                    found[built.id].append(built)
        return list(found.values())

    def links(self, memory_ids: Sequence[str]) -> Mapping[tuple[str, int], Sequence[MessageId]]:
        within, values = self._within(keyed=True)
        found: dict[tuple[str, int], list[MessageId]] = {}
        for condition, named in self._among("r.id", memory_ids):
            for memory_id, revision, message_id in self._db.execute(
                "SELECT r.id, r.revision, m.id FROM records r JOIN scopes s ON s.id = r.scope_id"
                " JOIN evidence e ON e.memory_number = r.number JOIN records m ON m.number = e.message_number"
                f" WHERE {condition} AND {within} ORDER BY m.id",
                [*named, *values],
            ):
                found.setdefault((memory_id, revision), []).append(MessageId(message_id))
        return found

    def _built(self, found: Sequence[Any]) -> list[Record]:
        """Build records with their evidence; the subclass implements it."""
        raise NotImplementedError

    def present(self, record_ids: Sequence[str]) -> frozenset[str]:
        return frozenset(
            row[0]
            for condition, named in self._among("id", record_ids)
            for row in self._db.execute(f"SELECT id FROM records WHERE {condition}", named)
        )

    def buried(self, partition: Partition, record_ids: Sequence[str]) -> frozenset[str]:
        number = self._number_of(partition)
        return frozenset(
            row[0]
            for condition, named in self._among("id", record_ids if number is not None else ())
            for row in self._db.execute(
                f"SELECT id FROM tombstones WHERE partition_id = ? AND {condition}", [number, *named]
            )
        )

    def events(
        self, limit: int, kinds: frozenset[EventKind] | None = None, before: str | None = None
    ) -> Sequence[Event]:
        within, values = self._within_scope_of("e", ("TRUE", []))
        if not self._grant.everywhere:
            # Events about a subject without a partition still belong to the space.
            reach, numbers = ("TRUE", []) if self._grant.partitions is None else self._reach("e")
            within, values = self._within_scope_of(
                "e", (f"e.space = ? AND {reach}", [self._grant.scope.space, *numbers])
            )
        if kinds is not None:
            named, of_kind = self.dialect.among("e.kind", sorted(kinds))
            within, values = f"{within} AND {named}", [*values, *of_kind]
        if before is not None:
            within, values = f"{within} AND e.id < ?", [*values, before]
        found = self._db.execute(
            f"SELECT {_EVENT_COLUMNS} FROM events e WHERE {within} ORDER BY e.id DESC LIMIT ?", [*values, limit]
        )
        return [_event(row) for row in found]


class AliasEventWriter(AliasEventReader, RepairWriter):
    """The part of `ports.Transaction` that is about aliases and events. The subclass provides row numbers."""

    def _partition_id(self, partition: Partition) -> int:
        raise NotImplementedError

    def _conversation_id(self, partition: int, scope: Scope) -> int:
        raise NotImplementedError

    def put_alias(self, thread: Scope, chat_id: str, at: datetime) -> Alias:
        partition = self._partition_id(thread.partition)
        conversation = self._conversation_id(partition, thread)
        key = _alias_key(thread, chat_id)
        existing = self._db.execute(_ALIAS, (partition, key)).fetchone()
        if existing is None:
            self._db.execute(
                "INSERT INTO aliases (partition_id, key, conversation_id, trusted, recorded_at) VALUES (?, ?, ?, 1, ?)",
                (partition, key, conversation, to_micros(at)),
            )
            return Alias(thread.conversation or "", trusted=True)
        name, trusted, stood_for = existing
        if trusted and stood_for != conversation:
            # The chat id is ambiguous from now on.
            self._db.execute(
                "UPDATE aliases SET trusted = 0, recorded_at = ? WHERE partition_id = ? AND key = ?",
                (to_micros(at), partition, key),
            )
            return Alias(name, trusted=False)
        return Alias(name, bool(trusted))

    def keep_alias(self, alias: StoredAlias) -> bool:
        partition = self._partition_id(alias.thread.partition)
        conversation = self._conversation_id(partition, alias.thread)
        existing = self._db.execute(_ALIAS, (partition, alias.key)).fetchone()
        if existing is None:
            self._db.execute(
                "INSERT INTO aliases (partition_id, key, conversation_id, trusted, recorded_at) VALUES (?, ?, ?, ?, ?)",
                (partition, alias.key, conversation, int(alias.trusted), to_micros(alias.recorded_at)),
            )
            return True
        if not alias.trusted or existing[2] != conversation:
            self._db.execute(
                "UPDATE aliases SET trusted = 0 WHERE partition_id = ? AND key = ?", (partition, alias.key)
            )
        return False

    def append_event(self, event: Event) -> None:
        place = event.scope.partition
        if not self._grant.reaches(place):
            raise AccessDenied("the grant does not reach this scope")
        details = json.dumps(dict(event.details), ensure_ascii=False, sort_keys=True) if event.details else None
        self._db.execute(
            "INSERT INTO events (space, id, kind, scope, partition_id, plane, record_key, content_hash, at, details)"
            " VALUES (?, ?, ?, ?, (SELECT id FROM partitions WHERE space = ? AND kind = ? AND owner = ?),"
            " ?, ?, ?, ?, ?)",
            (
                place.space, event.id, event.kind, rows.scope_json(event.scope), place.space, place.kind, place.owner,
                event.plane, event.record_key, event.content_hash, to_micros(event.at), details,
            ),
        )  # fmt: skip

    def prune_events(self, space: str, keep: int) -> int:
        if not (self._grant.everywhere or self._grant.scope.space == space):
            raise AccessDenied("the grant does not reach this space")
        return self._prune(space, keep)
