"""The scope of a reader of a PostgreSQL store."""

from __future__ import annotations

from holdfast.domain.access import Grant
from holdfast.ports import NearestIndex
from holdfast.stores.postgres import nearest
from holdfast.stores.postgres.dialect import POSTGRES
from holdfast.stores.postgres.session import PostgresSession
from holdfast.stores.sql.grant_scope import GrantScope


class PostgresReadScope(GrantScope):
    __slots__ = ("_session",)

    def __init__(self, session: PostgresSession, grant: Grant) -> None:
        super().__init__(session, grant, POSTGRES)
        self._session = session

    def nearest(self, partition: int, embedder: str) -> NearestIndex | None:
        return nearest.find_index(self._session, partition, embedder)
