"""`gateway` fulfils the provider contract with a real Holdfast service behind it: through its own routes, with and
without metadata, and through EverOS's under each of its prefixes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from holdfast.domain.secret import Secret
from holdfast.ports.provider import Adapter
from holdfast.providers.gateway import GatewayProvider
from holdfast.testing.provider_contract import AdapterFactory, ProviderContract
from serving import USER_KEY, Served, served


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("upstream")
    with served(str(folder / "memory.db")) as service:
        yield service


class _Served(ProviderContract):
    """All tests share one service and one user there: only the provider's own scope checks separate them."""

    config: ClassVar[dict[str, Any]] = {}

    @pytest.fixture
    def adapters(self, upstream: Served) -> AdapterFactory:
        provider = GatewayProvider()
        config = provider.check(
            {"url": upstream.url, "user_id": "ana", "user_key": "env://HOLDFAST_SECRET_UP", **self.config}
        )

        async def opened() -> Adapter:
            return provider.open({**config, "timeout_seconds": 60}, {"user_key": Secret(USER_KEY)}, None)

        return opened


class TestGatewayRoutes(_Served):
    pass


class TestGatewayRoutesWithoutMetadata(_Served):
    config: ClassVar[dict[str, Any]] = {"keep_metadata": False}


class TestEverosRoutes(_Served):
    config: ClassVar[dict[str, Any]] = {"api": "everos"}


class TestEverosRoutesOfOlderServices(_Served):
    config: ClassVar[dict[str, Any]] = {"api": "everos", "everos_prefix": "/api/v1/memory"}


del _Served
