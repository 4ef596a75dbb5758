"""Builds the ASGI app: routes, error handlers, and the edge around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import Response
from starlette.types import ASGIApp

import holdfast
from holdfast.domain.access import Action, Actor
from holdfast.gateway import companies, conversations, memories, problems, resources, users, verbs
from holdfast.gateway.access import Door, Rule, ruled, unruled
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.document import describe
from holdfast.gateway.edge import around
from holdfast.gateway.edge.metrics import Metrics
from holdfast.gateway.everos import routes as everos
from holdfast.gateway.models import Health
from holdfast.ports import KeyDirectory, Service, Verb

DESCRIPTION = "One memory for AI agents: conversations, memories and resources of users, each behind its own key."


def create_app(
    service: Service, directory: KeyDirectory, config: GatewayConfig, metrics: Metrics | None = None
) -> ASGIApp:
    """Create the ASGI app. The caller opens and closes the service."""
    registry = metrics or Metrics()
    return around(routed(service, directory, config, registry), config, registry)


def routed(service: Service, directory: KeyDirectory, config: GatewayConfig, metrics: Metrics) -> FastAPI:
    """Create the FastAPI app with all routes, without the edge."""
    app = FastAPI(
        title="Holdfast",
        version=holdfast.__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    auth = Door(service, directory, config)
    routers = (
        _own(directory, auth, metrics),
        users.router(auth),
        conversations.router(auth),
        memories.router(auth),
        resources.router(auth, config),
        _verbs(auth),
        everos.router(auth),
        *companies.routers(auth),
    )
    for router in routers:
        app.include_router(router)
    app.state.table = [route for router in routers for route in router.routes]
    if unprotected := unruled(app.state.table):
        raise RuntimeError(f"these routes have no access rule: {', '.join(unprotected)}")
    problems.install(app)
    describe(app)
    return app


def _verbs(auth: Door) -> APIRouter:
    async def perform(request: Request, action: Action, make: Callable[[], Verb[Any]]) -> Any:
        return await (await auth.known(request)).perform(action, make)

    async def caller(request: Request) -> Actor:
        return (await auth.known(request)).actor

    return verbs.router(perform, caller, ruled(Rule.KNOWN)["openapi_extra"])


def _own(directory: KeyDirectory, auth: Door, metrics: Metrics) -> APIRouter:
    routes = APIRouter(tags=["service"])

    @routes.get("/healthz", **ruled(Rule.PUBLIC))
    async def healthz() -> Health:
        """Check that the process responds."""
        return Health(status="ok")

    @routes.get("/readyz", **ruled(Rule.PUBLIC), responses=problems.refusals(503))
    async def readyz() -> Health:
        """Check that the process and the store respond."""
        await directory.actor_of("")
        return Health(status="ok")

    @routes.get("/metrics", **ruled(Rule.METRICS), response_class=Response, responses=_TEXT | problems.refusals(401))
    async def get_metrics(request: Request) -> Response:
        """Metrics in Prometheus's text format. They contain no user ids."""
        auth.metrics(request)
        return Response(metrics.rendered(), media_type=metrics.media_type)

    return routes


_TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
