"""Builds the ASGI app: routes, error handlers, and the edge around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import Response
from starlette.types import ASGIApp

import holdfast
from holdfast.domain.access import Action, Actor
from holdfast.errors import ConfigurationError, InvalidInput
from holdfast.gateway import (
    control,
    mcp,
    memories,
    memories_add_search,
    problem_responses,
    resources,
    runtime_routes,
    tool_registries,
    users,
    verbs,
)
from holdfast.gateway.authentication import (
    AccessRule,
    Authenticator,
    RouteGuard,
    RouteTable,
    allow,
    routes_without_rule,
)
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge import wrap_app
from holdfast.gateway.edge.observers import Metrics
from holdfast.gateway.everos import cloud_routes, unsupported
from holdfast.gateway.everos import routes as everos
from holdfast.gateway.openapi import complete_openapi, operation_id
from holdfast.gateway.pages import routes as pages
from holdfast.gateway.schemas import HealthResponse
from holdfast.ports import KeyDirectory, Service, Verb
from holdfast.sdk.builder import Plan
from holdfast.sdk.runtime import make_governance
from holdfast.transports.adapter import TransportAdapter
from holdfast.transports.switches import switched_off

DESCRIPTION = "One memory for AI agents: conversations, memories and resources of users, each behind its own key."


def create_app(
    service: Service, directory: KeyDirectory, config: GatewayConfig, metrics: Metrics | None = None
) -> ASGIApp:
    """Create the ASGI app. The caller opens and closes the service."""
    registry = metrics or Metrics()
    registry.show_limit(config.max_requests)
    routes = create_route_app(service, directory, config, registry)
    return wrap_app(routes, config, registry, guard=routes.state.guard)


def create_route_app(service: Service, directory: KeyDirectory, config: GatewayConfig, metrics: Metrics) -> FastAPI:
    """Create the FastAPI app with all routes, without the edge."""
    app = FastAPI(
        title="Holdfast",
        version=holdfast.__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=operation_id,
    )
    auth = Authenticator(service, directory, config)
    adapter = make_adapter(config)
    routers = (
        _service_routes(directory, auth, metrics),
        *_protocol_routes(auth, adapter),  # before the hundreds of others: each is matched in turn
        users.router(auth),
        memories_add_search.router(auth),
        memories.router(auth),
        resources.router(auth, config),
        tool_registries.router(auth),
        _verb_routes(auth),
        everos.router(auth),
        *_runtime_routes(auth, adapter),
        cloud_routes.router(auth),
        unsupported.router(auth),
        *control.routers(auth),
        pages.router(config, lambda: app.openapi()),
    )
    for router in routers:
        app.include_router(router)
    app.state.path_prefix = pages.path_prefix(config)
    app.state.table = [route for router in routers for route in router.routes]
    if unprotected := routes_without_rule(app.state.table):
        raise RuntimeError(f"these routes have no access rule: {', '.join(unprotected)}")
    table = RouteTable(app.state.table)
    app.state.guard = lambda inner: RouteGuard(inner, auth, table)
    problem_responses.install(app)
    complete_openapi(app)
    return app


def _verb_routes(auth: Authenticator) -> APIRouter:
    async def perform(request: Request, action: Action, make: Callable[[], Verb[Any]]) -> Any:
        return await (await auth.any_key(request)).perform(action, make)

    async def caller(request: Request) -> Actor:
        return (await auth.any_key(request)).actor

    return verbs.router(perform, caller, allow(AccessRule.KNOWN)["openapi_extra"])


def make_adapter(config: GatewayConfig) -> TransportAdapter:
    """Make the adapter of the service's transports. Each of its calls has an identity of its own."""
    plan = Plan(profile=config.profile, switched_off=switched_off(config.transports))
    try:
        return TransportAdapter(make_governance(plan, config.skill_folders, model=config.maintains))
    except InvalidInput as error:
        raise ConfigurationError(f"HOLDFAST_{error.field.upper()}: {error.problem}") from None


def _runtime_routes(auth: Authenticator, adapter: TransportAdapter) -> list[APIRouter]:
    """The runtime's routes, unless the transport `http` is off."""
    is_on = adapter.governance.catalogue["transport_http"].visible
    return [runtime_routes.router(auth, adapter)] if is_on else []


def _protocol_routes(auth: Authenticator, adapter: TransportAdapter) -> list[APIRouter]:
    """The routes of the Model Context Protocol, unless the transport `mcp` is off or its package is missing."""
    is_on = adapter.governance.catalogue["transport_mcp"].visible and mcp.is_installed()
    return [mcp.router(auth, adapter)] if is_on else []


def _service_routes(directory: KeyDirectory, auth: Authenticator, metrics: Metrics) -> APIRouter:
    routes = APIRouter(tags=["service"])

    @routes.get("/healthz", **allow(AccessRule.PUBLIC))
    async def check_health() -> HealthResponse:
        """Check that the process responds."""
        return HealthResponse(status="ok")

    @routes.get("/readyz", **allow(AccessRule.PUBLIC), responses=problem_responses.refusals(503))
    async def check_readiness() -> HealthResponse:
        """Check that the process and the store respond."""
        await directory.actor_of("")
        return HealthResponse(status="ok")

    @routes.get(
        "/metrics",
        **allow(AccessRule.METRICS),
        response_class=Response,
        responses=_TEXT | problem_responses.refusals(401),
    )
    async def get_metrics(request: Request) -> Response:
        """Metrics in Prometheus's text format. They contain no user ids."""
        auth.metrics(request)
        await metrics.refresh()
        return Response(metrics.render(), media_type=metrics.media_type)

    return routes


_TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
