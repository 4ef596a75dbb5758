"""Reading: a consistent view of what a grant reaches. Every statement goes through `_reach`; nothing else decides."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from holdfast.domain.access import Grant
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.ids import MessageId
from holdfast.domain.jobs import Job, JobStatus
from holdfast.domain.memory import Evidence
from holdfast.domain.operations import Operation
from holdfast.domain.results import Finding, HitKind, Record
from holdfast.domain.scope import CONVERSATION_PARTS, FILTER_PARTS, SCOPE_PARTS, Partition, PartitionKind, Scope
from holdfast.domain.times import from_micros, to_micros
from holdfast.ports import Answer, Delta, Doomed, IndexRow, ListFilter, Unindexed, VectorRow
from holdfast.stores.sqlite import integrity, rows

_CHUNK = 500


def chunks(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), _CHUNK):
        yield values[start : start + _CHUNK]


def marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


class SqliteReader:
    """Implements `ports.Reader` on one connection, inside one transaction."""

    def __init__(self, connection: sqlite3.Connection, grant: Grant) -> None:
        self._db = connection
        self._grant = grant
        self._reached: dict[Partition, int] | None = None

    # --- what the grant reaches ---

    def _partitions(self) -> dict[Partition, int]:
        if self._reached is None:
            self._reached = {
                Partition(space, PartitionKind(kind), owner): number
                for number, space, kind, owner in self._partition_rows()
            }
        return self._reached

    def _partition_rows(self) -> Iterable[tuple[int, str, str, str]]:
        select = "SELECT id, space, kind, owner FROM partitions"
        if self._grant.partitions is not None:
            for partition in sorted(self._grant.partitions):
                key = (partition.space, partition.kind, partition.owner)
                yield from self._db.execute(f"{select} WHERE space = ? AND kind = ? AND owner = ?", key)
        elif self._grant.everywhere:
            yield from self._db.execute(select)
        else:
            yield from self._db.execute(f"{select} WHERE space = ?", (self._grant.scope.space,))

    def _reach(self, alias: str = "r", *, keyed: bool = False) -> tuple[str, list[Any]]:
        """The condition on a table with `partition_id` that keeps a statement inside the grant.

        A `keyed` statement finds its rows by ids or numbers. There the partition is only checked: the plus sign keeps
        SQLite from walking through the whole of it.
        """
        column = f"{'+' if keyed else ''}{alias}.partition_id"
        if self._grant.partitions is None:
            if self._grant.everywhere:
                return "1", []
            return f"{column} IN (SELECT id FROM partitions WHERE space = ?)", [self._grant.scope.space]
        numbers = list(self._partitions().values())
        return f"{column} IN ({marks(numbers)})", numbers

    def _within(self, *, keyed: bool = False) -> tuple[str, list[Any]]:
        """`_reach`, and the other parts of the scope that were given; for statements over records and scopes."""
        condition, values = self._reach(keyed=keyed)
        for part in FILTER_PARTS:
            if (value := getattr(self._grant.scope, part)) is not None:
                condition += f" AND s.{part} = ?"
                values.append(value)
        return condition, values

    def _within_scope_of(self, alias: str, reach: tuple[str, list[Any]] | None = None) -> tuple[str, list[Any]]:
        """The same for tables whose rows carry their scope as JSON."""
        condition, values = reach or self._reach(alias)
        for part in FILTER_PARTS:
            if (value := getattr(self._grant.scope, part)) is not None:
                condition += f" AND json_extract({alias}.scope, '$.{part}') = ?"
                values.append(value)
        return condition, values

    # --- search ---

    def partitions(self) -> Sequence[Partition]:
        return list(self._partitions())

    def change_of(self, partition: Partition) -> int:
        number = self._partitions().get(partition)
        if number is None:
            return 0
        return int(self._db.execute("SELECT change FROM partitions WHERE id = ?", (number,)).fetchone()[0])

    def delta(self, partition: Partition, since: int, embedder: str) -> Delta:
        number = self._partitions().get(partition)
        if number is None:
            return Delta(0, (), (), (), {})
        found = self._db.execute(_DELTA_ROWS, (number, since)).fetchall()
        removed = self._db.execute(
            "SELECT number FROM tombstones WHERE partition_id = ? AND change > ?", (number, since)
        ).fetchall()
        return Delta(
            change=self.change_of(partition),
            rows=[IndexRow._make(row) for row in found],
            vectors=self._vectors(number, since, embedder),
            # A view that starts from nothing has nothing to remove.
            removed=[row[0] for row in removed] if since else (),
            scopes=self._scopes({row[_SCOPE_ID] for row in found}),
        )

    def _vectors(self, partition: int, since: int, embedder: str) -> list[VectorRow]:
        statement = _ALL_VECTORS if since == 0 else _CHANGED_VECTORS
        values = (partition, embedder) if since == 0 else (partition, since, embedder)
        return [VectorRow._make(row) for row in self._db.execute(statement, values)]

    def _scopes(self, numbers: set[int]) -> dict[int, Scope]:
        columns = ", ".join(SCOPE_PARTS)
        return {
            row[0]: rows.scope_of(row[1:])
            for chunk in chunks(sorted(numbers))
            for row in self._db.execute(f"SELECT id, {columns} FROM scopes WHERE id IN ({marks(chunk)})", chunk)
        }

    def fetch(self, numbers: Sequence[int]) -> dict[int, Record]:
        found: list[Any] = []
        for chunk in chunks(list(numbers)):
            found += self._select(f"r.number IN ({marks(chunk)})", chunk, keyed=True)
        return {row[0]: built for row, built in zip(found, self._built(found), strict=True)}

    def _built(self, found: Sequence[Any]) -> list[Record]:
        memories = [row[0] for row in found if row[1] == rows.MEMORY]
        evidence = self._evidence(memories) if memories else {}
        return [rows.record(row, evidence.get(row[0], ())) for row in found]

    def _evidence(self, numbers: Sequence[int]) -> dict[int, list[Evidence]]:
        gathered: dict[int, list[Evidence]] = {}
        within, values = self._within(keyed=True)
        for chunk in chunks(numbers):
            # A memory that is shared must not carry along what was said where the reader may not look.
            for memory, *row in self._db.execute(_EVIDENCE.format(marks(chunk), within), [*chunk, *values]):
                message_id, text, sender, said_at, conversation, external_id = row
                gathered.setdefault(memory, []).append(
                    Evidence(
                        MessageId(message_id), text, sender, from_micros(said_at), conversation or None, external_id
                    )
                )
        return gathered

    # --- look-up ---

    def _select(self, condition: str, values: Sequence[Any], tail: str = "", *, keyed: bool = False) -> list[Any]:
        within, reach_values = self._within(keyed=keyed)
        return self._db.execute(
            f"SELECT {rows.RECORD_COLUMNS} FROM {rows.RECORD_TABLES} WHERE {condition} AND {within} {tail}",
            [*values, *reach_values],
        ).fetchall()

    def find(self, record_id: str, as_of: datetime | None = None) -> tuple[int, Record] | None:
        if as_of is None:
            found = self._select("r.id = ? AND r.superseded_at IS NULL", [record_id], keyed=True)
        else:
            then = to_micros(as_of)
            found = self._select(f"r.id = ? AND {_KNOWN}", [record_id, then, then], keyed=True)
        return (found[0][0], self._built(found)[0]) if found else None

    def revisions(self, memory_id: str) -> Sequence[Record]:
        return self._built(self._select("r.id = ?", [memory_id], "ORDER BY r.revision", keyed=True))

    def page(self, wanted: ListFilter, before: str | None, limit: int) -> Sequence[Record]:
        condition, values = _listed(wanted)
        if before is not None:
            condition += " AND substr(r.id, 5) < ?"
            values.append(before)
        return self._built(self._select(condition, values, f"ORDER BY substr(r.id, 5) DESC LIMIT {int(limit)}"))

    def answer(self, partition: Partition, key: str) -> Answer | None:
        row = self._db.execute(
            "SELECT digest, ids, turn_id FROM answers WHERE partition_id = ? AND key = ?",
            (self._partitions().get(partition), key),
        ).fetchone()
        return Answer(row[0], tuple(json.loads(row[1])), row[2]) if row else None

    def unsealed(self, scope: Scope) -> Sequence[MessageId]:
        row = self._conversation(scope)
        if row is None:
            return []
        found = self._db.execute(
            "SELECT id FROM records WHERE conversation_id = ? AND position >= ? ORDER BY position", (row[0], row[2])
        )
        return [MessageId(record_id) for (record_id,) in found]

    def _conversation(self, scope: Scope) -> tuple[int, int, int] | None:
        """(number, next position, sealed position)"""
        found: tuple[int, int, int] | None = self._db.execute(
            "SELECT id, next_position, sealed FROM conversations"
            f" WHERE partition_id = ? AND {' AND '.join(f'{column} = ?' for column in CONVERSATION_COLUMNS)}",
            (self._partitions().get(scope.partition), *conversation_key(scope)),
        ).fetchone()
        return found

    # --- forgetting ---

    def doomed(self, target: ForgetTarget) -> Doomed:
        named = self._named(target)
        messages = {number: record_id for number, record_id, kind in named if kind == rows.MESSAGE}
        memories = {record_id for _, record_id, kind in named if kind == rows.MEMORY}
        derived, baseless, weakened = self._derived(messages, memories)
        revisions = self._revision_count([*memories, *derived]) + len(baseless)
        conversations = {row[0] for row in self._conversations_of(list(messages)) if row[0] is not None}
        everything = sorted([*messages.values(), *memories, *derived])
        return Doomed(
            fingerprint=hashlib.sha256("\n".join([*everything, str(revisions)]).encode()).hexdigest()[:32],
            message_ids=tuple(sorted(messages.values())),
            memory_ids=tuple(sorted(memories)),
            revisions=revisions,
            derived_ids=tuple(sorted(derived)),
            weakened=weakened,
            conversations=len(conversations),
            baseless=tuple(sorted(baseless)),
        )

    def _named(self, target: ForgetTarget) -> list[tuple[int, str, int]]:
        """(number, id, kind) of what the target names itself."""
        within, values = self._within(keyed=bool(target.ids))
        select = f"SELECT r.number, r.id, r.kind FROM records r JOIN scopes s ON s.id = r.scope_id WHERE {within}"
        if target.ids:
            return [
                row
                for chunk in chunks(target.ids)
                for row in self._db.execute(f"{select} AND r.id IN ({marks(chunk)})", [*values, *chunk])
            ]
        if target.conversation:
            return self._db.execute(f"{select} AND s.conversation = ?", [*values, target.conversation]).fetchall()
        if target.source:
            return self._db.execute(f"{select} AND r.source_key = ?", [*values, rows.key_of(target.source)]).fetchall()
        return self._db.execute(f"{select} AND s.subject = ?", [*values, target.subject]).fetchall()

    def _derived(self, messages: dict[int, str], memories: set[str]) -> tuple[set[str], set[int], int]:
        """What rests on those messages alone: memories by id, and older revisions, by number, of memories that stay.

        And how many memories only lose a link or an older revision. Whoever may forget what was said also forgets what
        was learned from it, wherever in the space that is kept.
        """
        space, values = self._in_space()
        touched: dict[int, tuple[str, bool]] = {}
        for chunk in chunks(list(messages)):
            for number, record_id, current in self._db.execute(
                _RESTING_ON.format(marks(chunk), space), [*chunk, *values]
            ):
                if record_id not in memories:
                    touched[number] = (record_id, bool(current))
        baseless = {number for number in touched if self._evidence_of(number) <= messages.keys()}
        gone = {touched[number][0] for number in baseless if touched[number][1]}
        older = {number for number in baseless if touched[number][0] not in gone}
        return gone, older, len({record_id for record_id, _ in touched.values()} - gone)

    def _in_space(self) -> tuple[str, list[Any]]:
        if self._grant.everywhere:
            return "1", []
        return "+r.partition_id IN (SELECT id FROM partitions WHERE space = ?)", [self._grant.scope.space]

    def _evidence_of(self, revision: int) -> set[int]:
        found = self._db.execute("SELECT message_number FROM evidence WHERE memory_number = ?", (revision,))
        return {row[0] for row in found}

    def _revision_count(self, memory_ids: Sequence[str]) -> int:
        return sum(
            int(self._db.execute(f"SELECT count(*) FROM records WHERE id IN ({marks(chunk)})", chunk).fetchone()[0])
            for chunk in chunks(memory_ids)
        )

    def _conversations_of(self, numbers: Sequence[int]) -> Iterator[tuple[int | None]]:
        for chunk in chunks(numbers):
            yield from self._db.execute(
                f"SELECT DISTINCT conversation_id FROM records WHERE number IN ({marks(chunk)})", chunk
            )

    # --- upkeep ---

    def counts(self, embedder: str, analyzer: int) -> dict[str, int]:
        within, values = self._within()
        row = self._db.execute(_COUNTS.format(within), [analyzer, embedder, *values]).fetchone()
        tombstones = self._db.execute(
            f"SELECT count(*) FROM tombstones r JOIN scopes s ON s.id = r.scope_id WHERE {within}", values
        ).fetchone()[0]
        counted = dict(zip(("messages", "memories", "conversations", "pending_vectors"), row, strict=True))
        return {**counted, "partitions": len(self._partitions()), "tombstones": tombstones}

    def unindexed(self, embedder: str, analyzer: int, after: int, limit: int) -> Sequence[Unindexed]:
        within, values = self._within()
        found = self._db.execute(_UNINDEXED.format(within), [after, analyzer, embedder, *values, limit])
        return [Unindexed(*row) for row in found]

    def waiting(self, record_ids: Sequence[str], embedder: str, analyzer: int) -> Sequence[Unindexed]:
        within, values = self._within(keyed=True)
        return [
            Unindexed(*row)
            for chunk in chunks(record_ids)
            for row in self._db.execute(
                _UNINDEXED.format(f"r.id IN ({marks(chunk)}) AND {within}"),
                [0, analyzer, embedder, *chunk, *values, len(chunk) * 100],
            )
        ]

    def in_slot(self, scope: Scope, slot: str) -> Record | None:
        exactly = " AND ".join(f"s.{part} = ?" for part in SCOPE_PARTS)
        found = self._select(
            f"r.partition_id = ? AND r.slot_key = ? AND r.superseded_at IS NULL AND {exactly}",
            [self._partitions().get(scope.partition), rows.key_of(slot), *rows.scope_values(scope)],
        )
        return self._built(found)[0] if found else None

    def fact(self, name: str) -> str | None:
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (name,)).fetchone()
        return row[0] if row else None

    def job_counts(self) -> dict[str, int]:
        within, values = self._within_scope_of("j")
        found = self._db.execute(f"SELECT j.status, count(*) FROM jobs j WHERE {within} GROUP BY j.status", values)
        return dict(found.fetchall())

    def due(self, now: datetime) -> bool:
        at = to_micros(now)
        row = self._db.execute(f"SELECT 1 FROM jobs WHERE {DUE} LIMIT 1", (at, at, at, at)).fetchone()
        return row is not None

    def jobs(self, status: JobStatus | None = None, limit: int = 100) -> Sequence[Job]:
        within, values = self._within_scope_of("j")
        condition = "" if status is None else "AND j.status = ?"
        found = self._db.execute(
            f"SELECT {rows.JOB_COLUMNS} FROM jobs j WHERE {within} {condition} ORDER BY j.id DESC LIMIT ?",
            [*values, *([] if status is None else [status]), limit],
        )
        return [rows.job(row) for row in found]

    def operations(self, limit: int = 100) -> Sequence[Operation]:
        within, values = self._within_scope_of("o")
        if self._grant.partitions is None and not self._grant.everywhere:
            # Calls about a subject that never was have no partition, but belong to the space all the same.
            within, values = self._within_scope_of("o", ("o.space = ?", [self._grant.scope.space]))
        found = self._db.execute(
            f"SELECT {rows.OPERATION_COLUMNS} FROM operations o WHERE {within} ORDER BY o.id DESC LIMIT ?",
            [*values, limit],
        )
        return [rows.operation(row) for row in found]

    def integrity(self, embedder: str) -> tuple[dict[str, int], Sequence[Finding]]:
        return integrity.check(self._db)


CONVERSATION_COLUMNS = tuple("name" if part == "conversation" else part for part in CONVERSATION_PARTS)


def conversation_key(scope: Scope) -> tuple[str, ...]:
    return tuple(getattr(scope, part) or "" for part in CONVERSATION_PARTS)


def _listed(wanted: ListFilter) -> tuple[str, list[Any]]:
    conditions: list[str] = []
    values: list[Any] = []

    def where(condition: str, *given: Any) -> None:
        conditions.append(condition)
        values.extend(given)

    if wanted.as_of is None:
        where("r.superseded_at IS NULL")
    else:
        where(_KNOWN, to_micros(wanted.as_of), to_micros(wanted.as_of))
    if wanted.valid_at is not None:
        where(_VALID, to_micros(wanted.valid_at), to_micros(wanted.valid_at))
    if wanted.kind is not None:
        where("r.kind = ?", rows.MESSAGE if wanted.kind is HitKind.MESSAGE else rows.MEMORY)
    if wanted.planes is not None:
        where(f"(r.plane IS NULL OR r.plane IN ({marks(list(wanted.planes))}))", *sorted(wanted.planes))
    if wanted.sender is not None:
        where("t.sender = ?", wanted.sender)
    if wanted.source is not None:
        where("r.source_key = ?", rows.key_of(wanted.source))
    if wanted.status is not None:
        where("r.status = ?", wanted.status)
    return " AND ".join(conditions), values


# A job from the future was queued before the clock went back: it must not wait until the clock is there again.
# A lease that ends later than this was given by a clock that has gone back since: nobody holds it.
_LONGEST_LEASE_MICROS = 3_600_000_000
DUE = (
    "status IN ('queued', 'running')"
    " AND CASE status WHEN 'queued' THEN run_after <= ? OR created_at > ? "
    f" ELSE lease_until <= ? OR lease_until > ? + {_LONGEST_LEASE_MICROS} END"
)

# Known at a moment: recorded by then, and not yet superseded.
_KNOWN = "r.recorded_at <= ? AND (r.superseded_at IS NULL OR r.superseded_at > ?)"
_VALID = "(r.valid_from IS NULL OR r.valid_from <= ?) AND (r.valid_to IS NULL OR r.valid_to > ?)"

_SCOPE_ID = IndexRow._fields.index("scope_id")
_SAID = ("sender", "source")
_DELTA_COLUMNS = ", ".join(f"{'t' if name in _SAID else 'r'}.{name}" for name in IndexRow._fields)
_DELTA_ROWS = (
    f"SELECT {_DELTA_COLUMNS} FROM records r JOIN texts t ON t.number = r.number"
    " WHERE r.partition_id = ? AND r.change > ? ORDER BY r.number"
)
_ALL_VECTORS = (
    "SELECT number, piece, vector FROM vectors"
    " WHERE partition_id = ? AND embedder_id = (SELECT id FROM embedders WHERE fingerprint = ?)"
    " ORDER BY number, piece"
)
_CHANGED_VECTORS = (
    "SELECT v.number, v.piece, v.vector FROM records r"
    " JOIN vectors v ON v.partition_id = r.partition_id AND v.number = r.number"
    " WHERE r.partition_id = ? AND r.change > ?"
    " AND v.embedder_id = (SELECT id FROM embedders WHERE fingerprint = ?) ORDER BY v.number, v.piece"
)
_EVIDENCE = (
    "SELECT e.memory_number, r.id, t.text, t.sender, r.said_at, s.conversation, t.external_id FROM evidence e"
    " JOIN records r ON r.number = e.message_number JOIN texts t ON t.number = r.number"
    " JOIN scopes s ON s.id = r.scope_id WHERE e.memory_number IN ({}) AND {} ORDER BY r.said_at, r.position"
)
_RESTING_ON = (
    "SELECT DISTINCT r.number, r.id, r.superseded_at IS NULL FROM evidence e"
    " JOIN records r ON r.number = e.memory_number"
    " WHERE e.message_number IN ({}) AND {}"
)
_COUNTS = (
    "SELECT count(*) FILTER (WHERE r.kind = 0), count(*) FILTER (WHERE r.kind = 1 AND r.superseded_at IS NULL),"
    " count(DISTINCT r.conversation_id),"
    " count(*) FILTER (WHERE r.embedder_id IS NULL OR r.analyzer <> ?"
    "   OR r.embedder_id IS NOT (SELECT id FROM embedders WHERE fingerprint = ?))"
    " FROM records r JOIN scopes s ON s.id = r.scope_id WHERE {}"
)
_UNINDEXED = (
    "SELECT r.number, r.id, t.text FROM records r JOIN texts t ON t.number = r.number"
    " JOIN scopes s ON s.id = r.scope_id WHERE r.number > ? AND (r.embedder_id IS NULL OR r.analyzer <> ?"
    "   OR r.embedder_id IS NOT (SELECT id FROM embedders WHERE fingerprint = ?))"
    " AND {} ORDER BY r.number LIMIT ?"
)
