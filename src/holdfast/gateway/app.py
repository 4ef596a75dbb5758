"""The service, put together: routes, problems, and the edge around them."""

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
from holdfast.ports import Directory, Service, Verb

DESCRIPTION = "One memory for AI agents: conversations, memories and resources of users, each behind its own key."


def create_app(
    service: Service, directory: Directory, config: GatewayConfig, metrics: Metrics | None = None
) -> ASGIApp:
    """An ASGI app in front of a service that somebody else opens and closes."""
    counted = metrics or Metrics()
    return around(routed(service, directory, config, counted), config, counted)


def routed(service: Service, directory: Directory, config: GatewayConfig, metrics: Metrics) -> FastAPI:
    """The routes without the edge around them."""
    app = FastAPI(
        title="Holdfast",
        version=holdfast.__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    door = Door(service, directory, config)
    routers = (
        _own(directory, door, metrics),
        users.router(door),
        conversations.router(door),
        memories.router(door),
        resources.router(door, config),
        _verbs(door),
        everos.router(door),
        *companies.routers(door),
    )
    for router in routers:
        app.include_router(router)
    app.state.table = [route for router in routers for route in router.routes]
    if unlocked := unruled(app.state.table):
        raise RuntimeError(f"these routes do not say who may call them: {', '.join(unlocked)}")
    problems.install(app)
    describe(app)
    return app


def _verbs(door: Door) -> APIRouter:
    async def perform(request: Request, action: Action, make: Callable[[], Verb[Any]]) -> Any:
        return await (await door.known(request)).perform(action, make)

    async def caller(request: Request) -> Actor:
        return (await door.known(request)).actor

    return verbs.router(perform, caller, ruled(Rule.KNOWN)["openapi_extra"])


def _own(directory: Directory, door: Door, metrics: Metrics) -> APIRouter:
    routes = APIRouter(tags=["service"])

    @routes.get("/healthz", **ruled(Rule.PUBLIC))
    async def healthz() -> Health:
        """Whether the process answers."""
        return Health(status="ok")

    @routes.get("/readyz", **ruled(Rule.PUBLIC), responses=problems.refusals(503))
    async def readyz() -> Health:
        """Whether the store answers, too."""
        await directory.actor_of("")
        return Health(status="ok")

    @routes.get("/metrics", **ruled(Rule.METRICS), response_class=Response, responses=_TEXT | problems.refusals(401))
    async def get_metrics(request: Request) -> Response:
        """Counters and times, as Prometheus reads them. They name no user."""
        door.metrics(request)
        return Response(metrics.rendered(), media_type=metrics.media_type)

    return routes


_TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
