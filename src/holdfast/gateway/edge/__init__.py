"""ASGI middleware between the network and the routes: limits, request ids, metrics, logs and tracing.

From the outside in: request ids, error responses and observers (metrics, log, spans); host allow-list (DNS rebinding);
token-bucket rate limit; size and time limits of bodies; concurrency limit with load shedding. To refuse a request, a
layer raises `Exchange.refuse(…)`; the outermost layer sends the response.
"""

from __future__ import annotations

from opentelemetry.trace import TracerProvider
from starlette.types import ASGIApp

from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge.exchange import Observer, RequestMiddleware
from holdfast.gateway.edge.host_allow_list import HostAllowList
from holdfast.gateway.edge.limits import BodyLimits, ConcurrencyLimit, RateLimiter
from holdfast.gateway.edge.observers import Metrics, RequestLog, RequestSpans


def wrap_app(
    app: ASGIApp, config: GatewayConfig, metrics: Metrics | None = None, *, tracing: TracerProvider | None = None
) -> ASGIApp:
    """Wrap the app in all layers. `metrics` is shown at `/metrics`; `tracing` defaults to the global provider."""
    observers: list[Observer] = [metrics or Metrics(), RequestSpans(tracing)]
    if config.request_logs:
        observers.append(RequestLog())
    inner: ASGIApp = ConcurrencyLimit(app, config.max_requests, config.wait_seconds)
    inner = BodyLimits(inner, config)
    if config.rate_per_minute:
        inner = RateLimiter(inner, config.rate_per_minute)
    return RequestMiddleware(HostAllowList(inner, config.hosts), observers)
