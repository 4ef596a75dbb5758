"""Locations of a store, per kind of store: create, reopen, break and inspect one.

A test with the fixture `place` runs on every kind and knows the kind only through `Place`.
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
ON_EACH = ("sqlite", ON_POSTGRES)  # as test parameters
_PATIENCE_SECONDS = 60.0


class Place(Protocol):
    kind: str
    location: str  # for `holdfast.open`, in any process

    def store(self) -> contextlib.AbstractAsyncContextManager[Store]:
        """The store itself, opened for inspection."""

    def settle(self) -> None:
        """After a kill, wait until nothing the process began is still running."""


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
        """Nothing to wait for: a dead process writes no more."""


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
        """Wait: the server may still be committing work of a dead client."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self._server.execute("SELECT 1 FROM pg_stat_activity WHERE application_name = 'faults'"):
            assert time.monotonic() < deadline, "the server still serves a dead client"
            time.sleep(0.005)

    def drop(self) -> None:
        self._server.drop(self.location)
