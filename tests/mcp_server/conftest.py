"""A caller of tools on a new store, and the official client's way to each revision of the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from holdfast.app import open_engine
from holdfast.domain.access import LOCAL_OPERATOR, Actor
from holdfast.gateway.app import make_adapter
from holdfast.gateway.config import GatewayConfig
from holdfast.mcp.session import ToolCaller
from holdfast.settings import Settings
from mcp_lines import REVISIONS, Opened

ADAPTER = make_adapter(GatewayConfig(operator_token="operator-token-of-the-tests"))


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Open the store of the test for an actor; again for another one."""

    @asynccontextmanager
    async def open_for(actor: Actor = LOCAL_OPERATOR, **fixed: str) -> AsyncIterator[ToolCaller]:
        engine = await open_engine(str(tmp_path / "memory.db"), Settings(), embedder="fake", work=False, routed=True)
        try:
            yield ToolCaller(engine, actor, "default", ADAPTER, fixed)
        finally:
            await engine.close()

    return open_for


@pytest.fixture
def speak(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Client]:
    """The official client, made to speak one revision to a server or over a transport."""

    def client_of(server: Any, revision: str = REVISIONS[-1]) -> Client:
        if revision in MODERN_PROTOCOL_VERSIONS:
            return Client(server, mode="auto")
        monkeypatch.setattr("mcp.client.session.LATEST_HANDSHAKE_VERSION", revision)
        return Client(server, mode="legacy")

    return client_of
