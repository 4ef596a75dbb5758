"""Read records within a grant: by number, by id, by filter, and all of them for an export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.domain.access import ActorKind, can_read_store, owns_partition
from holdfast.domain.forgetting import ForgetPlan, ForgetTarget
from holdfast.domain.ids import MemoryId, MessageId
from holdfast.domain.memory import WITHHELD, Evidence, MemoryRecord
from holdfast.domain.results import HitKind, Record
from holdfast.domain.scope import CONVERSATION_PARTS, SCOPE_PARTS, Partition, PartitionKind, Scope
from holdfast.domain.times import from_micros, to_micros
from holdfast.domain.transcript import Message
from holdfast.errors import StoreCorrupt
from holdfast.ports import ListFilter, StoredResponse
from holdfast.stores.sql import rows
from holdfast.stores.sql.dialect import Dialect
from holdfast.stores.sql.grant_scope import SqlRepository
from holdfast.stores.sql.records.forget_plan import TOOK_PLACE, ForgetPlanner
from holdfast.stores.sql.transcripts.rows import CONVERSATION_COLUMNS


class SqlRecordReader(SqlRepository):
    """Implements `RecordReader`."""

    def fetch(self, numbers: Sequence[int]) -> dict[int, Record]:
        found: list[Any] = []
        for condition, named in self._scope.among("r.number", list(numbers)):
            found += self._select(condition, named, keyed=True)
        return {row[0]: built for row, built in zip(found, self._build(found, marked=False), strict=True)}

    def _build(self, found: Sequence[Any], *, marked: bool = True) -> list[Record]:
        """Build records with their evidence, and with the marks of contradictions, unless it must be fast."""
        memories = [row[0] for row in found if row[1] == rows.MEMORY]
        evidence = self._evidence(memories) if memories else {}
        marks = self._marks("c.memory_number", memories) if memories and marked else {}
        try:
            return [rows.record(row, evidence.get(row[0], ()), marks.get(row[0], ())) for row in found]
        except ValueError as error:
            raise StoreCorrupt("a record cannot be read; run `holdfast store verify` to see what is wrong") from error

    def _evidence(self, numbers: Sequence[int]) -> dict[int, list[Evidence]]:
        gathered: dict[int, list[Evidence]] = {}
        within, values = self._scope.within(keyed=True)
        for condition, named in self._scope.among("e.memory_number", numbers):
            # A shared memory must not reveal messages that the reader's grant does not reach.
            for memory, *row in self._db.execute(_EVIDENCE.format(condition, within), [*named, *values]):
                message_id, text, sender, said_at, conversation, external_id = row
                gathered.setdefault(memory, []).append(
                    Evidence(
                        MessageId(message_id), text, sender, from_micros(said_at), conversation or None, external_id
                    )
                )
        return gathered

    def _marks(self, column: str, keys: Sequence[Any]) -> dict[Any, list[MemoryId]]:
        """Return the ids of contradicted memories by a key of the revisions that are marked."""
        gathered: dict[Any, list[MemoryId]] = {}
        within, values = self._scope.within(keyed=True)
        is_old = "FALSE" if column == "r.id" else "r.superseded_at IS NOT NULL"
        current = " AND r.superseded_at IS NULL" if column == "r.id" else ""
        statement = _MARKS.format(column=column, among="{}", within=within + current, is_old=is_old)
        for key, contradicted in self._scope.rows_among(column, keys, statement, values):
            gathered.setdefault(key, []).append(MemoryId(contradicted))
        return gathered

    def _select(self, condition: str, values: Sequence[Any], tail: str = "", *, keyed: bool = False) -> list[Any]:
        within, reach_values = self._scope.within(keyed=keyed)
        own, own_values = self._own()
        return self._db.execute(
            f"SELECT {rows.RECORD_COLUMNS} FROM {rows.RECORD_TABLES}"
            f" WHERE {condition} AND {rows.SHOWN} AND {own} AND {within} {tail}",
            [*values, *own_values, *reach_values],
        ).fetchall()

    def _own(self) -> tuple[str, list[Any]]:
        """Limit messages of a private authority to their owner, as the raw view does."""
        actor = self._scope.grant.actor
        if actor.kind is ActorKind.SYSTEM or can_read_store(actor):
            return "TRUE", []
        open_to_all = "r.kind = 1 OR r.plane IS NULL"
        owned = (
            []
            if self._scope.grant.partitions is None
            else [each for each in self._scope.partitions() if owns_partition(actor, each)]
        )
        if not owned:
            return f"({open_to_all})", []
        condition, numbers = self._scope.dialect.among(
            "+r.partition_id", [self._scope.partitions()[each] for each in owned]
        )
        return f"({open_to_all} OR {condition})", numbers

    def find(self, record_id: str, as_of: datetime | None = None) -> tuple[int, Record] | None:
        if as_of is None:
            found = self._select("r.id = ? AND (r.superseded_at IS NULL OR r.kind = 0)", [record_id], keyed=True)
        else:
            then = to_micros(as_of)
            known = f"r.recorded_at <= ? AND (r.kind = 0 OR {_KNOWN})"
            found = self._select(f"r.id = ? AND {known}", [record_id, then, then, then], keyed=True)
        return (found[0][0], self._build(found)[0]) if found else None

    def revisions(self, record_id: str) -> Sequence[Record]:
        found = self._revision_rows(record_id)
        if not found:
            return []
        if found[0][1] == rows.MESSAGE:
            after = [
                row for (other,) in self._db.execute(_REPLACING, (record_id,)) for row in self._revision_rows(other)
            ]
            return self._build([*found, *after])
        before = [row for (other,) in self._db.execute(_REPLACED, (record_id,)) for row in self._revision_rows(other)]
        return self._build([*before, *found])

    def _revision_rows(self, record_id: str) -> list[Any]:
        return self._select("r.id = ?", [record_id], "ORDER BY r.revision", keyed=True)

    def page(self, wanted: ListFilter, before: str | None, limit: int) -> Sequence[Record]:
        condition, values = _filter_conditions(self._scope.dialect, wanted)
        if before is not None:
            condition += " AND substr(r.id, 5) < ?"
            values.append(before)
        places = self._seals() if wanted.unsealed else None
        if wanted.unsealed:
            condition += f" AND ({_UNSEALED if places is None else ' OR '.join(_PLACED for _ in places)})"
            values += [value for place in places or () for value in place]
        newest = f"ORDER BY substr(r.id, 5) DESC LIMIT {int(limit)}"
        return self._build(self._select(condition, values, newest, keyed=places is not None))

    def _seals(self) -> list[tuple[int, int]] | None:
        """Return (number, sealed position) of the scope's conversations; None if it names none, or very many."""
        if self._scope.grant.scope.conversation is None:
            return None
        reach, values = self._scope.reach("c")
        for column, part in zip(CONVERSATION_COLUMNS, CONVERSATION_PARTS, strict=True):
            if (value := getattr(self._scope.grant.scope, part)) is not None:
                reach += f" AND c.{column} = ?"
                values.append(value)
        found = self._db.execute(f"SELECT c.id, c.sealed FROM conversations c WHERE {reach} LIMIT ?", [*values, _MANY])
        # Matches nothing: no conversation has the number 0.
        places: list[tuple[int, int]] = [(row[0], row[1]) for row in found] or [(0, 0)]
        return None if len(places) == _MANY else places

    def in_slot(self, scope: Scope, slot: str) -> Record | None:
        exactly = " AND ".join(f"s.{part} = ?" for part in SCOPE_PARTS)
        found = self._select(
            f"r.partition_id = ? AND r.slot_key = ? AND r.superseded_at IS NULL AND {exactly}",
            [self._scope.number_of(scope.partition), rows.key_of(slot), *rows.scope_values(scope)],
            "ORDER BY r.id DESC LIMIT 1",
        )
        return self._build(found)[0] if found else None

    def messages(self, message_ids: Sequence[str]) -> Mapping[str, Message]:
        within, values = self._scope.within(keyed=True)
        shown, withheld = self._scope.dialect.among("r.status", sorted(WITHHELD))
        statement = (
            f"SELECT {rows.RECORD_COLUMNS} FROM {rows.RECORD_TABLES}"
            f" WHERE {{}} AND r.kind = {rows.MESSAGE} AND NOT {shown} AND {within}"
        )
        found = map(rows.record, self._scope.rows_among("r.id", message_ids, statement, [*withheld, *values]))
        return {message.id: message for message in found if isinstance(message, Message)}

    def memories(self, after: str, limit: int) -> Sequence[Sequence[MemoryRecord]]:
        within, values = self._scope.within(keyed=True)
        of_memories = f"FROM {rows.RECORD_TABLES} WHERE r.kind = {rows.MEMORY} AND {within}"
        found = self._db.execute(
            f"SELECT DISTINCT r.id {of_memories} AND r.id > ? ORDER BY r.id LIMIT ?", [*values, after, limit]
        )
        return self.histories([row[0] for row in found])

    def histories(self, memory_ids: Sequence[str]) -> Sequence[Sequence[MemoryRecord]]:
        within, values = self._scope.within(keyed=True)
        statement = (
            f"SELECT {rows.RECORD_COLUMNS} FROM {rows.RECORD_TABLES}"
            f" WHERE r.kind = {rows.MEMORY} AND {within} AND {{}} ORDER BY r.id, r.revision"
        )
        found: dict[str, list[MemoryRecord]] = {}
        for built in self._build(self._scope.rows_among("r.id", memory_ids, statement, before=values)):
            if isinstance(built, MemoryRecord):
                found.setdefault(built.id, []).append(built)
        return [found[memory_id] for memory_id in sorted(found)]

    def resting_on(self, message_ids: Sequence[str]) -> Sequence[MemoryId]:
        within, values = self._scope.within(keyed=True)
        statement = (
            "SELECT DISTINCT r.id FROM records m JOIN evidence e ON e.message_number = m.number"
            " JOIN records r ON r.number = e.memory_number JOIN scopes s ON s.id = r.scope_id"
            f" WHERE {{}} AND {within}"
        )
        return sorted({MemoryId(row[0]) for row in self._scope.rows_among("m.id", message_ids, statement, values)})

    def contradictions(self, memory_ids: Sequence[str]) -> Mapping[str, Sequence[MemoryId]]:
        return self._marks("r.id", memory_ids)

    def links(self, memory_ids: Sequence[str]) -> Mapping[tuple[str, int], Sequence[MessageId]]:
        within, values = self._scope.within(keyed=True)
        found: dict[tuple[str, int], list[MessageId]] = {}
        statement = (
            "SELECT r.id, r.revision, m.id FROM records r JOIN scopes s ON s.id = r.scope_id"
            " JOIN evidence e ON e.memory_number = r.number JOIN records m ON m.number = e.message_number"
            f" WHERE {{}} AND {within} ORDER BY m.id"
        )
        for memory_id, revision, message_id in self._scope.rows_among("r.id", memory_ids, statement, values):
            found.setdefault((memory_id, revision), []).append(MessageId(message_id))
        return found

    def existing_ids(self, record_ids: Sequence[str]) -> frozenset[str]:
        found = self._scope.rows_among("id", record_ids, "SELECT id FROM records WHERE {}")
        return frozenset(record_id for (record_id,) in found)

    def tombstones(self, partition: Partition, record_ids: Sequence[str]) -> frozenset[str]:
        number = self._scope.number_of(partition)
        ids = () if number is None else record_ids
        statement = "SELECT id FROM tombstones WHERE partition_id = ? AND {}"
        return frozenset(row[0] for row in self._scope.rows_among("id", ids, statement, before=(number,)))

    def occupied_partitions(self) -> Sequence[Partition]:
        within, values = self._scope.within("s")
        return [
            Partition(space, PartitionKind(kind), owner)
            for space, kind, owner in self._db.execute(_OCCUPIED.format(within), values)
        ]

    def plan_forget(self, target: ForgetTarget) -> ForgetPlan:
        return ForgetPlanner(self._scope).plan(target)

    def response(self, partition: Partition, key: str) -> StoredResponse | None:
        row = self._db.execute(
            "SELECT digest, body FROM answers WHERE partition_id = ? AND key = ?",
            (self._scope.number_of(partition), key),
        ).fetchone()
        return StoredResponse(*row) if row else None


