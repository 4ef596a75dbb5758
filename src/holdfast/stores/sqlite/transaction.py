"""Writing through SQLite's one writing connection."""

from __future__ import annotations

from holdfast.stores.sql.audit import record_operation
from holdfast.stores.sql.transaction import SqlTransaction
from holdfast.stores.sqlite.dialect import SQLITE

__all__ = ["SqliteTransaction", "record_operation"]


class SqliteTransaction(SqlTransaction):
    """Implements `ports.Transaction`."""

    dialect = SQLITE
