"""Observers of requests: Prometheus metrics, a log line and an OpenTelemetry span each. Content is never recorded.

Metrics of HTTP requests and memory operations have their own registry. HTTP labels are route templates, methods,
statuses and reasons, never a path, an id or a user: so their number is bounded and they reveal nothing about users.
Labels of memory operations are names of spaces, bindings, providers and currencies, which operators chose. Beyond a
maximum number of label sets, new ones are counted under `other`, so that new names cannot flood a monitoring system.

The log has one line of JSON per request with time, route, status, duration and bytes. Never a body, query, raw path,
key or user: what is not written cannot leak.

Tracing has a span per request, with a child span per memory operation, named by the GenAI conventions. Without an SDK,
spans cost almost nothing and are dropped. No text, query, path, key, user id or exception message becomes an attribute,
and that cannot be changed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence, Sized
from functools import lru_cache
from typing import Generic, TypeVar

from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from holdfast.domain.access import Action, Actor
from holdfast.domain.costs import CostEvent
from holdfast.domain.jobs import Job, JobKind
from holdfast.domain.operations import QUESTIONS, TYPE_OF, Operation, Outcome, counts_in_metrics, is_recall
from holdfast.domain.results import StoreUsage
from holdfast.domain.search import ViewCacheUsage
from holdfast.errors import HoldfastError, StoreError
from holdfast.gateway.edge.exchange import UNMATCHED, Exchange
from holdfast.ports import Service, Verb

M = TypeVar("M")

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
GONE = 499  # the client disconnected before the response
MOST_LABEL_SETS = 1_000  # per metric
STORE_SECONDS = 5.0  # Prometheus waits ten seconds for all metrics
OTHER = "other"
NO_BINDING = "none"


class Metrics:
    """The metrics of one gateway. The engine reports to `memory`."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "holdfast_http_requests",
            "Requests that were answered or aborted.",
            ("route", "method", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "holdfast_http_request_seconds",
            "Seconds from a request's headers to the end of its response.",
            ("route", "method"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._in_flight = Gauge(
            "holdfast_http_requests_in_flight", "Requests being read, queued or handled.", registry=self.registry
        )
        self._rejected = Counter(
            "holdfast_http_rejected",
            "Requests and connections refused before they reached a route.",
            ("reason",),
            registry=self.registry,
        )
        self._limit = Gauge(
            "holdfast_http_requests_limit", "The most requests at once: HOLDFAST_MAX_REQUESTS.", registry=self.registry
        )
        self.memory = MemoryCounters(self.registry)
        self._store: StoreMetrics | None = None
        ProcessCollector(registry=self.registry)
        self._known: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def on_start(self, exchange: Exchange) -> None:
        self._in_flight.inc()

    def on_end(self, exchange: Exchange) -> None:
        self._in_flight.dec()
        method = exchange.method if exchange.method in _METHODS else "other"
        key = (exchange.route, method, exchange.status or GONE)
        found = self._known.get(key)
        if found is None:
            route, method, status = key
            found = self._requests.labels(route, method, str(status)), self._seconds.labels(route, method)
            self._known[key] = found
        found[0].inc()
        found[1].observe(exchange.seconds)
        if exchange.refusal is not None and exchange.error is None:
            self.count_rejection(exchange.refusal.code)

    def count_rejection(self, reason: str) -> None:
        self._rejected.labels(reason).inc()

    def show_limit(self, max_requests: int) -> None:
        self._limit.set(max_requests)

    def show_store(self, read: Callable[[], Awaitable[StoreUsage]]) -> None:
        """Show the store's size and jobs too. `refresh` reads them."""
        self._store = StoreMetrics(read)
        self.registry.register(self._store)

    async def refresh(self) -> None:
        if self._store is not None:
            await self._store.refresh()

    def render(self) -> bytes:
        """All metrics in Prometheus's text format (`media_type`)."""
        return generate_latest(self.registry)


class _CappedMetric(Generic[M]):
    """A metric with a limited number of label sets (cardinality limit)."""

    def __init__(self, labelled: Callable[..., M], names: int) -> None:
        self._labelled = labelled
        self._other = (OTHER,) * names
        self._known: dict[tuple[str, ...], M] = {}

    def of(self, *labels: str) -> M:
        found = self._known.get(labels)
        if found is None:
            chosen = labels if len(self._known) < MOST_LABEL_SETS else self._other
            found = self._labelled(*chosen)
            if chosen is labels:
                self._known[labels] = found
        return found


class MemoryCounters:
    """Implements `ports.observer.MetricsObserver`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

        def counter(name: str, help_text: str, *labels: str) -> _CappedMetric[Counter]:
            metric = Counter(f"holdfast_memory_{name}", help_text, labels, registry=registry)
            return _CappedMetric(metric.labels, len(labels))

        self._operations = counter(
            "operations",
            "Memory calls by binding, type and outcome.",
            *("company", "binding", "type", "outcome"),
        )
        self._queries = counter("queries", "Answered queries by result: hit or empty.", "company", "result")
        self._recalls = counter("recalls", "Answered queries whose result goes to a model.", "company", "result")
        self._failures = counter("extraction_failures", "Extractions that failed their last attempt.", "company")
        self._dead = counter("dead_deliveries", "Hook deliveries that failed their last attempt.", "company")
        self._cost = counter(
            "cost_micros", "Cost of metered calls, in millionths of the currency unit.", "company", "currency"
        )
        self._seconds = _CappedMetric(
            Histogram(
                "holdfast_memory_operation_seconds",
                "Duration of memory calls in seconds, by provider.",
                ("provider", "type"),
                buckets=(*_BUCKETS, 60.0),
                registry=registry,
            ).labels,
            2,
        )

    def show_cache(self, read: Callable[[], ViewCacheUsage]) -> None:
        """Show the engine's cache of partitions too."""
        self._registry.register(ViewCacheMetrics(read))

    def on_operation(self, operation: Operation) -> None:
        if not counts_in_metrics(operation):
            return
        kind = TYPE_OF[operation.action]
        about, company = operation.attribution, operation.scope.space
        # A binding that was only named in a call and does not exist is user input, so it must not become a label.
        served = about if about is not None and about.provider is not None else None
        binding = NO_BINDING if served is None or served.binding is None else served.binding
        self._operations.of(company, binding, kind.value, operation.outcome.value).inc()
        if served is not None and served.provider is not None:
            self._seconds.of(served.provider, kind.value).observe(operation.duration_micros / 1e6)
        if operation.outcome is Outcome.SUCCEEDED and operation.action in QUESTIONS:
            result = "hit" if operation.record_count else "empty"
            self._queries.of(company, result).inc()
            if is_recall(operation):
                self._recalls.of(company, result).inc()

    def on_costs(self, events: Sequence[CostEvent]) -> None:
        for event in events:
            self._cost.of(event.scope.space, event.currency).inc(event.amount_micros)

    def on_job_failed(self, job: Job, *, last: bool) -> None:
        if not last:
            return
        if job.kind in (JobKind.EXTRACT, JobKind.MAINTAIN):
            self._failures.of(job.scope.space).inc()
        elif job.kind is JobKind.DELIVER:
            self._dead.of(job.scope.space).inc()


class ViewCacheMetrics:
    """A collector: reads the use of the cache of partitions when metrics are read."""

    def __init__(self, read: Callable[[], ViewCacheUsage]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        usage = self._read()
        for name, help_text, value in (
            ("bytes", "Memory of cached partitions, with their reserves.", usage.bytes),
            ("limit_bytes", "The most of it: HOLDFAST_CACHE_BYTES.", usage.limit_bytes),
            ("partitions", "Partitions in the cache.", usage.partitions),
        ):
            yield GaugeMetricFamily(f"holdfast_view_cache_{name}", help_text, value)
        lookups = CounterMetricFamily(
            "holdfast_view_cache_lookups", "Searches of a partition: hit, or miss if rows were read.", labels=["result"]
        )
        lookups.add_metric(["hit"], usage.hits)
        lookups.add_metric(["miss"], usage.misses)
        yield lookups
        yield CounterMetricFamily(
            "holdfast_view_cache_evictions", "Partitions evicted because the cache was full.", usage.evictions
        )


class StoreMetrics:
    """A collector of what the last `refresh` read of the store. A store that does not answer in time is down."""

    def __init__(self, read: Callable[[], Awaitable[StoreUsage]]) -> None:
        self._read = read
        self._usage: StoreUsage | None = None

    async def refresh(self) -> None:
        try:
            async with asyncio.timeout(STORE_SECONDS):
                self._usage = await self._read()
        except (StoreError, TimeoutError):
            self._usage = None

    def collect(self) -> Iterator[Metric]:
        usage = self._usage
        yield GaugeMetricFamily("holdfast_store_up", "1 if the store answers, else 0.", int(usage is not None))
        if usage is None:
            return
        yield GaugeMetricFamily("holdfast_store_bytes", "Size of the store.", usage.bytes)
        jobs = GaugeMetricFamily(
            "holdfast_store_jobs",
            "Background jobs of the store: queued, running, or failed and not retried.",
            labels=["state"],
        )
        jobs.add_metric(["queued"], usage.queued_jobs)
        jobs.add_metric(["running"], usage.running_jobs)
        jobs.add_metric(["failed"], usage.failed_jobs)
        yield jobs
        yield GaugeMetricFamily(
            "holdfast_store_jobs_overdue_seconds",
            "Seconds since the oldest queued job became due.",
            usage.overdue_seconds,
        )


log = logging.getLogger("holdfast.gateway.requests")
# One encoder: `json.dumps` would create one per line.
_encoded = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), default=str).encode
_quoted = lru_cache(maxsize=1_000)(_encoded)


class RequestLog:
    def on_start(self, exchange: Exchange) -> None:
        """Log nothing: a request is logged when it ends."""

    def on_end(self, exchange: Exchange) -> None:
        level = logging.ERROR if exchange.error is not None else logging.INFO
        if not log.isEnabledFor(level):
            return
        # Formatted by hand at a third of the cost: ids need no quoting, and all other texts are few and cached.
        line = (
            f'"id":"{exchange.id}","method":{_quoted(exchange.method)},"route":{_quoted(exchange.route)},'
            f'"status":{exchange.status or GONE},"ms":{exchange.seconds * 1000:.2f},'
            f'"bytes_in":{exchange.received},"bytes_out":{exchange.sent}'
        )
        if exchange.error is not None:
            line += f',"error":{_quoted(exchange.error)}'
        elif exchange.refusal is not None:
            line += f',"refused":{_quoted(exchange.refusal.code)}'
        if not exchange.complete:
            line += ',"cut":true'
        # Not `log.log`, which would walk the stack for the caller's line.
        record = logging.LogRecord(log.name, level, "", 0, "request", None, None)
        record.members = line
        log.handle(record)


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON, plus `extra={"fields": {…}}`. Of an exception only its class is written."""

    def format(self, record: logging.LogRecord) -> str:
        seconds, milliseconds = divmod(int(record.created * 1000), 1000)
        moment = f"{_second(seconds)}.{milliseconds:03d}Z"
        level = record.levelname.lower()
        members: str | None = getattr(record, "members", None)
        if members is not None:
            return f'{{"time":"{moment}","level":"{level}","event":"{record.msg}",{members}}}'
        line: dict[str, object] = {"time": moment, "level": level, "event": record.getMessage()}
        if not record.name.startswith("holdfast.gateway"):
            line["logger"] = record.name
        fields = getattr(record, "fields", None)
        if isinstance(fields, Mapping):
            line.update(fields)
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        return _encoded(line)


@lru_cache(maxsize=4)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


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
    Action.REVERT: "update_memory",
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

    @property
    def origin(self) -> str:
        return self._service.origin

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