def _filter_conditions(dialect: Dialect, wanted: ListFilter) -> tuple[str, list[Any]]:
    conditions: list[str] = []
    values: list[Any] = []

    def where(condition: str, *parameters: Any) -> None:
        conditions.append(condition)
        values.extend(parameters)

    if wanted.as_of is None:
        where("r.superseded_at IS NULL")
    else:
        where(_KNOWN, to_micros(wanted.as_of), to_micros(wanted.as_of))
    if wanted.valid_at is not None:
        where(_VALID, to_micros(wanted.valid_at), to_micros(wanted.valid_at))
    if wanted.kind is not None:
        where("r.kind = ?", rows.MESSAGE if wanted.kind is HitKind.MESSAGE else rows.MEMORY)
    if wanted.planes is not None:
        named, planes = dialect.among("r.plane", sorted(wanted.planes))
        where(f"(r.plane IS NULL OR {named})", *planes)
    if wanted.sender is not None:
        where("t.sender = ?", wanted.sender)
    if wanted.source is not None:
        where("r.source_key = ?", rows.key_of(wanted.source))
    if wanted.status is not None:
        where("r.status = ?", wanted.status)
    return " AND ".join(conditions), values


# Known at a moment: recorded by then, and not yet superseded.
_KNOWN = "r.recorded_at <= ? AND (r.superseded_at IS NULL OR r.superseded_at > ?)"
_VALID = "(r.valid_from IS NULL OR r.valid_from <= ?) AND (r.valid_to IS NULL OR r.valid_to > ?)"

