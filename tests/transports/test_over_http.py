"""`/memory/*` passes the contract of transports, on SQLite and PostgreSQL, under each kind of key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from holdfast.app import open_engine
from holdfast.domain.access import Actor, ActorKind
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.operations import Operation
from holdfast.gateway.app import make_adapter
from holdfast.gateway.runtime_routes import ROUTES
from holdfast.settings import Settings
from holdfast.testing.transport_contract import Answer, TransportContract, TransportFactory, TransportUnderTest
from holdfast.transports.envelope import AdapterEnvelope
from over_http import CONFIG, calling, post, rows_of
from postgres import AnyServer

KEYS = {
    "a user": Actor(ActorKind.USER, "ana", "default"),
    "an agent": Actor(ActorKind.AGENT, "bot", "default", frozenset({"ana"})),
    "an operator": Actor(ActorKind.OPERATOR, "warden", "default"),
}
IDENTITIES = {
    ActorKind.USER: MemoryIdentity("default", "ana", None, "default", "default"),
    ActorKind.AGENT: MemoryIdentity("default", None, "bot"),
    ActorKind.OPERATOR: MemoryIdentity("default"),
}


class TestOverHttp(TransportContract):
    @pytest.fixture(params=KEYS)
    def actor(self, request: pytest.FixtureRequest) -> Actor:
        return KEYS[request.param]

    @pytest.fixture
    def places(self) -> list[str]:
        """The stores to open, one after the other; else new ones in memory."""
        return []

    @pytest.fixture
    def served(self, actor: Actor, places: list[str]) -> TransportFactory:
        @asynccontextmanager
        async def opened() -> AsyncIterator[TransportUnderTest]:
            place = places.pop() if places else ":memory:"
            engine = await open_engine(place, Settings(), embedder="fake", work=False, routed=True)
            try:
                async with calling(engine, actor) as http:

                    async def send(envelope: AdapterEnvelope) -> Answer:
                        return await post(http, envelope)

                    async def read_rows() -> Sequence[Operation]:
                        return await rows_of(engine)

                    governance = replace(make_adapter(CONFIG).governance, identity=IDENTITIES[actor.kind])
                    known = frozenset({*ROUTES, "capabilities"})
                    yield TransportUnderTest(send, engine, read_rows, actor, governance, known)
            finally:
                await engine.close()

        return opened


class TestOverHttpOnPostgres(TestOverHttp):
    @pytest.fixture
    def actor(self) -> Actor:
        return KEYS["a user"]

    @pytest.fixture
    def places(self, postgres: AnyServer) -> Iterator[list[str]]:  # type: ignore[override]
        urls = [postgres.migrated_url() for _ in range(2)]
        yield list(urls)
        for url in urls:
            postgres.drop(url)
