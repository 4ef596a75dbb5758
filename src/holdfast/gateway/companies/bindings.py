"""Providers, bindings, what they are bound to, and who changed what."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field
from starlette.responses import Response

from holdfast.control.forms import Asked, Key, Part
from holdfast.domain.bindings import TargetKind
from holdfast.domain.contract import HookKind
from holdfast.errors import NotFound
from holdfast.gateway.access import Door, Rule, ruled
from holdfast.gateway.companies.calling import PAGE, BindingKey, CompanyId, Cursor, Limit, Where, plane_of, router_of
from holdfast.gateway.companies.told import (
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
from holdfast.gateway.problems import refusals

Config = Annotated[dict[Part, Any], Field(max_length=100)]
Hooks = dict[Annotated[HookKind, Field(strict=False)], bool]
AgentId = Annotated[Part, Path()]


class BindingGiven(Asked):
    """A provider by its name, and its configuration as its schema asks. Secrets are references: `env://NAME`."""

    key: Key
    provider: Annotated[str, Field(min_length=1, max_length=128)]
    config: Config = Field(default_factory=dict)
    hooks: Hooks = Field(default_factory=dict)
    enabled: bool = True


class BindingChange(Asked):
    """What is given changes. `config` replaces the whole configuration, `hooks` switches those that it names."""

    config: Config | None = None
    hooks: Hooks | None = None
    enabled: bool | None = None


class TargetGiven(Asked):
    binding_key: Key


def router(door: Door) -> APIRouter:
    routes = router_of("bindings")
    _providers(routes, door)
    _reading(routes, door)
    _changing(routes, door)
    _default(routes, door)
    _override(routes, door)
    return routes


def _providers(routes: APIRouter, door: Door) -> None:
    @routes.get("/providers", **ruled(Rule.COMPANY), responses=refusals(401, 403, 422))
    async def list_providers(request: Request, company_id: CompanyId) -> ProviderList:
        """The memories that a binding can name."""
        plane = await plane_of(door, request, company_id)
        return ProviderList(providers=[ProviderTold.of(each) for each in await plane.providers()])

    @routes.get("/resolve", **ruled(Rule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def resolve(
        request: Request,
        company_id: CompanyId,
        where: Where,
        binding_key: Annotated[Key | None, Query(description="Ask for this one.")] = None,
    ) -> ResolvedTold:
        """Which binding serves here, and what was looked at to find it."""
        plane = await plane_of(door, request, company_id)
        return ResolvedTold.of(await plane.resolve(binding_key, **where))

    @routes.get("/activity", **ruled(Rule.COMPANY), responses=refusals(401, 403, 422))
    async def list_activity(
        request: Request, company_id: CompanyId, limit: Limit = PAGE, cursor: Cursor = None
    ) -> ActivityList:
        """Who changed what in how this memory is looked after, newest first."""
        plane = await plane_of(door, request, company_id)
        page = await plane.activity(cursor=cursor, limit=limit)
        return ActivityList(activity=[ActivityTold.of(each) for each in page.items], next_cursor=page.next_cursor)


def _reading(routes: APIRouter, door: Door) -> None:
    @routes.get("/bindings", **ruled(Rule.COMPANY), responses=refusals(401, 403, 422))
    async def list_bindings(request: Request, company_id: CompanyId) -> BindingList:
        """All bindings of the company, by key."""
        plane = await plane_of(door, request, company_id)
        return BindingList(bindings=[BindingTold.of(each) for each in await plane.bindings()])

    @routes.get("/bindings/{key}", **ruled(Rule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def get_binding(request: Request, response: Response, company_id: CompanyId, key: BindingKey) -> BindingTold:
        """One binding, with its ETag."""
        plane = await plane_of(door, request, company_id)
        return _with_etag(response, BindingTold.of(await plane.binding(key)))

    @routes.get("/targets", **ruled(Rule.COMPANY), responses=refusals(401, 403, 422))
    async def list_targets(request: Request, company_id: CompanyId) -> TargetList:
        """What is bound to what: the company's default, and agents' own."""
        plane = await plane_of(door, request, company_id)
        return TargetList(targets=[TargetTold.of(each) for each in await plane.targets()])


def _changing(routes: APIRouter, door: Door) -> None:
    @routes.post("/bindings", status_code=201, **ruled(Rule.COMPANY), responses=refusals(401, 403, 409, 422))
    async def create_binding(
        request: Request,
        response: Response,
        company_id: CompanyId,
        given: BindingGiven,
        idempotency_key: IdempotencyKey = None,
    ) -> BindingTold:
        """Bind a provider under a key."""
        plane = await plane_of(door, request, company_id)
        made = await plane.create_binding(
            given.key,
            given.provider,
            config=given.config,
            hooks=given.hooks,
            enabled=given.enabled,
            idempotency_key=idempotency_key,
        )
        return _with_etag(response, BindingTold.of(made))

    @routes.patch("/bindings/{key}", **ruled(Rule.COMPANY), responses=refusals(401, 403, 404, 409, 412, 422))
    async def update_binding(
        request: Request,
        response: Response,
        company_id: CompanyId,
        key: BindingKey,
        given: BindingChange,
        if_match: IfMatch = None,
        idempotency_key: IdempotencyKey = None,
    ) -> BindingTold:
        """Reconfigure a binding, switch its hooks, enable or disable it."""
        plane = await plane_of(door, request, company_id)
        changed = await plane.update_binding(
            key,
            config=given.config,
            hooks=given.hooks,
            enabled=given.enabled,
            expected_revision=expected_revision(if_match, key),
            idempotency_key=idempotency_key,
        )
        return _with_etag(response, BindingTold.of(changed))

    @routes.delete(
        "/bindings/{key}", status_code=204, **ruled(Rule.COMPANY), responses=refusals(401, 403, 404, 409, 422)
    )
    async def delete_binding(
        request: Request, company_id: CompanyId, key: BindingKey, idempotency_key: IdempotencyKey = None
    ) -> None:
        """Take a binding away, with what was bound to it. What it did stays in the trail."""
        plane = await plane_of(door, request, company_id)
        await plane.delete_binding(key, idempotency_key=idempotency_key)


def _default(routes: APIRouter, door: Door) -> None:
    @routes.get("/default-binding", **ruled(Rule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def get_default(request: Request, company_id: CompanyId) -> TargetTold:
        """The binding that serves whoever has none of its own."""
        plane = await plane_of(door, request, company_id)
        for each in await plane.targets():
            if each.kind is TargetKind.COMPANY:
                return TargetTold.of(each)
        raise NotFound("this company has no default binding; PUT one, or name a binding in each call")

    @routes.put("/default-binding", **ruled(Rule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def set_default(
        request: Request, company_id: CompanyId, given: TargetGiven, idempotency_key: IdempotencyKey = None
    ) -> TargetTold:
        """Have this binding serve whoever has none of its own."""
        plane = await plane_of(door, request, company_id)
        return TargetTold.of(await plane.set_default(given.binding_key, idempotency_key=idempotency_key))

    @routes.delete("/default-binding", status_code=204, **ruled(Rule.COMPANY), responses=refusals(401, 403, 422))
    async def clear_default(request: Request, company_id: CompanyId, idempotency_key: IdempotencyKey = None) -> None:
        """From then on whoever has no binding of its own is served by none."""
        plane = await plane_of(door, request, company_id)
        await plane.clear_default(idempotency_key=idempotency_key)


def _override(routes: APIRouter, door: Door) -> None:
    @routes.get("/agents/{agent_id}/binding", **ruled(Rule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def get_override(request: Request, company_id: CompanyId, agent_id: AgentId) -> TargetTold:
        """The agent's own binding, if it has one; `resolve` says what serves it."""
        plane = await plane_of(door, request, company_id)
        for each in await plane.targets():
            if each.kind is TargetKind.AGENT and each.target_id == agent_id:
                return TargetTold.of(each)
        raise NotFound("this agent has no binding of its own; the company's default serves it")

    @routes.put("/agents/{agent_id}/binding", **ruled(Rule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def set_override(
        request: Request,
        company_id: CompanyId,
        agent_id: AgentId,
        given: TargetGiven,
        idempotency_key: IdempotencyKey = None,
    ) -> TargetTold:
        """Have this binding serve that agent."""
        plane = await plane_of(door, request, company_id)
        return TargetTold.of(await plane.set_override(agent_id, given.binding_key, idempotency_key=idempotency_key))

    @routes.delete(
        "/agents/{agent_id}/binding", status_code=204, **ruled(Rule.COMPANY), responses=refusals(401, 403, 422)
    )
    async def clear_override(
        request: Request, company_id: CompanyId, agent_id: AgentId, idempotency_key: IdempotencyKey = None
    ) -> None:
        """Have the company's default serve that agent again."""
        plane = await plane_of(door, request, company_id)
        await plane.clear_override(agent_id, idempotency_key=idempotency_key)


def _with_etag(response: Response, told: BindingTold) -> BindingTold:
    set_etag(response, told.key, told.revision)
    return told
