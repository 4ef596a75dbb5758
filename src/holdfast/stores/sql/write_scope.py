"""The scope of a write, and the parts of new rows that depend on it.

It finds or creates the rows of partitions, scopes, conversations and embedders, whose numbers never change and are
cached. New messages and memories share their columns, and the way their vectors are stored.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from holdfast.domain.access import Grant
from holdfast.domain.scope import SCOPE_PARTS, Partition, Scope
from holdfast.domain.times import to_micros
from holdfast.errors import AccessDenied
from holdfast.ports import NewMessage, NewRevision
from holdfast.stores.sql import rows
from holdfast.stores.sql.dialect import Database, Dialect, Rows, insert_statement
from holdfast.stores.sql.grant_scope import GrantScope
from holdfast.stores.sql.transcripts.rows import CONVERSATION_COLUMNS, conversation_key

_MOST = 50_000
_SCOPE_COLUMNS = ("partition_id", *SCOPE_PARTS)
_CONVERSATION_COLUMNS = ("partition_id", *CONVERSATION_COLUMNS)
# Columns of every record: `shared_values`, `index_values`, and more; then those of a memory's revision.
RECORD_COLUMNS = (
    "partition_id", "change", "kind", "scope_id", "source_key", "recorded_at", "analyzer", "flags", "length",
    "embedder_id", "terms", "id", "revision", "position", "status", "trust", "said_at",
)  # fmt: skip
MEMORY_COLUMNS = (*RECORD_COLUMNS, "plane", "slot_key", "valid_from", "valid_to", "authority")
# Marks, in place of the authority of a message, the memories that a runtime wrote.
_BY_RUNTIME = "runtime"
TEXT_COLUMNS = ("sender", "source", "external_id", "author", "reason", "metadata", "text")
_VECTOR_COLUMNS = ("partition_id", "number", "piece", "embedder_id", "vector")


class RowIdCache:
    """Cache of row numbers. A commit keeps the entries of its transaction; a rollback drops all uncommitted ones."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._committed: dict[Hashable, int] = {}
        self._fresh: dict[Hashable, int] = {}

    def get(self, key: Hashable) -> int | None:
        found = self._committed.get(key)
        return self._fresh.get(key) if found is None else found

    def add(self, key: Hashable, number: int) -> None:
        self._fresh[key] = number

    def commit(self) -> None:
        """Keep the new entries: the transaction is committed."""
        if self._fresh:
            if len(self._committed) + len(self._fresh) > self._most:
                self._committed.clear()
            self._committed.update(self._fresh)
            self._fresh.clear()

    def rollback(self) -> None:
        """Drop the new entries: some or all of the transaction was rolled back."""
        self._fresh.clear()


