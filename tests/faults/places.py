"""Where a store can be: somewhere to make, reopen, break and look at one, per kind of store.

A test that takes the fixture `place` runs on every kind. Nothing in it knows which one it is, but for what
`Place` says that a kind has.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

from holdfast.ports import Store
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.sqlite import SqliteStore
from postgres import ON_POSTGRES, AnyServer

KINDS = ("sqlite", "postgres")
ON_EACH = ("sqlite", ON_POSTGRES)  # the same, as parameters of tests
_PATIENCE_SECONDS = 60.0


class Place(Protocol):
    kind: str
    location: str  # what `holdfast.open` takes; a process of its own can take it as well

    def store(self) -> contextlib.AbstractAsyncContextManager[Store]:
        """The store itself, opened to be looked at."""

    def settle(self) -> None:
        """After a process was killed: wait until nothing that it began is under way any more."""


class SqlitePlace:
    kind = "sqlite"

    def __init__(self, folder: Path) -> None:
        self.location = str(folder / "memory.db")

    @contextlib.asynccontextmanager
    async def store(self) -> AsyncIterator[Store]:
        store = SqliteStore(self.location)
        try:
            yield store
        finally:
            await store.close()

    def settle(self) -> None:
        """What it had not written is not written."""


class PostgresPlace:
    kind = "postgres"

    def __init__(self, server: AnyServer) -> None:
        self._server = server
        self.location = server.store_url(application_name="faults")

    @contextlib.asynccontextmanager
    async def store(self) -> AsyncIterator[Store]:
        store = PostgresStore(self.location, connections=2)
        try:
            yield store
        finally:
            await store.close()

    def settle(self) -> None:
        """The server may still be committing what a dead client asked for."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self._server.execute("SELECT 1 FROM pg_stat_activity WHERE application_name = 'faults'"):
            assert time.monotonic() < deadline, "the server still serves a dead client"
            time.sleep(0.005)

    def drop(self) -> None:
        self._server.drop(self.location)
