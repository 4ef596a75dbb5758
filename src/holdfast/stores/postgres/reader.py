"""Reading from a PostgreSQL connection."""

from __future__ import annotations

from holdfast.stores.postgres.dialect import POSTGRES
from holdfast.stores.sql.reader import SqlReader


class PostgresReader(SqlReader):
    """Implements `ports.Reader`."""

    dialect = POSTGRES
