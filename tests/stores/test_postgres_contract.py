"""The PostgreSQL store fulfils the store contract."""

from __future__ import annotations

import pytest

from holdfast.ports import Store
from holdfast.stores.postgres import PostgresStore
from holdfast.testing.store_contract import DurableStoreContract, StoreFactory


class TestPostgres(DurableStoreContract):
    @pytest.fixture
    def store(self, migrated_url: str) -> StoreFactory:
        async def opened() -> Store:
            return PostgresStore(migrated_url)

        return opened
