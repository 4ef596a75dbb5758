"""The transaction of a SQLite store, on its one writing connection."""

from __future__ import annotations

import sqlite3

from holdfast.domain.access import Grant
from holdfast.stores.sql.id_cache import RowIdCache
from holdfast.stores.sql.operation_log import record_operation
from holdfast.stores.sql.transaction import SqlTransaction
from holdfast.stores.sqlite.dialect import SQLITE

__all__ = ["SqliteTransaction", "record_operation"]


class SqliteTransaction(SqlTransaction):
    """Implements `ports.Transaction`."""

    dialect = SQLITE

    def __init__(self, connection: sqlite3.Connection, grant: Grant, known: RowIdCache | None = None) -> None:
        super().__init__(connection, grant, known)
        self.connection = connection
