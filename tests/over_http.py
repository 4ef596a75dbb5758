"""A runtime over HTTP in this process: the whole service on an engine of the test, and envelopes as requests to it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from holdfast.app import Engine
from holdfast.domain.access import Action, Actor, storewide_grant
from holdfast.domain.operations import Operation
from holdfast.gateway.app import create_route_app
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge import wrap_app
from holdfast.gateway.edge.observers import Metrics
from holdfast.gateway.runtime_routes import ROUTES, STATUS, STATUS_OF_REJECTION
from holdfast.ports import Verb
from holdfast.testing.transport_contract import Answer
from holdfast.transports.envelope import AdapterEnvelope

KEY = "uk_of-the-contract"
CONFIG = GatewayConfig(
    operator_token="operator-token-of-the-tests", rate_per_minute=0, request_logs=False, profile="server-linux-dev-full"
)


async def rows_of(engine: Engine) -> Sequence[Operation]:
    """All operation rows, oldest first. Those of reads are written with the next commit, which is made here."""
    store = engine._core.store
    await store.wait_for_audits()
    return (await store.read(storewide_grant(), lambda reader: reader.operations.page(limit=1_000_000)))[::-1]


class _Behind:
    """A replaceable engine and actor behind routes. Creating the routes takes longer than most tests."""

    def __init__(self) -> None:
        self.engine: Any = None
        self.actor: Actor | None = None
        routes = create_route_app(self, self, CONFIG, Metrics())
        self.app = wrap_app(routes, CONFIG, guard=routes.state.guard)

    @property
    def sync_safe(self) -> bool:
        return False

    async def perform(self, actor: Actor, action: Action, make: Callable[[], Verb[Any]], *, space: str) -> Any:
        return await self.engine.perform(actor, action, make, space=space)

    async def actor_of(self, key: str) -> Actor | None:
        return self.actor if key == KEY else None

    async def close(self) -> None:
        await self.engine.close()


_idle: list[_Behind] = []


@asynccontextmanager
async def calling(engine: Engine, actor: Actor) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with the actor's key."""
    behind = _idle.pop() if _idle else _Behind()
    behind.engine, behind.actor = engine, actor
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    transport = httpx2.ASGITransport(app=behind.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as http:
        yield http
    _idle.append(behind)


async def post(http: httpx2.AsyncClient, envelope: AdapterEnvelope) -> Answer:
    """Send an envelope as HTTP does: the payload as the body, the rest as headers and parameters."""
    ids = {
        "x-request-id": envelope.request_id,
        "x-idempotency-key": envelope.idempotency_key,
        "x-audit-id": envelope.audit_id,
    }
    headers = {name: value for name, value in ids.items() if value is not None}
    if envelope.operation == "capabilities":
        answer = await http.get("/memory/profile/capabilities", headers=headers)
    else:
        source = envelope.source
        parts = {name: getattr(source, name) for name in ("owner_id", "agent_id", "channel", "chat_id")}
        params = {name: value for name, value in parts.items() if value is not None}
        path = f"/memory{ROUTES[envelope.operation][0]}"
        answer = await http.post(path, content=json.dumps(envelope.payload), params=params, headers=headers)
    document: Answer = answer.json()
    if document["status"] == "rejected":
        assert answer.status_code in STATUS_OF_REJECTION.values()
    else:
        assert answer.status_code == STATUS[document["status"]]
    assert answer.headers["x-request-id"] == document["request_id"]
    assert answer.headers.get("x-audit-id") == document["audit_id"]
    return document
