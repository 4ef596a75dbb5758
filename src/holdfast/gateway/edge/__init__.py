"""ASGI middleware between the network and the routes: limits, request ids, metrics, logs and tracing.

From the outside in: request ids, error responses and observers (metrics, log, spans); host allow-list and origin check
(DNS rebinding, pages of other sites); token-bucket rate limit; size and time limits of bodies; the guard of the routes
(credential and content type, before the body is read); concurrency limit with load shedding. To refuse a request, a
layer raises `Exchange.refuse(…)`; the outermost layer sends the response.
"""

from __future__ import annotations

from collections.abc import Callable

from opentelemetry.trace import TracerProvider
from starlette.types import ASGIApp

from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge.exchange import Observer, RequestMiddleware
from holdfast.gateway.edge.host_allow_list import HostAllowList
from holdfast.gateway.edge.limits import BodyLimits, ConcurrencyLimit, RateLimiter
from holdfast.gateway.edge.observers import Metrics, RequestLog, RequestSpans


def wrap_app(
    app: ASGIApp,
    config: GatewayConfig,
    metrics: Metrics | None = None,
    *,
    guard: Callable[[ASGIApp], ASGIApp] | None = None,
    tracing: TracerProvider | None = None,
) -> ASGIApp:
    """Wrap the app in all layers. `metrics` is shown at `/metrics`; `tracing` defaults to the global provider.

    `guard` is a layer that knows the routes and the keys.
    """
    observers: list[Observer] = [metrics or Metrics(), RequestSpans(tracing)]
    if config.request_logs:
        observers.append(RequestLog())
    inner: ASGIApp = ConcurrencyLimit(app, config.max_requests, config.max_requests_per_key, config.wait_seconds)
    if guard is not None:
        inner = guard(inner)
    inner = BodyLimits(inner, config)
    if config.rate_per_minute:
        inner = RateLimiter(inner, config.rate_per_minute)
    return RequestMiddleware(HostAllowList(inner, config), observers)
