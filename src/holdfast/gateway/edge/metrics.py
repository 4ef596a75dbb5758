"""Prometheus metrics of the gateway, in their own registry: HTTP requests, and memory operations.

HTTP labels are route templates, methods, statuses and reasons, never a path, an id or a user: so their number is
bounded and they reveal nothing about users. Labels of memory operations are names of companies, bindings, providers and
currencies, which operators chose; never content. Beyond a maximum number of label sets, new ones are counted under
`other`, so that new names cannot flood a monitoring system.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import generate_latest

from holdfast.domain.costs import CostEvent
from holdfast.domain.jobs import Job, JobKind
from holdfast.domain.operations import QUESTIONS, TYPE_OF, Operation, Outcome, counts_in_metrics, is_recall
from holdfast.gateway.edge.exchange import Exchange

M = TypeVar("M")

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
GONE = 499  # the client disconnected before the response
MOST_LABEL_SETS = 1_000  # per metric
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
        self.memory = MemoryCounters(self.registry)
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
            result = "hit" if operation.touched else "empty"
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