# Ids only: the grant decides which of them can be read.
_REPLACING = f"SELECT r.id FROM {TOOK_PLACE} WHERE said.id = ?"
_REPLACED = f"SELECT said.id FROM {TOOK_PLACE} WHERE r.id = ?"

_PLACED = "r.conversation_id = ? AND r.position >= ?"
_MANY = 100
_UNSEALED = "r.position >= (SELECT c.sealed FROM conversations c WHERE c.id = r.conversation_id)"
_EVIDENCE = (
    "SELECT e.memory_number, r.id, t.text, t.sender, r.said_at, s.conversation, t.external_id FROM evidence e"
    " JOIN records r ON r.number = e.message_number JOIN texts t ON t.number = r.number"
    " JOIN scopes s ON s.id = r.scope_id"
    f" WHERE {{}} AND {{}} AND {rows.LEARNED_FROM} ORDER BY r.said_at, r.position"
)
# The mark of a current revision counts while the other memory's current one has it, too.
_MARKS = (
    "SELECT {column}, c.contradicted_id FROM contradictions c JOIN records r ON r.number = c.memory_number"
    " JOIN scopes s ON s.id = r.scope_id WHERE {among} AND {within} AND ({is_old} OR EXISTS (SELECT 1 FROM records o"
    " JOIN contradictions b ON b.memory_number = o.number WHERE o.id = c.contradicted_id AND o.superseded_at IS NULL"
    " AND +o.partition_id = r.partition_id AND o.status = 'accepted' AND b.contradicted_id = r.id))"
    " ORDER BY c.contradicted_id"
)
# The index finds scopes by the name of a conversation; the rows of each are searched until the first is found, as a
# forget there would do.
_OCCUPIED = (
    "SELECT DISTINCT p.space, p.kind, p.owner FROM scopes s JOIN partitions p ON p.id = s.partition_id WHERE {} AND ("
    "EXISTS (SELECT 1 FROM records r WHERE r.partition_id = s.partition_id AND r.scope_id = s.id)"
    " OR EXISTS (SELECT 1 FROM resources r WHERE r.scope_id = s.id))"
)
