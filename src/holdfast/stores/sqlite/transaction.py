"""The transaction of a SQLite store, on its one writing connection."""

from __future__ import annotations

import sqlite3

from holdfast.domain.access import Grant
from holdfast.stores.sql.id_cache import RowIdCache
from holdfast.stores.sql.transaction import SqlTransaction
from holdfast.stores.sql.write_scope import WriteScope
from holdfast.stores.sqlite.dialect import SQLITE


class SqliteTransaction(SqlTransaction):
    """Implements `ports.Transaction`."""

    def __init__(self, connection: sqlite3.Connection, grant: Grant, known: RowIdCache | None = None) -> None:
        self.scope = WriteScope(connection, grant, SQLITE, known)
        self.connection = connection
