"""Routes for providers, bindings, their targets, and the log of configuration changes."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field
from starlette.responses import Response

from holdfast.control.schemas import Asked, Key, Part
from holdfast.domain.bindings import TargetKind
from holdfast.domain.contract import HookKind
from holdfast.errors import NotFound
from holdfast.gateway.authentication import AccessRule, Authenticator, allow
from holdfast.gateway.control.dependencies import (
    PAGE,
    BindingKey,
    CompanyId,
    Cursor,
    Limit,
    Where,
    plane_of,
    router_of,
)
from holdfast.gateway.control.schemas import (
    ActivityList,
    ActivityTold,
    BindingList,
    BindingTold,
    ProviderList,
    ProviderTold,
    ResolvedTold,
    TargetList,
    TargetTold,
)
from holdfast.gateway.headers import IdempotencyKey, IfMatch, expected_revision, set_etag
from holdfast.gateway.problem_responses import refusals

Config = Annotated[dict[Part, Any], Field(max_length=100)]
Hooks = dict[Annotated[HookKind, Field(strict=False)], bool]
AgentId = Annotated[Part, Path()]


class BindingGiven(Asked):
    """A provider and its configuration, which must match the provider's schema. Secrets are references: `env://NAME`."""

    key: Key
    provider: Annotated[str, Field(min_length=1, max_length=128)]
    config: Config = Field(default_factory=dict)
    hooks: Hooks = Field(default_factory=dict)
    enabled: bool = True


class BindingChange(Asked):
    """Changes the given fields. `config` replaces the whole configuration; `hooks` switches only the named hooks."""

    config: Config | None = None
    hooks: Hooks | None = None
    enabled: bool | None = None


class TargetGiven(Asked):
    binding_key: Key


def router(auth: Authenticator) -> APIRouter:
    routes = router_of("bindings")
    _add_provider_routes(routes, auth)
    _add_read_routes(routes, auth)
    _add_change_routes(routes, auth)
    _add_default_routes(routes, auth)
    _add_override_routes(routes, auth)
    return routes


def _add_provider_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.get("/providers", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 422))
    async def list_providers(request: Request, company_id: CompanyId) -> ProviderList:
        """List the providers that a binding can use."""
        plane = await plane_of(auth, request, company_id)
        return ProviderList(providers=[ProviderTold.of(each) for each in await plane.providers()])

    @routes.get("/resolve", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def resolve(
        request: Request,
        company_id: CompanyId,
        where: Where,
        binding_key: Annotated[Key | None, Query(description="Use this binding.")] = None,
    ) -> ResolvedTold:
        """Return the binding for a scope, and how it was chosen."""
        plane = await plane_of(auth, request, company_id)
        return ResolvedTold.of(await plane.resolve(binding_key, **where))

    @routes.get("/activity", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 422))
    async def list_activity(
        request: Request, company_id: CompanyId, limit: Limit = PAGE, cursor: Cursor = None
    ) -> ActivityList:
        """List changes to the memory configuration, newest first."""
        plane = await plane_of(auth, request, company_id)
        page = await plane.activity(cursor=cursor, limit=limit)
        return ActivityList(activity=[ActivityTold.of(each) for each in page.items], next_cursor=page.next_cursor)


def _add_read_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.get("/bindings", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 422))
    async def list_bindings(request: Request, company_id: CompanyId) -> BindingList:
        """List all bindings of the company by key."""
        plane = await plane_of(auth, request, company_id)
        return BindingList(bindings=[BindingTold.of(each) for each in await plane.bindings()])

    @routes.get("/bindings/{key}", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def get_binding(request: Request, response: Response, company_id: CompanyId, key: BindingKey) -> BindingTold:
        """Get one binding, with its ETag."""
        plane = await plane_of(auth, request, company_id)
        return _with_etag(response, BindingTold.of(await plane.binding(key)))

    @routes.get("/targets", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 422))
    async def list_targets(request: Request, company_id: CompanyId) -> TargetList:
        """List the targets: the company's default binding, and bindings of agents."""
        plane = await plane_of(auth, request, company_id)
        return TargetList(targets=[TargetTold.of(each) for each in await plane.targets()])


