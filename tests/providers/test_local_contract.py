"""`local` fulfils the provider contract on both stores."""

from __future__ import annotations

from pathlib import Path

import pytest
from beneath import opened_local

from holdfast.ports.provider import Adapter
from holdfast.testing.provider_contract import AdapterFactory, ProviderContract


class TestLocalOnSqlite(ProviderContract):
    @pytest.fixture
    def adapters(self, tmp_path: Path) -> AdapterFactory:
        async def opened() -> Adapter:
            return await opened_local(str(tmp_path / "memory.db"))

        return opened


class TestLocalOnPostgres(ProviderContract):
    @pytest.fixture
    def adapters(self, migrated_url: str) -> AdapterFactory:
        async def opened() -> Adapter:
            return await opened_local(migrated_url)

        return opened
