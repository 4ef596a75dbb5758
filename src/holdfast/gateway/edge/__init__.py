"""ASGI middleware between the network and the routes: limits, request ids, metrics, logs and tracing.

From the outside in: request ids, error responses and observers (metrics, log, spans); host allow-list (DNS rebinding);
token-bucket rate limit; size and time limits of bodies; concurrency limit with load shedding. To refuse a request, a
layer raises `Exchange.refuse(…)`; the outermost layer sends the response.
"""

from __future__ import annotations

from opentelemetry.trace import TracerProvider
from starlette.types import ASGIApp

from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge.answering import Answering
from holdfast.gateway.edge.bodies import Bodies
from holdfast.gateway.edge.exchange import Observer
from holdfast.gateway.edge.hosts import Hosts
from holdfast.gateway.edge.logs import RequestLog
from holdfast.gateway.edge.metrics import Metrics
from holdfast.gateway.edge.overload import Overload
from holdfast.gateway.edge.rates import Rates
from holdfast.gateway.edge.spans import Spans


def around(
    app: ASGIApp, config: GatewayConfig, metrics: Metrics | None = None, *, tracing: TracerProvider | None = None
) -> ASGIApp:
    """Wrap the app in all layers. `metrics` is shown at `/metrics`; `tracing` defaults to the global provider."""
    observers: list[Observer] = [metrics or Metrics(), Spans(tracing)]
    if config.request_logs:
        observers.append(RequestLog())
    inner: ASGIApp = Overload(app, config.max_requests, config.wait_seconds)
    inner = Bodies(inner, config)
    if config.rate_per_minute:
        inner = Rates(inner, config.rate_per_minute)
    return Answering(Hosts(inner, config.hosts, guarded=config.operator_token is not None), observers)
