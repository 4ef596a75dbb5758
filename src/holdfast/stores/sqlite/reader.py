"""The reader of a SQLite store."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from holdfast.domain.access import Grant
from holdfast.domain.results import Finding
from holdfast.domain.scope import Partition
from holdfast.ports import NearestIndex
from holdfast.stores.sql.reader import SqlReader
from holdfast.stores.sqlite.dialect import SQLITE
from holdfast.stores.sqlite.nearest import GraphFolder


class SqliteReader(SqlReader):
    """Implements `ports.Reader`. `shelf` holds the approximate indexes; a store in memory has none."""

    dialect = SQLITE

    def __init__(self, connection: sqlite3.Connection, grant: Grant, shelf: GraphFolder | None = None) -> None:
        super().__init__(connection, grant)
        self._connection = connection
        self._shelf = shelf

    def nearest(self, partition: Partition, embedder: str) -> NearestIndex | None:
        number = self._number_of(partition)
        if self._shelf is None or number is None:
            return None
        return self._shelf.nearest(self._connection, number, embedder)

    def integrity(self, embedder: str) -> tuple[dict[str, int], Sequence[Finding]]:
        checked, findings = super().integrity(embedder)
        if self._shelf is None:
            return checked, findings
        count, wrong = self._shelf.findings(self._connection)
        return {**checked, "nearest": count}, [*findings, *(Finding("approximate indexes", text) for text in wrong)]
