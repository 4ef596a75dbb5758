"""The scope of a reader of a SQLite store."""

from __future__ import annotations

import sqlite3

from holdfast.domain.access import Grant
from holdfast.domain.results import Finding
from holdfast.ports import NearestIndex
from holdfast.stores.sql.grant_scope import GrantScope
from holdfast.stores.sqlite.dialect import SQLITE
from holdfast.stores.sqlite.nearest import GraphFolder


class SqliteReadScope(GrantScope):
    """`shelf` holds the approximate indexes."""

    __slots__ = ("_connection", "_shelf")

    def __init__(self, connection: sqlite3.Connection, grant: Grant, shelf: GraphFolder | None) -> None:
        super().__init__(connection, grant, SQLITE)
        self._connection = connection
        self._shelf = shelf

    def nearest(self, partition: int, embedder: str) -> NearestIndex | None:
        return None if self._shelf is None else self._shelf.nearest(self._connection, partition, embedder)

    def check_nearest(self) -> tuple[dict[str, int], list[Finding]]:
        if self._shelf is None:
            return {}, []
        count, wrong = self._shelf.findings(self._connection)
        return {"nearest": count}, [Finding("approximate indexes", text) for text in wrong]
