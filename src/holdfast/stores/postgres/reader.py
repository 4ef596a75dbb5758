"""Reading from a PostgreSQL connection."""

from __future__ import annotations

from holdfast.domain.scope import Partition
from holdfast.ports import Nearest
from holdfast.stores.postgres import nearest
from holdfast.stores.postgres.dialect import POSTGRES
from holdfast.stores.sql.reader import SqlReader


class PostgresReader(SqlReader):
    """Implements `ports.Reader`."""

    dialect = POSTGRES

    def nearest(self, partition: Partition, embedder: str) -> Nearest | None:
        number = self._number_of(partition)
        return None if number is None else nearest.found(self._db, number, embedder)
