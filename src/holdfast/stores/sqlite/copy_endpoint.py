"""A whole SQLite store as the source or target of a copy."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from holdfast.errors import StoreBusy, StoreUnusable
from holdfast.stores.sql.copy_endpoint import SqlCopyEndpoint
from holdfast.stores.sqlite.busy_retry import committing
from holdfast.stores.sqlite.connection import MEMORY, open_store
from holdfast.stores.sqlite.dialect import SQLITE, checksum
from holdfast.stores.sqlite.errors import translating
from holdfast.stores.sqlite.nearest import GraphFolder


class SqliteCopyEndpoint(SqlCopyEndpoint):
    backends = ("sqlite", "file", "embedded")

    def __init__(self, location: str, busy_seconds: float, *, create: bool) -> None:
        if location == MEMORY:
            raise StoreUnusable(":memory: is gone when the command ends; give the path of a file")
        if not create and not os.path.exists(location):
            raise StoreUnusable(f"there is no store at {location}; give the path of one")
        self._connection = open_store(location, busy_seconds, whole=False)
        self._busy_seconds = busy_seconds
        super().__init__(self._connection, SQLITE, location)

    def lock_exclusively(self) -> None:
        self._connection.close()
        try:
            self._db = self._connection = open_store(self.location, self._busy_seconds, whole=False, alone=True)
            with self._committing():
                pass  # from now on the file is locked
        except StoreBusy as error:
            raise StoreBusy(
                f"{self.location} is in use; stop the processes that have it open, and copy again"
            ) from error

    @property
    def identity(self) -> tuple[object, ...]:
        found = os.stat(self.location)
        return "sqlite", found.st_dev, found.st_ino

    @property
    def address(self) -> str:
        return os.path.realpath(self.location)

    def snapshot(self) -> None:
        with self._translating():
            self._connection.execute("BEGIN")
            self._connection.execute("SELECT count(*) FROM meta").fetchone()

    def _translating(self) -> AbstractContextManager[None]:
        return translating(self.location)

    @contextmanager
    def _committing(self) -> Iterator[None]:
        with self._translating(), committing(self._connection, self._busy_seconds):
            yield

    def _empty(self, tables: Sequence[str]) -> None:
        for table in (*tables, "text_checksums"):
            self._connection.execute(f"DELETE FROM {table}")

    def _wipe(self) -> None:
        with self._translating():
            GraphFolder(self.location).remove_all()
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _restart_numbering(self, highest: int) -> None:
        # New numbers follow the last text. Blank texts are not copied, and the last may have been blank.
        if highest:
            self._connection.execute(
                "INSERT INTO texts (number, text, checksum) VALUES (?, x'', ?) ON CONFLICT DO NOTHING",
                (highest, checksum((*[None] * 6, b""))),
            )

    def _wait_for_writers(self) -> None:
        """Do nothing: the transaction began when it was the only writer."""

    def close(self) -> None:
        self._connection.close()
