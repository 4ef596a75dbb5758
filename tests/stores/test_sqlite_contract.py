"""The SQLite store fulfils the store contract, as a file and in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.ports import Store
from holdfast.stores.sqlite import SqliteStore
from holdfast.testing.store_contract import DurableStoreContract, StoreContract, StoreFactory


class TestSqliteFile(DurableStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> StoreFactory:
        async def opened() -> Store:
            return SqliteStore(str(tmp_path / "memory.db"))

        return opened


class TestSqliteInMemory(StoreContract):
    @pytest.fixture
    def store(self) -> StoreFactory:
        async def opened() -> Store:
            return SqliteStore(":memory:")

        return opened
