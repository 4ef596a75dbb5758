"""The reader that all SQL stores share: a consistent view of what a grant reaches."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from holdfast.domain.access import ActorKind
from holdfast.domain.ids import MessageId
from holdfast.domain.jobs import Job, JobKind, JobStatus
from holdfast.domain.memory import Evidence
from holdfast.domain.results import Finding, HitKind, Record
from holdfast.domain.scope import CONVERSATION_PARTS, SCOPE_PARTS, Partition, Scope
from holdfast.domain.times import from_micros, to_micros
from holdfast.domain.view_access import can_read_store, owns_partition
from holdfast.errors import StoreCorrupt
from holdfast.ports import (
    IndexRow,
    LazyRows,
    ListFilter,
    NearestIndex,
    PartitionDelta,
    StoredResponse,
    UnindexedRecord,
    VectorRow,
)
from holdfast.stores.sql import integrity, rows
from holdfast.stores.sql.aliases_and_events import AliasEventReader
from holdfast.stores.sql.conversations import (
    CONVERSATION_COLUMNS,
    NEXT_POSITION,
    OF_CONVERSATION,
    conversation_key,
    next_position,
)
from holdfast.stores.sql.costs import CostReader
from holdfast.stores.sql.dialect import Dialect, Rows
from holdfast.stores.sql.forget_plan import TOOK_PLACE, ForgetPlanReader
from holdfast.stores.sql.job_queries import JobReader
from holdfast.stores.sql.operation_queries import OperationReader
from holdfast.stores.sql.transcript_check import TranscriptChecker
from holdfast.stores.sql.users import UserReader


class SqlReader(
    ForgetPlanReader, UserReader, TranscriptChecker, AliasEventReader, OperationReader, JobReader, CostReader
):
    """Implements `ports.Reader` on one connection, inside one transaction."""

    # --- search ---

    def partitions(self) -> Sequence[Partition]:
        return list(self._partitions())

    def change_of(self, partition: Partition) -> int:
        number = self._number_of(partition)
        # Read together with the number; it does not change within a snapshot.
        return 0 if number is None else self._seen_change[number]

    def delta(self, partition: Partition, since: int, embedder: str, vectors_after: int = 0) -> PartitionDelta:
        number = self._number_of(partition)
        if number is None:
            return PartitionDelta(0, (), (), (), {})
        # Send all before reading any result: over a network they travel together.
        changed = self._db.execute(_DELTA_ROWS, (number, since))
        vectors = self._vectors(number, max(since, vectors_after), embedder)
        # An empty view has nothing to remove.
        removed = self._db.execute(_REMOVED, (number, since, number, since)) if since else ()
        found = changed.fetchall()
        return PartitionDelta(
            change=self.change_of(partition),
            rows=LazyRows(IndexRow._make, found),
            vectors=LazyRows(VectorRow._make, self.dialect.vectors(vectors.fetchall())),
            removed=[row[0] for row in removed],
            scopes=self._scopes({row[_SCOPE_ID] for row in found}),
        )

    def nearest(self, partition: Partition, embedder: str) -> NearestIndex | None:
        return None

    def nearest_due(self, embedder: str, least: int) -> Sequence[Partition]:
        large = dict(self._db.execute(_LARGE, (least,)).fetchall())
        return (
            [
                partition
                for partition, number in self._partitions().items()
                if number in large and self._is_behind(self.nearest(partition, embedder), number, large[number])
            ]
            if large
            else []
        )

    def _is_behind(self, nearest: NearestIndex | None, partition: int, records: int) -> bool:
        if nearest is None or nearest.state.live:
            return nearest is None
        since = (partition, nearest.state.change)
        changed = sum(int(self._db.execute(statement, since).fetchone()[0]) for statement in _CHANGED_COUNTS)
        return changed > _BEHIND_SHARE * records

    def _vectors(self, partition: int, since: int, embedder: str) -> Rows:
        if since == 0:
            return self._db.execute(_ALL_VECTORS, (partition, embedder, partition))
        return self._db.execute(_CHANGED_VECTORS, (partition, since, embedder))

    def _scopes(self, numbers: set[int]) -> dict[int, Scope]:
        return {
            row[0]: rows.scope_of(row[1:])
            for condition, named in self._among("id", sorted(numbers))
            for row in self._db.execute(f"{_SCOPES} WHERE {condition}", named)
        }

    def fetch(self, numbers: Sequence[int]) -> dict[int, Record]:
        found: list[Any] = []
        for condition, named in self._among("r.number", list(numbers)):
            found += self._select(condition, named, keyed=True)
        return {row[0]: built for row, built in zip(found, self._built(found), strict=True)}

    def _built(self, found: Sequence[Any]) -> list[Record]:
        memories = [row[0] for row in found if row[1] == rows.MEMORY]
        evidence = self._evidence(memories) if memories else {}
        try:
            return [rows.record(row, evidence.get(row[0], ())) for row in found]
        except ValueError as error:
            raise StoreCorrupt("a record cannot be read; run `holdfast store verify` to see what is wrong") from error

    def _evidence(self, numbers: Sequence[int]) -> dict[int, list[Evidence]]:
        gathered: dict[int, list[Evidence]] = {}
        within, values = self._within(keyed=True)
        for condition, named in self._among("e.memory_number", numbers):
            # A shared memory must not reveal messages that the reader's grant does not reach.
            for memory, *row in self._db.execute(_EVIDENCE.format(condition, within), [*named, *values]):
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
        own, own_values = self._own()
        return self._db.execute(
            f"SELECT {rows.RECORD_COLUMNS} FROM {rows.RECORD_TABLES}"
            f" WHERE {condition} AND {rows.SHOWN} AND {own} AND {within} {tail}",
            [*values, *own_values, *reach_values],
        ).fetchall()

    def _own(self) -> tuple[str, list[Any]]:
        """Limit messages of a private authority to their owner, as the raw view does."""
        actor = self._grant.actor
        if actor.kind is ActorKind.SYSTEM or can_read_store(actor):
            return "TRUE", []
        open_to_all = "r.kind = 1 OR r.plane IS NULL"
        owned = (
            []
            if self._grant.partitions is None
            else [each for each in self._partitions() if owns_partition(actor, each)]
        )
        if not owned:
            return f"({open_to_all})", []
        condition, numbers = self.dialect.among("+r.partition_id", [self._partitions()[each] for each in owned])
        return f"({open_to_all} OR {condition})", numbers

    def find(self, record_id: str, as_of: datetime | None = None) -> tuple[int, Record] | None:
        if as_of is None:
            found = self._select("r.id = ? AND (r.superseded_at IS NULL OR r.kind = 0)", [record_id], keyed=True)
        else:
            then = to_micros(as_of)
            known = f"r.recorded_at <= ? AND (r.kind = 0 OR {_KNOWN})"
            found = self._select(f"r.id = ? AND {known}", [record_id, then, then, then], keyed=True)
        return (found[0][0], self._built(found)[0]) if found else None

    def revisions(self, record_id: str) -> Sequence[Record]:
        found = self._revision_rows(record_id)
        if not found:
            return []
        if found[0][1] == rows.MESSAGE:
            after = [
                row for (other,) in self._db.execute(_REPLACING, (record_id,)) for row in self._revision_rows(other)
            ]
            return self._built([*found, *after])
        before = [row for (other,) in self._db.execute(_REPLACED, (record_id,)) for row in self._revision_rows(other)]
        return self._built([*before, *found])

    def _revision_rows(self, record_id: str) -> list[Any]:
        return self._select("r.id = ?", [record_id], "ORDER BY r.revision", keyed=True)

    def page(self, wanted: ListFilter, before: str | None, limit: int) -> Sequence[Record]:
        condition, values = _filter_conditions(self.dialect, wanted)
        if before is not None:
            condition += " AND substr(r.id, 5) < ?"
            values.append(before)
        places = self._seals() if wanted.unsealed else None
        if wanted.unsealed:
            condition += f" AND ({_UNSEALED if places is None else ' OR '.join(_PLACED for _ in places)})"
            values += [value for place in places or () for value in place]
        newest = f"ORDER BY substr(r.id, 5) DESC LIMIT {int(limit)}"
        return self._built(self._select(condition, values, newest, keyed=places is not None))

    def _seals(self) -> list[tuple[int, int]] | None:
        """Return (number, sealed position) of the scope's conversations; None if it names none, or very many."""
        if self._grant.scope.conversation is None:
            return None
        reach, values = self._reach("c")
        for column, part in zip(CONVERSATION_COLUMNS, CONVERSATION_PARTS, strict=True):
            if (value := getattr(self._grant.scope, part)) is not None:
                reach += f" AND c.{column} = ?"
                values.append(value)
        found = self._db.execute(f"SELECT c.id, c.sealed FROM conversations c WHERE {reach} LIMIT ?", [*values, _MANY])
        # Matches nothing: no conversation has the number 0.
        places: list[tuple[int, int]] = [(row[0], row[1]) for row in found] or [(0, 0)]
        return None if len(places) == _MANY else places

    def answer(self, partition: Partition, key: str) -> StoredResponse | None:
        row = self._db.execute(
            "SELECT digest, body FROM answers WHERE partition_id = ? AND key = ?",
            (self._number_of(partition), key),
        ).fetchone()
        return StoredResponse(*row) if row else None

    def unsealed(self, scope: Scope) -> Sequence[MessageId]:
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
            (self._number_of(scope.partition), *conversation_key(scope)),
        ).fetchone()
        return (row[0], next_position(row[2:]), row[1]) if row else None

    # --- upkeep ---

    def counts(self, embedder: str, analyzer: int) -> dict[str, int]:
        within, values = self._within()
        row = self._db.execute(_COUNTS.format(within), [analyzer, embedder, analyzer, embedder, *values]).fetchone()
        tombstones = self._db.execute(
            f"SELECT count(*) FROM tombstones r JOIN scopes s ON s.id = r.scope_id WHERE r.kind < 2 AND {within}",
            values,
        ).fetchone()[0]
        named = ("messages", "memories", "conversations", "pending_vectors", "stale_vectors")
        counted = dict(zip(named, row, strict=True))
        reach, numbers = self._reach()
        indexed = self._db.execute(
            f"SELECT count(*) FROM nearest r WHERE {reach} AND {_OF_EMBEDDER}", [*numbers, embedder]
        )
        return {
            **counted,
            "partitions": len(self._partitions()),
            "tombstones": tombstones,
            "approximate": indexed.fetchone()[0],
            "users": self._user_count(),
            "resources": self._resource_count(),
        }

    def unindexed(self, embedder: str, analyzer: int, after: int, limit: int) -> Sequence[UnindexedRecord]:
        within, values = self._within()
        found = self._db.execute(_UNINDEXED.format(within), [after, analyzer, embedder, *values, limit])
        return [UnindexedRecord(*row) for row in found]

    def waiting(self, record_ids: Sequence[str], embedder: str, analyzer: int) -> Sequence[UnindexedRecord]:
        within, values = self._within(keyed=True)
        return [
            UnindexedRecord(*row)
            for condition, named in self._among("r.id", record_ids)
            for row in self._db.execute(
                _UNINDEXED.format(f"{condition} AND {within}"),
                [0, analyzer, embedder, *named, *values, len(record_ids) * 100],
            )
        ]

    def in_slot(self, scope: Scope, slot: str) -> Record | None:
        exactly = " AND ".join(f"s.{part} = ?" for part in SCOPE_PARTS)
        found = self._select(
            f"r.partition_id = ? AND r.slot_key = ? AND r.superseded_at IS NULL AND {exactly}",
            [self._number_of(scope.partition), rows.key_of(slot), *rows.scope_values(scope)],
        )
        return self._built(found)[0] if found else None

    def fact(self, name: str) -> str | None:
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (name,)).fetchone()
        return row[0] if row else None

    def job_counts(self) -> dict[str, int]:
        within, values = self._within_scope_of("j")
        found = self._db.execute(f"SELECT j.status, count(*) FROM jobs j WHERE {within} GROUP BY j.status", values)
        return dict(found.fetchall())

    def due(self, now: datetime, kinds: frozenset[JobKind] | None = None) -> bool:
        at = to_micros(now)
        of_kind, named = ("TRUE", []) if kinds is None else self.dialect.among("kind", sorted(kinds))
        row = self._db.execute(
            f"SELECT 1 FROM jobs WHERE {of_kind} AND ({DUE}) LIMIT 1", [*named, at, at, at, at]
        ).fetchone()
        return row is not None

    def jobs(self, status: JobStatus | None = None, limit: int = 100) -> Sequence[Job]:
        within, values = self._within_scope_of("j")
        condition = "" if status is None else "AND j.status = ?"
        found = self._db.execute(
            f"SELECT {rows.JOB_COLUMNS} FROM jobs j WHERE {within} {condition} ORDER BY j.id DESC LIMIT ?",
            [*values, *([] if status is None else [status]), limit],
        )
        return [rows.job(row) for row in found]

    def integrity(self, embedder: str) -> tuple[dict[str, int], Sequence[Finding]]:
        return integrity.check(self._db, self.dialect)


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