class WriteScope(GrantScope):
    """A connection that writes, with its cache of row numbers, `known`.

    Every change to a partition increments its change number.
    """

    __slots__ = ("_changes", "known")

    def __init__(self, database: Database, grant: Grant, dialect: Dialect, known: RowIdCache | None = None) -> None:
        super().__init__(database, grant, dialect)
        self.known = RowIdCache() if known is None else known
        self._changes: dict[int, int | Rows] = {}

    def enter(self, partition: Partition) -> bool:
        """Lock a partition before this write first reads it, so that other writers wait.

        Return True if it was not locked yet: then earlier reads may be stale.
        """
        return False

    def _partition_rows(self) -> Iterable[Sequence[Any]]:
        if self.grant.partitions is None:
            return super()._partition_rows()
        partitions = sorted(self.grant.partitions)
        missing = [partition for partition in partitions if self.known.get(partition) is None]
        # Their change number is not cached, since it moves: `change_of` reads it.
        cached = [
            (self.known.get(each), each.space, each.kind, each.owner, 0) for each in partitions if each not in missing
        ]
        return [*cached, *self._named_partitions(missing)]

    def _note(self, found: Iterable[Sequence[Any]]) -> None:
        super()._note(found)
        for partition, number in self._found.items():
            self.known.add(partition, number)

    def change_of(self, partition: Partition) -> int:
        number = self.number_of(partition)
        if number is None:
            return 0
        return int(self.database.execute("SELECT change FROM partitions WHERE id = ?", (number,)).fetchone()[0])

    def partition_id(self, partition: Partition) -> int:
        """Return the partition's number; create it if new. This is the last check that the grant reaches it."""
        if not self.grant.reaches(partition):
            raise AccessDenied("the grant does not reach this scope")
        self.enter(partition)
        known = self.known.get(partition) or self.number_of(partition)
        if known is None:
            columns = ("space", "kind", "owner")
            known = self._insert("partitions", columns, (partition.space, partition.kind, partition.owner))
            self._found[partition] = known
            self.known.add(partition, known)
        return known

    def scope_id(self, partition: int, scope: Scope) -> int:
        return self._find_or_insert(
            (partition, scope), "scopes", _SCOPE_COLUMNS, (partition, *rows.scope_values(scope))
        )

    def conversation_id(self, partition: int, scope: Scope) -> int:
        values = (partition, *conversation_key(scope))
        return self._find_or_insert(values, "conversations", _CONVERSATION_COLUMNS, values)

    def embedder_id(self, fingerprint: str) -> int:
        return self._find_or_insert(fingerprint, "embedders", ("fingerprint",), (fingerprint,))

    def _find_or_insert(self, key: Hashable, table: str, columns: tuple[str, ...], values: Sequence[Any]) -> int:
        """Return the number of the row with these values; create it if new."""
        number = self.known.get(key)
        if number is None:
            number = self._lookup(table, columns, values) or self._insert(table, columns, values)
            self.known.add(key, number)
        return number

    def _lookup(self, table: str, columns: tuple[str, ...], values: Sequence[Any]) -> int | None:
        where = " AND ".join(f"{column} = ?" for column in columns)
        row = self.database.execute(f"SELECT id FROM {table} WHERE {where}", values).fetchone()
        return int(row[0]) if row else None

    def _insert(self, table: str, columns: tuple[str, ...], values: Sequence[Any]) -> int:
        statement = f"{insert_statement(table, columns)} ON CONFLICT DO NOTHING RETURNING id"
        row = self.database.execute(statement, values).fetchone()
        # Another process may have created it concurrently.
        number = int(row[0]) if row else self._lookup(table, columns, values)
        assert number is not None
        return number

    def touch(self, partition: int) -> None:
        """Increment the partition's change number, once per transaction; `change` reads the result."""
        if partition not in self._changes:
            self._changes[partition] = self.database.execute(
                "UPDATE partitions SET change = change + 1, checksum = checksum + 1 WHERE id = ? RETURNING change",
                (partition,),
            )

    def change(self, partition: int) -> int:
        """Return this transaction's change number of the partition."""
        self.touch(partition)
        change = self._changes[partition]
        if not isinstance(change, int):
            change = self._changes[partition] = int(change.fetchone()[0])
        return change


def shared_values(
    scope: WriteScope, partition: int, of: Scope, kind: int, source: str | None, recorded_at: int, analyzer: int
) -> tuple[Any, ...]:
    """Return the first of `RECORD_COLUMNS`, equal for all records that a write adds."""
    scope_id, source_key = scope.scope_id(partition, of), rows.key_of(source)
    return partition, scope.change(partition), kind, scope_id, source_key, recorded_at, analyzer


def index_values(new: NewMessage | NewRevision, embedder_id: int) -> tuple[Any, ...]:
    """Return those of `RECORD_COLUMNS` that are derived from the text."""
    made = new.analysis
    assert made is not None
    return int(made.flags), made.length, embedder_id if new.vectors else None, made.terms


def memory_values(
    revision: NewRevision, shared: tuple[Any, ...], embedder_id: int, number: int, slot: bytes | None
) -> tuple[Any, ...]:
    return (
        *shared, *index_values(revision, embedder_id), revision.id, number, 0, revision.status, revision.trust.level,
        to_micros(revision.recorded_at), revision.plane, slot, rows.micros(revision.validity.since),
        rows.micros(revision.validity.until), _BY_RUNTIME if revision.by_runtime else None,
    )  # fmt: skip


def memory_text(revision: NewRevision) -> tuple[str | None, ...]:
    metadata = rows.metadata_json(revision.metadata)
    return None, revision.source, None, revision.author, revision.reason, metadata, revision.text


def put_vectors(scope: WriteScope, entries: Iterable[tuple[int, int, Sequence[bytes]]], embedder_id: int) -> None:
    as_bound = scope.dialect.vector
    values = [
        (partition, number, piece, embedder_id, as_bound(vector))
        for partition, number, vectors in entries
        for piece, vector in enumerate(vectors)
    ]
    if values:
        scope.dialect.insert(scope.database, "vectors", _VECTOR_COLUMNS, values)


def delete_vectors(scope: WriteScope, places: Sequence[tuple[int, int]]) -> None:
    scope.database.executemany("DELETE FROM vectors WHERE partition_id = ? AND number = ?", places)
