"""HTTP metrics of the gateway, in their own registry. Labels are route templates, methods, statuses and reasons, never
a path, an id or a user: so their number is bounded and they reveal nothing about users. Memory operations are
counted separately."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import generate_latest

from holdfast.gateway.edge.exchange import Exchange
from holdfast.gateway.edge.memory_metrics import MemoryCounters

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
GONE = 499  # the client disconnected before the response


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
