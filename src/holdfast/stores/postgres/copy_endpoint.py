"""A whole PostgreSQL store as the source or target of a copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import psycopg

from holdfast.errors import StoreBusy, StoreUnusable
from holdfast.stores.postgres.connection import CONNECT_SECONDS, Connector
from holdfast.stores.postgres.dialect import POSTGRES
from holdfast.stores.postgres.errors import translate_error
from holdfast.stores.postgres.examine import examine
from holdfast.stores.postgres.location import parse_location
from holdfast.stores.postgres.locks import store_key
from holdfast.stores.sql.copy_endpoint import SqlCopyEndpoint

# Tables with an id sequence of their own.
_NUMBERING = ("partitions", "scopes", "conversations", "embedders")
_SEQUENCE = "SELECT setval(pg_get_serial_sequence('{0}', '{1}'), greatest(?, 1), ? > 0)"


class PostgresCopyEndpoint(SqlCopyEndpoint):
    backends = ("postgres",)

    def __init__(self, location: str, busy_seconds: float, *, create: bool) -> None:
        self._place = parse_location(location, min(CONNECT_SECONDS, busy_seconds))
        if not create and examine(location, busy_seconds) is None:
            raise StoreUnusable(f"there is no store at {self._place.shown}; give the address of one")
        self._session = Connector(self._place, busy_seconds).prepare(whole=False)
        super().__init__(self._session, POSTGRES, self._place.shown)

    def lock_exclusively(self) -> None:
        try:
            with self._translating():
                self._session.execute("SELECT pg_advisory_lock(?::bigint)", (store_key(self._place.schema),)).fetchall()
        except StoreBusy as error:
            raise StoreBusy(
                f"{self.location} is in use; stop the processes that have it open, and copy again"
            ) from error

    @property
    def identity(self) -> tuple[object, ...]:
        # The start time distinguishes running servers that were cloned from one copy.
        found = self._select(
            "SELECT current_database(), (SELECT oid FROM pg_database WHERE datname = current_database()),"
            " pg_postmaster_start_time()::text, current_setting('port')"
        )
        return ("postgres", *found[0], self._place.schema)

    @property
    def address(self) -> str:
        return self._place.shown

    def snapshot(self) -> None:
        with self._translating():
            self._session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            self._session.execute("SELECT count(*) FROM meta").fetchone()

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise translate_error(error, self._place) from error

    @contextmanager
    def _committing(self) -> Iterator[None]:
        with self._translating(), self._session.transaction("BEGIN"):
            yield
            self._session.commit()

    def _empty(self, tables: Sequence[str]) -> None:
        self._session.execute(f"TRUNCATE {', '.join(tables)}")

    def _wipe(self) -> None:
        """Do nothing: TRUNCATE returns the files to the system."""

    def _restart_numbering(self, highest: int) -> None:
        self._session.execute(_SEQUENCE.format("records", "number"), (highest, highest))
        for table in _NUMBERING:
            [(last,)] = self._session.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchall()
            self._session.execute(_SEQUENCE.format(table, "id"), (last, last))

    def _wait_for_writers(self) -> None:
        # Conflicts with every statement that changes records.
        self._session.execute("LOCK TABLE records IN SHARE MODE")

    def close(self) -> None:
        # Unlock explicitly: the server notices a closed connection late, and would refuse others meanwhile.
        with suppress(psycopg.Error):
            self._session.execute("SELECT pg_advisory_unlock_all()").fetchall()
        self._session.close()
