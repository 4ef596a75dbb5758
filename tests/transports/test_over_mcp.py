"""The runtime's tools pass the contract of transports: over streams of lines as on stdio, and over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from holdfast.app import open_engine
from holdfast.domain.access import Actor, ActorKind
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.operations import Operation
from holdfast.gateway.app import make_adapter
from holdfast.mcp.session import ToolCaller
from holdfast.settings import Settings
from holdfast.testing.transport_contract import Answer, TransportContract, TransportFactory, TransportUnderTest
from holdfast.transports.envelope import AdapterEnvelope
from over_http import CONFIG, calling, rows_of
from over_tools import NAMES, Send, call_of, calling_tools

ANA = Actor(ActorKind.USER, "ana", "default")
IDENTITY = MemoryIdentity("default", ANA.id, None, "default", "default")


class McpContract(TransportContract):
    """Both ways stand on a new store, which this process can look into."""

    def opened(self, service: Any, adapter: Any) -> Any:
        raise NotImplementedError

    @pytest.fixture
    def served(self) -> TransportFactory:
        @asynccontextmanager
        async def opened() -> AsyncIterator[TransportUnderTest]:
            engine = await open_engine(":memory:", Settings(), embedder="fake", work=False, routed=True)
            try:
                adapter = make_adapter(CONFIG)

                async def read_rows() -> Sequence[Operation]:
                    return await rows_of(engine)

                async with self.opened(engine, adapter) as send:
                    governance = replace(adapter.governance, identity=IDENTITY)
                    yield TransportUnderTest(send, engine, read_rows, ANA, governance, frozenset(NAMES))
            finally:
                await engine.close()

        return opened


class TestOverHttp(McpContract):
    @asynccontextmanager
    async def opened(self, service: Any, adapter: Any) -> AsyncIterator[Send]:
        async with (
            calling(service, ANA) as http,
            Client(streamable_http_client("http://127.0.0.1/mcp/runtime", http_client=http)) as client,
        ):

            async def send(envelope: AdapterEnvelope) -> Answer:
                result = await client.call_tool(**call_of(envelope))
                assert result.is_error == (result.structured_content["status"] == "rejected")
                return dict(result.structured_content)

            yield send


class TestOverStdio(McpContract):
    @asynccontextmanager
    async def opened(self, service: Any, adapter: Any) -> AsyncIterator[Send]:
        async with calling_tools(ToolCaller(service, ANA, "default", adapter)) as send:
            yield send


del McpContract, TransportContract
