"""OpenTelemetry tracing: a span per request, with a child span per memory operation, named by the GenAI conventions.

Without an SDK, spans cost almost nothing and are dropped. Content is never recorded, and cannot be enabled: no text,
query, path, key, user id or exception message becomes an attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import TypeVar

from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from holdfast.domain.access import Action, Actor
from holdfast.errors import HoldfastError
from holdfast.gateway.edge.exchange import UNMATCHED, Exchange
from holdfast.ports import Service, Verb

T = TypeVar("T")
_NAME = "holdfast"
_SERVER_ERROR = 500
# The conventions name operations that change or search memories; the names for reading by id are ours. Other actions
# are not memory operations.
OPERATIONS: dict[Action, str] = {
    Action.ADD: "create_memory",
    Action.FLUSH: "upsert_memory",
    Action.REMEMBER: "create_memory",
    Action.CORRECT: "update_memory",
    Action.FORGET: "delete_memory",
    Action.SEARCH: "search_memory",
    Action.RECALL: "search_memory",
    Action.EXPLAIN: "search_memory",
    Action.GET: "get_memory",
    Action.LIST: "list_memory",
    Action.BROWSE: "list_memory",
    Action.HISTORY: "get_memory",
    Action.ADD_RESOURCE: "create_memory",
    Action.DELETE_RESOURCE: "delete_memory",
}


class RequestSpans:
    """Observer that creates a server span per request and continues the caller's trace, if there is one."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer(_NAME, tracer_provider=provider)
        self._traces = TraceContextTextMapPropagator()

    def on_start(self, exchange: Exchange) -> None:
        parent = None
        if b"traceparent" in exchange.given:
            names = ("traceparent", "tracestate")
            carrier = {name: exchange.given.get(name.encode(), b"").decode("latin-1") for name in names}
            parent = self._traces.extract(carrier)
        span = self._tracer.start_span(exchange.method, parent, SpanKind.SERVER)
        if span.is_recording():
            exchange.span = span, context.attach(trace.set_span_in_context(span, parent))

    def on_end(self, exchange: Exchange) -> None:
        if exchange.span is None:
            return
        span, token = exchange.span
        context.detach(token)
        if exchange.route != UNMATCHED:
            span.update_name(f"{exchange.method} {exchange.route}")
            span.set_attribute("http.route", exchange.route)
        span.set_attribute("http.request.method", exchange.method)
        span.set_attribute("url.scheme", str(exchange.scope.get("scheme", "http")))
        if exchange.status:
            span.set_attribute("http.response.status_code", exchange.status)
        kind = exchange.error or (exchange.refusal.code if exchange.refusal is not None else None)
        if kind is None and exchange.status >= _SERVER_ERROR:
            kind = str(exchange.status)
        if kind is not None:
            span.set_attribute("error.type", kind)
        if exchange.status >= _SERVER_ERROR:
            span.set_status(Status(StatusCode.ERROR))
        span.end()


class TracedService:
    """Wraps a service: each memory operation becomes a span. `gen_ai.memory.store.id` is the space."""

    def __init__(self, service: Service, provider: TracerProvider | None = None) -> None:
        self._service = service
        self._tracer = trace.get_tracer(_NAME, tracer_provider=provider)

    @property
    def sync_safe(self) -> bool:
        return self._service.sync_safe

    async def perform(self, actor: Actor, action: Action, make: Callable[[], Verb[T]], *, space: str) -> T:
        operation = OPERATIONS.get(action)
        if operation is None:
            return await self._service.perform(actor, action, make, space=space)
        attributes = {"gen_ai.operation.name": operation, "gen_ai.memory.store.id": space}
        with self._tracer.start_as_current_span(
            operation,
            kind=SpanKind.INTERNAL,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                result = await self._service.perform(actor, action, make, space=space)
            except Exception as error:
                _mark_failed(span, error)
                raise
            if span.is_recording() and (count := _record_count(result)) is not None:
                span.set_attribute("gen_ai.memory.record.count", count)
            return result

    async def close(self) -> None:
        await self._service.close()


def _mark_failed(span: Span, error: Exception) -> None:
    span.set_attribute("error.type", error.code if isinstance(error, HoldfastError) else type(error).__name__)
    span.set_status(Status(StatusCode.ERROR))


def _record_count(result: object) -> int | None:
    """The number of records in a result, if it has one."""
    if isinstance(result, list | tuple):
        return len(result)
    for name in ("message_ids", "items", "hits"):
        found = getattr(result, name, None)
        if isinstance(found, Sized):
            return len(found)
    return None
