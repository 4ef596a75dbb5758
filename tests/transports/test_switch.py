"""The switch of transports: without `http`, `/memory/*` is gone and the rest of the service stays."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from holdfast.app import open_engine
from holdfast.domain.access import LOCAL_OPERATOR
from holdfast.domain.identity import MemoryIdentity
from holdfast.errors import ConfigurationError
from holdfast.gateway.app import create_app, make_adapter
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.runtime_routes import ROUTES
from holdfast.settings import Settings
from holdfast.transports.adapter import AdapterCaller
from holdfast.transports.envelope import (
    AdapterEnvelope,
    EnvelopeAuth,
    EnvelopeSource,
    ErrorKey,
    RejectedResponse,
    TransportKind,
)
from over_http import CONFIG, rows_of


def test_without_http_its_routes_are_not_there_and_the_rest_is(tmp_path: Path) -> None:
    async def ask() -> None:
        config = replace(CONFIG, transports=("mcp",))
        engine = await open_engine(str(tmp_path / "memory.db"), Settings(), embedder="fake", work=False)
        app = create_app(engine, engine, config)
        headers = {"authorization": f"Bearer {config.operator_token}"}
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=app), base_url="http://127.0.0.1", headers=headers
        ) as http:
            for path, _ in ROUTES.values():
                answer = await http.post(f"/memory{path}", json={"query": "x"})
                assert answer.status_code == 404
                assert answer.headers["content-type"] == "application/problem+json"
            assert (await http.get("/memory/profile/capabilities")).status_code == 404
            assert (await http.get("/healthz")).status_code == 200
            assert (await http.get("/verbs")).status_code == 200
            assert not [
                path for path in (await http.get("/openapi.json")).json()["paths"] if path.startswith("/memory/")
            ]
        await engine.close()

    asyncio.run(ask())


def test_the_adapter_itself_refuses_a_transport_that_is_off_and_leaves_a_row(tmp_path: Path) -> None:
    async def ask() -> None:
        adapter = make_adapter(replace(CONFIG, transports=()))
        engine = await open_engine(str(tmp_path / "memory.db"), Settings(), embedder="fake", work=False)
        caller = AdapterCaller(engine, LOCAL_OPERATOR, MemoryIdentity())
        for envelope, key in (
            (AdapterEnvelope("recall", {"query": "x"}, TransportKind.HTTP), ErrorKey.UNAUTHORIZED),
            (AdapterEnvelope("recall", {"query": "x"}, TransportKind.HTTP, auth=EnvelopeAuth(True)), None),
            (AdapterEnvelope("recall", {"query": "x"}, auth=EnvelopeAuth(True)), ErrorKey.RUNTIME_REJECTED),
        ):
            response = await adapter.handle(caller, envelope)
            assert isinstance(response, RejectedResponse)
            assert response.error_key is (key or ErrorKey.UNSUPPORTED_OPERATION)
            assert (await rows_of(engine))[-1].id == response.audit_id
        for unknown in ("subscribe", "recal", ""):
            source = EnvelopeSource("test")
            refused = await adapter.handle(caller, AdapterEnvelope(unknown, source=source, auth=EnvelopeAuth(True)))
            assert isinstance(refused, RejectedResponse)
            assert (refused.error_key, refused.audit_id) == (ErrorKey.UNSUPPORTED_OPERATION, None)
        await engine.close()

    asyncio.run(ask())


def test_a_profile_that_there_is_not_is_refused_at_start() -> None:
    with pytest.raises(ConfigurationError, match="HOLDFAST_PROFILE: there is no profile 'huge'"):
        make_adapter(GatewayConfig(operator_token="operator-token-of-the-tests", profile="huge"))
