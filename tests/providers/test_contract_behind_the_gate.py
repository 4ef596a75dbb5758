"""The provider contract also holds through the control plane: for `local`, and for `gateway` with a remote service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gatekept import Gatekept

from holdfast.app import open_engine
from holdfast.domain.contract import Capabilities
from holdfast.ports.provider import Adapter
from holdfast.providers.local import LocalProvider
from holdfast.providers.registry import ProviderRegistry
from holdfast.providers.secrets import SecretResolver
from holdfast.settings import Settings
from holdfast.testing.provider_contract import AdapterFactory, ProviderContract
from serving import USER_KEY, Served, served

SECRETS = {"HOLDFAST_SECRET_UPSTREAM": USER_KEY}


async def gatekept(location: Path, key: str, capabilities: Capabilities, **config: Any) -> Adapter:
    providers = ProviderRegistry(SecretResolver(SECRETS.get, "HOLDFAST_SECRET_", None), lambda: ())
    engine = await open_engine(str(location), Settings(), embedder="fake", work=False, providers=providers)
    return Gatekept(engine, key, capabilities, config)


class TestLocalBehindTheGate(ProviderContract):
    @pytest.fixture
    def adapters(self, tmp_path: Path) -> AdapterFactory:
        async def opened() -> Adapter:
            return await gatekept(tmp_path / "memory.db", "local", LocalProvider.capabilities)

        return opened


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("upstream")
    with served(str(folder / "memory.db")) as service:
        yield service


class TestGatewayBehindTheGate(ProviderContract):
    @pytest.fixture
    def adapters(self, tmp_path: Path, upstream: Served) -> AdapterFactory:
        capabilities = Capabilities(correction=True, provider_managed_extraction=True, async_extraction=True)
        config = {"url": upstream.url, "user_id": "ana", "user_key": "env://HOLDFAST_SECRET_UPSTREAM"}

        async def opened() -> Adapter:
            return await gatekept(tmp_path / "memory.db", "gateway", capabilities, **config, timeout_seconds=60)

        return opened