# A job created in the future was queued before the clock went back: it must not wait for the clock to catch up.
# A lease that ends later than this was granted before the clock went back: it is void.
_LONGEST_LEASE_MICROS = 3_600_000_000
DUE = (
    "status IN ('queued', 'running')"
    " AND CASE status WHEN 'queued' THEN run_after <= ? OR created_at > ? "
    f" ELSE lease_until <= ? OR lease_until > ? + {_LONGEST_LEASE_MICROS} END"
)

# Known at a moment: recorded by then, and not yet superseded.
_KNOWN = "r.recorded_at <= ? AND (r.superseded_at IS NULL OR r.superseded_at > ?)"
_VALID = "(r.valid_from IS NULL OR r.valid_from <= ?) AND (r.valid_to IS NULL OR r.valid_to > ?)"

# Ids only: the grant decides which of them can be read.
_REPLACING = f"SELECT r.id FROM {TOOK_PLACE} WHERE said.id = ?"
_REPLACED = f"SELECT said.id FROM {TOOK_PLACE} WHERE r.id = ?"

_PLACED = "r.conversation_id = ? AND r.position >= ?"
_MANY = 100
_UNSEALED = "r.position >= (SELECT c.sealed FROM conversations c WHERE c.id = r.conversation_id)"

_SCOPE_ID = IndexRow._fields.index("scope_id")
_SAID = ("sender", "source")
_DELTA_COLUMNS = ", ".join(f"{'t' if name in _SAID else 'r'}.{name}" for name in IndexRow._fields)
_DELTA_ROWS = (
    f"SELECT {_DELTA_COLUMNS} FROM records r JOIN texts t ON t.number = r.number"
    f" WHERE r.partition_id = ? AND r.change > ? AND {rows.SEARCHED} ORDER BY r.number"
)
# Records hidden from search are removed from the view, not only marked.
_REMOVED = (
    "SELECT number FROM tombstones WHERE partition_id = ? AND change > ?"
    f" UNION ALL SELECT number FROM records WHERE partition_id = ? AND change > ? AND {rows.HIDDEN}"
)
_SCOPES = f"SELECT id, {', '.join(SCOPE_PARTS)} FROM scopes"
_ALL_VECTORS = (
    "SELECT number, piece, vector FROM vectors"
    " WHERE partition_id = ? AND embedder_id = (SELECT id FROM embedders WHERE fingerprint = ?)"
    f" AND number NOT IN (SELECT number FROM records WHERE partition_id = ? AND {rows.HIDDEN})"
    " ORDER BY number, piece"
)
_CHANGED_VECTORS = (
    "SELECT v.number, v.piece, v.vector FROM records r"
    " JOIN vectors v ON v.partition_id = r.partition_id AND v.number = r.number"
    f" WHERE r.partition_id = ? AND r.change > ? AND {rows.SEARCHED}"
    " AND v.embedder_id = (SELECT id FROM embedders WHERE fingerprint = ?) ORDER BY v.number, v.piece"
)
_OF_EMBEDDER = "r.embedder_id = (SELECT id FROM embedders WHERE fingerprint = ?)"
# An approximate index is rebuilt when more than this share of records is new, changed or forgotten.
_BEHIND_SHARE = 0.1
_LARGE = "SELECT partition_id, count(*) FROM records GROUP BY partition_id HAVING count(*) >= ?"
_CHANGED_COUNTS = (
    "SELECT count(*) FROM records WHERE partition_id = ? AND change > ?",
    "SELECT count(*) FROM tombstones WHERE partition_id = ? AND change > ?",
)
_EVIDENCE = (
    "SELECT e.memory_number, r.id, t.text, t.sender, r.said_at, s.conversation, t.external_id FROM evidence e"
    " JOIN records r ON r.number = e.message_number JOIN texts t ON t.number = r.number"
    " JOIN scopes s ON s.id = r.scope_id"
    f" WHERE {{}} AND {{}} AND {rows.LEARNED_FROM} ORDER BY r.said_at, r.position"
)
_COUNTS = (
    f"SELECT count(*) FILTER (WHERE r.kind = 0 AND {rows.SHOWN}),"
    " count(*) FILTER (WHERE r.kind = 1 AND r.superseded_at IS NULL),"
    " count(DISTINCT r.conversation_id),"
    f" count(*) FILTER (WHERE {rows.SHOWN} AND (r.embedder_id IS NULL OR r.analyzer <> ?"
    "   OR r.embedder_id <> coalesce((SELECT id FROM embedders WHERE fingerprint = ?), 0))),"
    f" count(*) FILTER (WHERE {rows.SHOWN} AND r.analyzer <> ?"
    "   AND r.embedder_id = (SELECT id FROM embedders WHERE fingerprint = ?))"
    " FROM records r JOIN scopes s ON s.id = r.scope_id WHERE {}"
)
_UNINDEXED = (
    "SELECT r.number, r.id, t.text FROM records r JOIN texts t ON t.number = r.number"
    " JOIN scopes s ON s.id = r.scope_id WHERE r.number > ? AND (r.embedder_id IS NULL OR r.analyzer <> ?"
    "   OR r.embedder_id <> coalesce((SELECT id FROM embedders WHERE fingerprint = ?), 0))"
    f" AND {rows.SHOWN} AND {{}} ORDER BY r.number LIMIT ?"
)
