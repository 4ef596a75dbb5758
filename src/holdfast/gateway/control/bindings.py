"""Routes of bindings that are not plain calls: the list, the space's default, and the bindings of agents."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import JSONResponse, Response

from holdfast.control.json_views import response_model, to_json
from holdfast.control.schemas import Key, Part, RequestModel
from holdfast.domain.bindings import Target, TargetKind
from holdfast.domain.control import BindingList
from holdfast.errors import NotFound
from holdfast.gateway.authentication import Authenticator
from holdfast.gateway.control.dependencies import CompanyId, plane_of, route_options, router_of
from holdfast.gateway.headers import IdempotencyKey

AgentId = Annotated[Part, Path()]
_TARGET = response_model(Target)


class TargetRequest(RequestModel):
    binding_key: Key


def router(auth: Authenticator) -> APIRouter:
    routes = router_of("bindings")
    _add_list_route(routes, auth)
    _add_default_routes(routes, auth)
    _add_override_routes(routes, auth)
    return routes


def _add_list_route(routes: APIRouter, auth: Authenticator) -> None:
    @routes.get(
        "/bindings",
        **route_options(response_model(BindingList)),
    )
    async def list_bindings(request: Request, company_id: CompanyId) -> Response:
        """List all bindings of the space by key."""
        plane = await plane_of(auth, request, company_id)
        return JSONResponse({"bindings": to_json(await plane.bindings())})


def _add_default_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.get("/default-binding", **route_options(_TARGET, 404))
    async def get_default_binding(request: Request, company_id: CompanyId) -> Response:
        """Get the default binding, which serves callers without their own binding."""
        plane = await plane_of(auth, request, company_id)
        for each in await plane.targets():
            if each.kind is TargetKind.COMPANY:
                return JSONResponse(to_json(each))
        raise NotFound("this space has no default binding; set one with PUT, or name a binding in each call")

    @routes.put("/default-binding", **route_options(_TARGET, 404))
    async def set_default_binding(
        request: Request, company_id: CompanyId, body: TargetRequest, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Set the default binding, which serves callers without their own binding."""
        plane = await plane_of(auth, request, company_id)
        return JSONResponse(to_json(await plane.set_default(body.binding_key, idempotency_key=idempotency_key)))

    @routes.delete("/default-binding", status_code=204, **route_options(None))
    async def clear_default_binding(
        request: Request, company_id: CompanyId, idempotency_key: IdempotencyKey = None
    ) -> None:
        """Remove the default binding. Callers without their own binding then have none."""
        plane = await plane_of(auth, request, company_id)
        await plane.clear_default(idempotency_key=idempotency_key)


def _add_override_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.get(
        "/agents/{agent_id}/binding",
        **route_options(_TARGET, 404),
    )
    async def get_agent_binding(request: Request, company_id: CompanyId, agent_id: AgentId) -> Response:
        """Get the agent's own binding, if any. `resolve` returns the binding that serves the agent."""
        plane = await plane_of(auth, request, company_id)
        for each in await plane.targets():
            if each.kind is TargetKind.AGENT and each.target_id == agent_id:
                return JSONResponse(to_json(each))
        raise NotFound("this agent has no binding of its own; the space's default binding serves it")

    @routes.put(
        "/agents/{agent_id}/binding",
        **route_options(_TARGET, 404),
    )
    async def set_agent_binding(
        request: Request,
        company_id: CompanyId,
        agent_id: AgentId,
        body: TargetRequest,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        """Set the binding of an agent."""
        plane = await plane_of(auth, request, company_id)
        return JSONResponse(
            to_json(await plane.set_override(agent_id, body.binding_key, idempotency_key=idempotency_key))
        )

    @routes.delete("/agents/{agent_id}/binding", status_code=204, **route_options(None))
    async def clear_agent_binding(
        request: Request, company_id: CompanyId, agent_id: AgentId, idempotency_key: IdempotencyKey = None
    ) -> None:
        """Remove the agent's binding. The space's default serves it again."""
        plane = await plane_of(auth, request, company_id)
        await plane.clear_override(agent_id, idempotency_key=idempotency_key)
