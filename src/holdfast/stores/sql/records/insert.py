"""Insert rows of records: the columns that messages and memories share, their texts and their vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.domain.scope import Scope
from holdfast.domain.times import to_micros
from holdfast.ports import NewMessage, NewRevision
from holdfast.stores.sql import rows
from holdfast.stores.sql.write_scope import WriteScope

# Columns of every record: `shared_values`, `index_values`, and more; then those of a memory's revision.
RECORD_COLUMNS = (
    "partition_id", "change", "kind", "scope_id", "source_key", "recorded_at", "analyzer", "flags", "length",
    "embedder_id", "terms", "id", "revision", "position", "status", "trust", "said_at",
)  # fmt: skip
MEMORY_COLUMNS = (*RECORD_COLUMNS, "plane", "slot_key", "valid_from", "valid_to")
TEXT_COLUMNS = ("sender", "source", "external_id", "author", "reason", "metadata", "text")
_VECTOR_COLUMNS = ("partition_id", "number", "piece", "embedder_id", "vector")


def shared_values(
    scope: WriteScope, partition: int, of: Scope, kind: int, source: str | None, recorded_at: int, analyzer: int
) -> tuple[Any, ...]:
    """Return the first of `RECORD_COLUMNS`, equal for all records that a write adds."""
    scope_id, source_key = scope.scope_id(partition, of), rows.key_of(source)
    return partition, scope.change(partition), kind, scope_id, source_key, recorded_at, analyzer


def index_values(new: NewMessage | NewRevision, embedder_id: int) -> tuple[Any, ...]:
    """Return those of `RECORD_COLUMNS` that are derived from the text."""
    made = new.analysis
    return int(made.flags), made.length, embedder_id if new.vectors else None, made.terms


def memory_values(
    revision: NewRevision, shared: tuple[Any, ...], embedder_id: int, number: int, slot: bytes | None
) -> tuple[Any, ...]:
    return (
        *shared, *index_values(revision, embedder_id), revision.id, number, 0, revision.status, revision.trust,
        to_micros(revision.recorded_at), revision.plane, slot, rows.micros(revision.validity.since),
        rows.micros(revision.validity.until),
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
