"""`/memory/*` passes the contract of transports, on SQLite and PostgreSQL, under each kind of key."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx2
import pytest
from trails import rows_of

from holdfast.app import open_engine
from holdfast.domain.access import Actor, ActorKind
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.operations import Operation
from holdfast.gateway.app import create_app, make_adapter
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.runtime_routes import ROUTES, STATUS, STATUS_OF_REJECTION
from holdfast.settings import Settings
from holdfast.testing.transport_contract import Answer, TransportContract, TransportFactory, TransportUnderTest
from holdfast.transports.envelope import AdapterEnvelope
from postgres import AnyServer

KEYS = {
    "a user": Actor(ActorKind.USER, "ana", "default"),
    "an agent": Actor(ActorKind.AGENT, "bot", "default", frozenset({"ana"})),
    "an operator": Actor(ActorKind.OPERATOR, "warden", "default"),
}
CONFIG = GatewayConfig(
    operator_token="operator-token-of-the-tests", rate_per_minute=0, request_logs=False, profile="server-linux-dev-full"
)
KEY = "uk_of-the-contract"


class OneKey:
    """A directory with one key."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    async def actor_of(self, key: str) -> Actor | None:
        return self._actor if key == KEY else None


async def post(http: httpx2.AsyncClient, envelope: AdapterEnvelope) -> Answer:
    """Send an envelope as HTTP does: the payload as the body, the rest as headers and parameters."""
    ids = {
        "x-request-id": envelope.request_id,
        "x-idempotency-key": envelope.idempotency_key,
        "x-audit-id": envelope.audit_id,
    }
    headers = {"authorization": f"Bearer {KEY}", **{name: value for name, value in ids.items() if value is not None}}
    if envelope.operation == "capabilities":
        answer = await http.get("/memory/profile/capabilities", headers=headers)
    else:
        path, source = ROUTES[envelope.operation][0], envelope.source
        parts = {name: getattr(source, name) for name in ("owner_id", "agent_id", "channel", "chat_id")}
        params = {name: value for name, value in parts.items() if value is not None}
        answer = await http.post(
            f"/memory{path}", content=json.dumps(envelope.payload), params=params,
            headers={**headers, "content-type": "application/json"},
        )  # fmt: skip
    document: Answer = answer.json()
    if document["status"] == "rejected":
        assert answer.status_code in STATUS_OF_REJECTION.values()
    else:
        assert answer.status_code == STATUS[document["status"]]
    assert answer.headers["x-request-id"] == document["request_id"]
    assert answer.headers.get("x-audit-id") == document["audit_id"]
    return document


class TestOverHttp(TransportContract):
    @pytest.fixture(params=KEYS)
    def actor(self, request: pytest.FixtureRequest) -> Actor:
        return KEYS[request.param]

    @pytest.fixture
    def places(self) -> Iterator[list[str]]:
        """The stores to open, one after the other; else new ones in memory."""
        yield []

    @pytest.fixture
    def served(self, actor: Actor, places: list[str]) -> TransportFactory:
        @asynccontextmanager
        async def opened() -> AsyncIterator[TransportUnderTest]:
            place = places.pop() if places else ":memory:"
            engine = await open_engine(place, Settings(), embedder="fake", work=False, routed=True)
            try:
                app = create_app(engine, OneKey(actor), CONFIG)
                transport = httpx2.ASGITransport(app=app)
                async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
                    governance = make_adapter(CONFIG).governance
                    subject = actor.id if actor.kind is ActorKind.USER else None
                    agent = actor.id if actor.kind is ActorKind.AGENT else None
                    identity = MemoryIdentity("default", subject, agent)

                    async def send(envelope: AdapterEnvelope) -> Answer:
                        return await post(http, envelope)

                    async def read_rows() -> Sequence[Operation]:
                        return await rows_of(engine)

                    known = frozenset({*ROUTES, "capabilities"})
                    governance = replace(governance, identity=identity)
                    yield TransportUnderTest(send, engine, read_rows, actor, governance, known)
            finally:
                await engine.close()

        return opened


class TestOverHttpOnPostgres(TestOverHttp):
    @pytest.fixture
    def actor(self) -> Actor:
        return KEYS["a user"]

    @pytest.fixture
    def places(self, postgres: AnyServer) -> Iterator[list[str]]:
        urls = [postgres.migrated_url() for _ in range(2)]
        yield list(urls)
        for url in urls:
            postgres.drop(url)
