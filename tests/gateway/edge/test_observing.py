"""Metrics, logs and spans describe the gateway's work and contain nothing of its requests."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from edged import Running, running
from fastapi import APIRouter, FastAPI, Request
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from holdfast.app import open_engine
from holdfast.domain.access import OF_THE_CONTROL_PLANE, OF_THE_RUNTIME, Action
from holdfast.errors import HoldfastError
from holdfast.gateway.edge.observers import OPERATIONS, JsonFormatter, Metrics, TracedService
from holdfast.library import AsyncMemory
from holdfast.settings import Settings

CANARIES = ("canary-key", "canary-body", "canary-query", "canary-user", "canary-error", "canary-header")


def routed() -> FastAPI:
    """Routes like the gateway's: a router with a prefix, a path template, and a route that fails."""
    app, routes = FastAPI(), APIRouter(prefix="/users")

    @routes.post("/{user_id}/notes")
    async def note(user_id: str, request: Request) -> dict[str, int]:
        return {"bytes": len(await request.body())}

    @routes.post("/{user_id}/failures")
    async def fail(user_id: str, body: dict[str, str]) -> None:
        raise RuntimeError(f"canary-error {user_id} {body}")

    app.include_router(routes)
    return app


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> TracerProvider:
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(exporter))
    return made


def ask_everything(started: Running) -> None:
    headers = {"authorization": "Bearer canary-key", "x_extra": "canary-header", "content_type": "application/json"}
    body = b'{"user_key": "canary-key", "text": "canary-body"}'
    for path in ("/users/canary-user/notes?q=canary-query", "/users/canary-user/failures", "/canary-user"):
        started.ask("POST", path, body, **headers)
        started.ask("POST", path, body, **headers, content_encoding="gzip")
        started.ask("POST", path, body, **{**headers, "host": "canary-header"})
    started.line().send(b"canary-body is no HTTP\r\n\r\n").answer()
    started.ask("GET", "/", traceparent="canary-header", tracestate="canary-header", x_request_id="canary header")


