"""What stands between the network and the routes: limits, request ids, metrics, logs and spans, as plain ASGI.

From the outside in: `Answering` (ids, refusals, errors, and the observers: metrics, log, spans), `Hosts`, `Rates`,
`Bodies`, `Overload`. Whoever refuses raises what `Exchange.refuse` gives, and `Answering` sends it.
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
    """The app with the whole edge before it. `metrics` is what `/metrics` shows; `tracing` else the global provider."""
    observers: list[Observer] = [metrics or Metrics(), Spans(tracing)]
    if config.request_logs:
        observers.append(RequestLog())
    inner: ASGIApp = Overload(app, config.max_requests, config.wait_seconds)
    inner = Bodies(inner, config)
    if config.rate_per_minute:
        inner = Rates(inner, config.rate_per_minute)
    return Answering(Hosts(inner, config.hosts, guarded=config.operator_token is not None), observers)
