"""Reading from a SQLite connection."""

from __future__ import annotations

from holdfast.stores.sql.reader import SqlReader
from holdfast.stores.sqlite.dialect import SQLITE


class SqliteReader(SqlReader):
    """Implements `ports.Reader`."""

    dialect = SQLITE