def test_no_secret_and_no_body_is_in_logs_metrics_or_spans(
    provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    with running(routed(), tracing=provider) as started:
        ask_everything(started)
        assert started.eventually(lambda: started.count("holdfast_http_requests_in_flight") == 0)
        spans = exporter.get_finished_spans()
        told = {
            "logs": started.log.getvalue(),
            "metrics": started.metrics.render().decode(),
            "spans": "".join(span.to_json() for span in spans),
        }
    assert len(spans) == 10
    assert len([line for line in told["logs"].splitlines() if '"event":"request"' in line]) == 10
    for where, text in told.items():
        assert text
        assert not [canary for canary in CANARIES if canary in text], where


def test_requests_are_counted_by_template() -> None:
    with running(routed()) as started:
        for user in ("ana", "ben", "cy"):
            assert started.ask("POST", f"/users/{user}/notes", b"{}").status == 200
        started.ask("GET", "/users/ana/notes")
        started.ask("GET", "/nowhere/at/all")
        counted = {"route": "/users/{user_id}/notes", "method": "POST"}
        total, seconds = "holdfast_http_requests_total", "holdfast_http_request_seconds_count"
        assert started.eventually(lambda: started.count(total, **counted, status="200") == 3)
        assert started.count(seconds, **counted) == 3
        assert started.eventually(lambda: started.count(total, route="unmatched", method="GET", status="404") == 1)
        assert started.eventually(lambda: started.count("holdfast_http_requests_in_flight") == 0)
        assert started.count("holdfast_http_rejected_total", reason="unknown_host") == 0
        started.ask("GET", "/", host="elsewhere")
        assert started.eventually(lambda: started.count("holdfast_http_rejected_total", reason="unknown_host") == 1)
        assert started.metrics.media_type.startswith("text/plain")
        assert b"process_resident_memory_bytes" in started.metrics.render()


def test_a_request_is_one_line(plain: Running) -> None:
    plain.ask("POST", "/echo?a=b", b"12345", x_request_id="this-one")
    assert plain.eventually(lambda: bool(plain.logged))
    (line,) = plain.logged
    assert set(line) == {"time", "level", "event", "id", "method", "route", "status", "ms", "bytes_in", "bytes_out"}
    assert (line["event"], line["id"], line["method"], line["status"]) == ("request", "this-one", "POST", 200)
    assert (line["bytes_in"], line["bytes_out"], line["route"]) == (5, 1, "unmatched")


def test_a_refusal_says_why(plain: Running) -> None:
    plain.ask("GET", "/", host="elsewhere")
    assert plain.eventually(lambda: bool(plain.logged))
    assert (plain.logged[0]["status"], plain.logged[0]["refused"]) == (421, "unknown_host")


def test_request_logs_can_be_switched_off() -> None:
    with running(request_logs=False) as started:
        assert started.ask("GET", "/").status == 200
        assert started.ask("POST", "/fail", b"x").status == 500
        assert started.eventually(lambda: bool(started.logged))
        assert [line["event"] for line in started.logged] == ["a request failed"]


def test_an_exception_in_a_log_record_is_written_by_name_alone() -> None:
    try:
        raise ValueError("canary-error")
    except ValueError as error:
        record = logging.LogRecord("somebody", logging.ERROR, "", 0, "it\nfailed", None, (ValueError, error, None))
    line = JsonFormatter().format(record)
    assert '"error":"ValueError"' in line
    assert '"logger":"somebody"' in line
    assert "canary" not in line
    assert "\n" not in line


# --- spans ----------------------------------------------------------------------------------------------------------


def test_a_request_is_a_server_span_of_its_callers_trace(
    provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    with running(routed(), tracing=provider) as started:
        started.ask("POST", "/users/ana/notes", b"{}", traceparent=f"00-{trace_id}-b7ad6b7169203331-01")
        started.ask("POST", "/users/ana/failures", b"{}", content_type="application/json")
        started.ask("GET", "/", host="elsewhere")
        assert started.eventually(lambda: len(exporter.get_finished_spans()) == 3)
    noted, failed, refused = exporter.get_finished_spans()
    assert (noted.name, noted.kind) == ("POST /users/{user_id}/notes", SpanKind.SERVER)
    assert f"{noted.context.trace_id:032x}" == trace_id
    assert dict(noted.attributes or {}) == {
        "http.request.method": "POST",
        "http.route": "/users/{user_id}/notes",
        "http.response.status_code": 200,
        "url.scheme": "http",
    }
    assert not failed.status.is_ok
    assert (failed.attributes or {})["error.type"] == "RuntimeError"
    assert failed.events == ()
    assert (refused.name, (refused.attributes or {})["error.type"]) == ("GET", "unknown_host")


def test_memory_operations_have_the_names_of_the_conventions(
    provider: TracerProvider, exporter: InMemorySpanExporter, tmp_path: Any
) -> None:
    async def use() -> None:
        engine = await open_engine(str(tmp_path / "memory.db"), Settings(embedder="fake"))
        memory = AsyncMemory(TracedService(engine, provider), space="default")
        await memory.add(["canary-body one", "canary-body two"], subject="canary-user")
        await memory.flush(subject="canary-user")
        await memory.search("canary-query", subject="canary-user", top_k=1)
        await memory.remember("canary-body kept", subject="canary-user")
        with pytest.raises(HoldfastError):
            await memory.get("m_canary-error")
        await memory.stats()
        await memory.close()

    asyncio.run(use())
    spans = exporter.get_finished_spans()
    assert [(span.name, (span.attributes or {}).get("gen_ai.memory.record.count")) for span in spans] == [
        ("create_memory", 2),
        ("upsert_memory", None),
        ("search_memory", 1),
        ("create_memory", None),
        ("get_memory", None),
    ]
    for span in spans:
        assert (span.attributes or {})["gen_ai.operation.name"] == span.name
        assert (span.attributes or {})["gen_ai.memory.store.id"] == "default"
        assert span.kind is SpanKind.INTERNAL
    assert (spans[-1].attributes or {})["error.type"] == "not_found"
    assert not spans[-1].status.is_ok
    assert spans[-1].events == ()
    assert "canary" not in "".join(span.to_json() for span in spans)


def test_each_action_is_a_memory_operation_or_known_to_be_none() -> None:
    none = {
        Action.FORGET_PREVIEW, Action.JOBS, Action.STATS, Action.REBUILD, Action.VERIFY, Action.WORK,
        Action.CREATE_USER, Action.REVOKE_USER, Action.LIST_USERS, Action.LIST_RESOURCES, Action.GET_RESOURCE,
        Action.EVENTS,
    }  # fmt: skip
    # The runtime is not served over HTTP.
    assert set(OPERATIONS) | none == set(Action) - OF_THE_RUNTIME - OF_THE_CONTROL_PLANE
    assert not set(OPERATIONS) & none


def test_a_store_that_does_not_answer_is_shown_as_down(tmp_path: Path) -> None:
    async def scrape() -> tuple[dict[str, float], dict[str, float]]:
        metrics = Metrics()
        engine = await open_engine(str(tmp_path / "memory.db"), Settings(), embedder="fake", work=False)
        metrics.show_store(engine.store_usage)
        await metrics.refresh()
        answering = _store_samples(metrics)
        await engine.close()
        await metrics.refresh()
        return answering, _store_samples(metrics)

    answering, closed = asyncio.run(scrape())
    assert answering["holdfast_store_up"] == 1
    assert answering["holdfast_store_bytes"] > 0
    assert closed == {"holdfast_store_up": 0}


def _store_samples(metrics: Metrics) -> dict[str, float]:
    families = [each for each in metrics.registry.collect() if each.name.startswith("holdfast_store_")]
    return {sample.name: sample.value for family in families for sample in family.samples}
