"""The reader of a PostgreSQL store."""

from __future__ import annotations

from holdfast.domain.access import Grant
from holdfast.domain.scope import Partition
from holdfast.ports import NearestIndex
from holdfast.stores.postgres import nearest
from holdfast.stores.postgres.dialect import POSTGRES
from holdfast.stores.postgres.session import PostgresSession
from holdfast.stores.sql.reader import SqlReader


class PostgresReader(SqlReader):
    """Implements `ports.Reader`."""

    dialect = POSTGRES

    def __init__(self, session: PostgresSession, grant: Grant) -> None:
        super().__init__(session, grant)
        self._session = session

    def nearest(self, partition: Partition, embedder: str) -> NearestIndex | None:
        number = self._number_of(partition)
        return None if number is None else nearest.find_index(self._session, number, embedder)