def _add_change_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.post("/bindings", status_code=201, **allow(AccessRule.COMPANY), responses=refusals(401, 403, 409, 422))
    async def create_binding(
        request: Request,
        response: Response,
        company_id: CompanyId,
        body: BindingGiven,
        idempotency_key: IdempotencyKey = None,
    ) -> BindingTold:
        """Create a binding of a provider under a key."""
        plane = await plane_of(auth, request, company_id)
        created = await plane.create_binding(
            body.key,
            body.provider,
            config=body.config,
            hooks=body.hooks,
            enabled=body.enabled,
            idempotency_key=idempotency_key,
        )
        return _with_etag(response, BindingTold.of(created))

    @routes.patch("/bindings/{key}", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 409, 412, 422))
    async def update_binding(
        request: Request,
        response: Response,
        company_id: CompanyId,
        key: BindingKey,
        body: BindingChange,
        if_match: IfMatch = None,
        idempotency_key: IdempotencyKey = None,
    ) -> BindingTold:
        """Change a binding's configuration or hooks; enable or disable it."""
        plane = await plane_of(auth, request, company_id)
        changed = await plane.update_binding(
            key,
            config=body.config,
            hooks=body.hooks,
            enabled=body.enabled,
            expected_revision=expected_revision(if_match, key),
            idempotency_key=idempotency_key,
        )
        return _with_etag(response, BindingTold.of(changed))

    @routes.delete(
        "/bindings/{key}", status_code=204, **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 409, 422)
    )
    async def delete_binding(
        request: Request, company_id: CompanyId, key: BindingKey, idempotency_key: IdempotencyKey = None
    ) -> None:
        """Delete a binding and its targets. Its operations stay in the audit trail."""
        plane = await plane_of(auth, request, company_id)
        await plane.delete_binding(key, idempotency_key=idempotency_key)


def _add_default_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.get("/default-binding", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def get_default(request: Request, company_id: CompanyId) -> TargetTold:
        """Get the default binding, which serves callers without their own binding."""
        plane = await plane_of(auth, request, company_id)
        for each in await plane.targets():
            if each.kind is TargetKind.COMPANY:
                return TargetTold.of(each)
        raise NotFound("this company has no default binding; set one with PUT, or name a binding in each call")

    @routes.put("/default-binding", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def set_default(
        request: Request, company_id: CompanyId, body: TargetGiven, idempotency_key: IdempotencyKey = None
    ) -> TargetTold:
        """Set the default binding, which serves callers without their own binding."""
        plane = await plane_of(auth, request, company_id)
        return TargetTold.of(await plane.set_default(body.binding_key, idempotency_key=idempotency_key))

    @routes.delete("/default-binding", status_code=204, **allow(AccessRule.COMPANY), responses=refusals(401, 403, 422))
    async def clear_default(request: Request, company_id: CompanyId, idempotency_key: IdempotencyKey = None) -> None:
        """Remove the default binding. Callers without their own binding then have none."""
        plane = await plane_of(auth, request, company_id)
        await plane.clear_default(idempotency_key=idempotency_key)


def _add_override_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.get("/agents/{agent_id}/binding", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def get_override(request: Request, company_id: CompanyId, agent_id: AgentId) -> TargetTold:
        """Get the agent's own binding, if any. `resolve` returns the binding that serves the agent."""
        plane = await plane_of(auth, request, company_id)
        for each in await plane.targets():
            if each.kind is TargetKind.AGENT and each.target_id == agent_id:
                return TargetTold.of(each)
        raise NotFound("this agent has no binding of its own; the company's default binding serves it")

    @routes.put("/agents/{agent_id}/binding", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def set_override(
        request: Request,
        company_id: CompanyId,
        agent_id: AgentId,
        body: TargetGiven,
        idempotency_key: IdempotencyKey = None,
    ) -> TargetTold:
        """Set the binding of an agent."""
        plane = await plane_of(auth, request, company_id)
        return TargetTold.of(await plane.set_override(agent_id, body.binding_key, idempotency_key=idempotency_key))

    @routes.delete(
        "/agents/{agent_id}/binding", status_code=204, **allow(AccessRule.COMPANY), responses=refusals(401, 403, 422)
    )
    async def clear_override(
        request: Request, company_id: CompanyId, agent_id: AgentId, idempotency_key: IdempotencyKey = None
    ) -> None:
        """Remove the agent's binding. The company's default serves it again."""
        plane = await plane_of(auth, request, company_id)
        await plane.clear_override(agent_id, idempotency_key=idempotency_key)


def _with_etag(response: Response, binding: BindingTold) -> BindingTold:
    set_etag(response, binding.key, binding.revision)
    return binding
