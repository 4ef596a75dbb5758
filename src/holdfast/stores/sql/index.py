"""The search index in SQL: changes and vectors of a partition, and the records that are not indexed yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.domain.scope import SCOPE_PARTS, Partition, PartitionKind, Scope
from holdfast.ports import (
    IndexRow,
    IndexUpdate,
    LazyRows,
    NearestIndex,
    PartitionDelta,
    UnindexedRecord,
    VectorRow,
)
from holdfast.stores.sql import rows
from holdfast.stores.sql.dialect import Rows
from holdfast.stores.sql.grant_scope import SqlRepository
from holdfast.stores.sql.write_scope import WriteScope, delete_vectors, put_vectors

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
# An approximate index is rebuilt when more than this share of records is new, changed or forgotten.
_BEHIND_SHARE = 0.1
_LARGE = "SELECT partition_id, count(*) FROM records GROUP BY partition_id HAVING count(*) >= ?"
_CHANGED_COUNTS = (
    "SELECT count(*) FROM records WHERE partition_id = ? AND change > ?",
    "SELECT count(*) FROM tombstones WHERE partition_id = ? AND change > ?",
)
_BACKLOG = (
    "SELECT r.number, r.id, t.text FROM records r JOIN texts t ON t.number = r.number"
    " JOIN scopes s ON s.id = r.scope_id WHERE r.number > ? AND (r.embedder_id IS NULL OR r.analyzer <> ?"
    "   OR r.embedder_id <> coalesce((SELECT id FROM embedders WHERE fingerprint = ?), 0))"
    f" AND {rows.SHOWN} AND {{}} ORDER BY r.number LIMIT ?"
)


class SqlIndexReader(SqlRepository):
    """Implements `IndexReader`."""

    def partitions(self) -> Sequence[Partition]:
        return list(self._scope.partitions())

    def change_of(self, partition: Partition) -> int:
        return self._scope.change_of(partition)

    def delta(self, partition: Partition, since: int, embedder: str, vectors_after: int = 0) -> PartitionDelta:
        number = self._scope.number_of(partition)
        if number is None:
            return PartitionDelta(0, (), (), (), {})
        # Send all before reading any result: over a network they travel together.
        changed = self._db.execute(_DELTA_ROWS, (number, since))
        vectors = self._vectors(number, max(since, vectors_after), embedder)
        # An empty view has nothing to remove.
        removed = self._db.execute(_REMOVED, (number, since, number, since)) if since else ()
        found = changed.fetchall()
        return PartitionDelta(
            change=self._scope.change_of(partition),
            rows=LazyRows(IndexRow._make, found),
            vectors=LazyRows(VectorRow._make, self._scope.dialect.vectors(vectors.fetchall())),
            removed=[row[0] for row in removed],
            scopes=self._scopes({row[_SCOPE_ID] for row in found}),
        )

    def nearest(self, partition: Partition, embedder: str) -> NearestIndex | None:
        number = self._scope.number_of(partition)
        return None if number is None else self._scope.nearest(number, embedder)

    def nearest_due(self, embedder: str, least: int) -> Sequence[Partition]:
        large = dict(self._db.execute(_LARGE, (least,)).fetchall())
        return (
            [
                partition
                for partition, number in self._scope.partitions().items()
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
        found = self._scope.rows_among("id", sorted(numbers), f"{_SCOPES} WHERE {{}}")
        return {row[0]: rows.scope_of(row[1:]) for row in found}

    def backlog(self, embedder: str, analyzer: int, after: int, limit: int) -> Sequence[UnindexedRecord]:
        within, values = self._scope.within()
        found = self._db.execute(_BACKLOG.format(within), [after, analyzer, embedder, *values, limit])
        return [UnindexedRecord(*row) for row in found]

    def backlog_of(self, record_ids: Sequence[str], embedder: str, analyzer: int) -> Sequence[UnindexedRecord]:
        within, values = self._scope.within(keyed=True)
        statement = _BACKLOG.format(f"{{}} AND {within}")
        after = [*values, len(record_ids) * 100]
        found = self._scope.rows_among("r.id", record_ids, statement, after, before=(0, analyzer, embedder))
        return [UnindexedRecord(*row) for row in found]


class SqlIndexWriter(SqlIndexReader):
    """Implements `IndexWriter`."""

    _scope: WriteScope

    def update(self, entries: Iterable[IndexUpdate], embedder: str, analyzer: int) -> None:
        embedder_id = self._scope.embedder_id(embedder)
        by_number = {entry.number: entry for entry in entries}
        places = self._places_of(list(by_number))
        changed = [(self._scope.change(partition), embedder_id, number) for number, partition in places.items()]
        # Update the records first: a concurrent forget of one comes before or after all of this.
        # And what is derived before the rest: a row whose terms were damaged fits its checksum again in between.
        self._db.executemany(
            "UPDATE records SET embedder_id = ?, analyzer = ?, flags = ?, length = ?, terms = ? WHERE number = ?",
            [
                (embedder_id, analyzer, int(made.flags), made.length, made.terms, number)
                for number in places
                if (made := by_number[number].analysis) is not None
            ],
        )
        self._db.executemany("UPDATE records SET change = ?, embedder_id = ? WHERE number = ?", changed)
        delete_vectors(self._scope, [(partition, number) for number, partition in places.items()])
        put_vectors(
            self._scope,
            ((partition, number, by_number[number].vectors) for number, partition in places.items()),
            embedder_id,
        )

    def _places_of(self, numbers: Sequence[int]) -> dict[int, int]:
        """Return the partition of each record that still exists."""
        found = self._placed_records(numbers)
        homes = {Partition(space, PartitionKind(kind), owner) for _, _, space, kind, owner in found}
        waited = [self._scope.enter(partition) for partition in sorted(homes)]
        if any(waited):
            found = self._placed_records(numbers)
        return {row[0]: row[1] for row in found}

    def _placed_records(self, numbers: Sequence[int]) -> list[Any]:
        reach, values = self._scope.reach(keyed=True)
        statement = (
            "SELECT r.number, p.id, p.space, p.kind, p.owner FROM records r"
            " JOIN partitions p ON p.id = r.partition_id"
            f" WHERE {{}} AND r.status <> 'raw_deleted' AND {reach}"
        )
        return self._scope.rows_among("r.number", numbers, statement, values)

    def mark_stale(self) -> int:
        reach, values = self._scope.reach()
        return self._db.execute(f"UPDATE records AS r SET analyzer = 0 WHERE {reach}", values).rowcount
