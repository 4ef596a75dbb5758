"""The table of resources. Their names and external URIs are stored in `texts`, where a forget blanks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.ids import ResourceId
from holdfast.domain.memory import Plane
from holdfast.domain.resources import URI_SCHEME, Resource, resource_uri
from holdfast.domain.scope import SCOPE_PARTS, Scope
from holdfast.domain.times import from_micros, to_micros
from holdfast.ports import NewRevision
from holdfast.stores.sql import rows
from holdfast.stores.sql.dialect import NewRows
from holdfast.stores.sql.grant_scope import GrantScope, SqlRepository
from holdfast.stores.sql.write_scope import (
    MEMORY_COLUMNS,
    TEXT_COLUMNS,
    WriteScope,
    memory_text,
    memory_values,
    put_vectors,
    shared_values,
)

_COLUMNS = ("number", "id", "partition_id", "scope_id", "sha256", "media_type", "bytes", "chunks", "recorded_at")
_TABLES = "resources r JOIN scopes s ON s.id = r.scope_id"
_SELECT = (
    "SELECT r.id, t.text, t.external_id, r.sha256, r.media_type, r.bytes, r.chunks, r.recorded_at, "
    + ", ".join(f"s.{part}" for part in SCOPE_PARTS)
    + f" FROM {_TABLES} JOIN texts t ON t.number = r.number"
)
_EXACTLY = " AND ".join(f"s.{part} = ?" for part in SCOPE_PARTS)


def _resource(row: Sequence[Any]) -> Resource:
    resource_id, name, external_uri, sha256, media_type, size, chunks, recorded_at = row[:8]
    scope = rows.scope_of(row[8:])
    return Resource(
        id=ResourceId(resource_id),
        uri=resource_uri(scope, resource_id),
        name=name,
        media_type=media_type,
        sha256=bytes(sha256).hex(),
        bytes=size,
        chunks=chunks,
        external_uri=external_uri,
        scope=scope,
        recorded_at=from_micros(recorded_at),
    )


def count_resources(scope: GrantScope) -> int:
    within, values = scope.within()
    return int(scope.database.execute(f"SELECT count(*) FROM {_TABLES} WHERE {within}", values).fetchone()[0])


class SqlResourceReader(SqlRepository):
    """Implements `ResourceReader`."""

    def find(self, resource_id: str) -> Resource | None:
        within, values = self._scope.within(keyed=True)
        row = self._db.execute(f"{_SELECT} WHERE r.id = ? AND {within}", [resource_id, *values]).fetchone()
        return _resource(row) if row else None

    def find_file(self, scope: Scope, sha256: str, external_uri: str | None) -> Resource | None:
        within, values = self._scope.within()
        found = self._db.execute(
            f"{_SELECT} WHERE r.partition_id = ? AND r.sha256 = ? AND {_EXACTLY} AND {within} ORDER BY r.id",
            [self._scope.number_of(scope.partition), bytes.fromhex(sha256), *rows.scope_values(scope), *values],
        )
        return next((each for each in map(_resource, found) if each.external_uri == external_uri), None)

    def chunks(self, resource: Resource) -> Sequence[str]:
        within, values = self._scope.within()
        found = self._db.execute(
            "SELECT DISTINCT r.id FROM records r JOIN scopes s ON s.id = r.scope_id"
            f" WHERE r.partition_id = ? AND r.source_key = ? AND r.plane = ? AND {_EXACTLY} AND {within}",
            [
                self._scope.number_of(resource.scope.partition), rows.key_of(resource.uri), Plane.RESOURCE.value,
                *rows.scope_values(resource.scope), *values,
            ],
        )  # fmt: skip
        return [row[0] for row in found]

    def page(self, before: str | None, limit: int) -> Sequence[Resource]:
        within, values = self._scope.within()
        condition = "" if before is None else " AND r.id < ?"
        found = self._db.execute(
            f"{_SELECT} WHERE {within}{condition} ORDER BY r.id DESC LIMIT ?",
            [*values, *([] if before is None else [before]), limit],
        )
        return [_resource(row) for row in found]

    def numbers_of(self, resource_ids: Sequence[str]) -> list[int]:
        found = self._scope.rows_among("id", resource_ids, "SELECT number FROM resources WHERE {}")
        return [int(number) for (number,) in found]

    def partitions_of(self, resource_ids: Sequence[str]) -> list[tuple[str, int]]:
        space, values = self._scope.in_space()
        statement = f"SELECT r.id, r.partition_id FROM resources r WHERE {{}} AND {space}"
        return list(self._scope.rows_among("r.id", resource_ids, statement, values))

    def plan_forget(self, target: ForgetTarget) -> list[str]:
        """Return the resources that the target names: of a conversation, of a subject, or the source itself."""
        if target.ids:
            return []
        within, values = self._scope.within()
        if target.conversation:
            within, values = f"{within} AND s.conversation = ?", [*values, target.conversation]
        elif target.source:
            found = self.find(target.source.rpartition(":")[2]) if target.source.startswith(URI_SCHEME) else None
            return [found.id] if found is not None and found.uri == target.source else []
        else:
            within, values = f"{within} AND s.subject = ?", [*values, target.subject]
        found_ids = self._db.execute(f"SELECT r.id FROM {_TABLES} WHERE {within} ORDER BY r.id", values)
        return [row[0] for row in found_ids]


class SqlResourceWriter(SqlResourceReader):
    """Implements `ResourceWriter`."""

    _scope: WriteScope

    def add(self, resource: Resource, chunks: Sequence[NewRevision], embedder: str, analyzer: int) -> None:
        partition = self._scope.partition_id(resource.scope.partition)
        self._scope.touch(partition)
        drawn = self._scope.dialect.reserve_numbers(self._db, len(chunks))
        self._insert(partition, self._scope.scope_id(partition, resource.scope), resource)
        if not chunks:
            return  # its chunks are added separately, as memories
        recorded_at = to_micros(resource.recorded_at)
        shared = shared_values(self._scope, partition, resource.scope, rows.MEMORY, resource.uri, recorded_at, analyzer)
        embedder_id = self._scope.embedder_id(embedder)
        values = [memory_values(chunk, shared, embedder_id, 1, None) for chunk in chunks]
        new = NewRows(MEMORY_COLUMNS, values), NewRows(TEXT_COLUMNS, [memory_text(chunk) for chunk in chunks])
        numbers = self._scope.dialect.add_records(self._db, drawn, *new)
        vectors = [(partition, number, chunk.vectors) for number, chunk in zip(numbers, chunks, strict=True)]
        put_vectors(self._scope, vectors, embedder_id)

    def _insert(self, partition: int, scope_id: int, resource: Resource) -> None:
        drawn = self._scope.dialect.reserve_numbers(self._db, 1)
        text = NewRows(("external_id", "text"), [(resource.external_uri, resource.name)])
        number = self._scope.dialect.add_text(self._db, drawn, text)
        self._scope.dialect.insert(
            self._db,
            "resources",
            _COLUMNS,
            [
                (
                    number, resource.id, partition, scope_id, bytes.fromhex(resource.sha256), resource.media_type,
                    resource.bytes, resource.chunks, to_micros(resource.recorded_at),
                )
            ],
        )  # fmt: skip

    def forget(self, resource_ids: Sequence[str]) -> int:
        """Delete the resources; return how many are still there. Their chunks are forgotten as memories."""
        for numbers in self._numbers(resource_ids):
            condition, named = self._scope.dialect.among("number", numbers)
            self._db.execute(f"{self._scope.dialect.blank_texts} WHERE {condition}", named)
            self._db.execute(f"DELETE FROM resources WHERE {condition}", named)
        return sum(len(numbers) for numbers in self._numbers(resource_ids))

    def _numbers(self, resource_ids: Sequence[str]) -> list[list[int]]:
        space, values = self._scope.in_space()
        found = [
            [
                row[0]
                for row in self._db.execute(
                    f"SELECT r.number FROM resources r WHERE {condition} AND {space}", [*named, *values]
                )
            ]
            for condition, named in self._scope.among("r.id", resource_ids)
        ]
        return [numbers for numbers in found if numbers]
