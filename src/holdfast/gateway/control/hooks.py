"""Routes for hooks: emit an event, hydrate a run's prompt, and manage deliveries."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import Field, StringConstraints

from holdfast.control.schemas import Placed, RecordId, SourceGiven
from holdfast.domain.contract import MAX_QUERY_CHARS, HookKind
from holdfast.domain.hydration import (
    DEFAULT_BUDGET_MS,
    DEFAULT_CHARS,
    DEFAULT_SNIPPETS,
    LEAST_BUDGET_MS,
    LEAST_CHARS,
    MOST_BUDGET_MS,
    MOST_CHARS,
    MOST_SNIPPETS,
)
from holdfast.gateway.authentication import AccessRule, Authenticator, allow
from holdfast.gateway.control.dependencies import CompanyId, plane_of, router_of
from holdfast.gateway.control.operation_schemas import EmittedTold, HydratedTold
from holdfast.gateway.control.records import PayloadGiven
from holdfast.gateway.problem_responses import refusals


class HookGiven(Placed):
    """`hook_id` is the event's id: an event sent twice is delivered once."""

    hook_id: RecordId
    source: SourceGiven
    payload: PayloadGiven
    triggered_at: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        default=None, description="ISO 8601; defaults to now."
    )


class HydrateGiven(Placed):
    """The query of a run. The response is a text for its prompt, limited in size and time, or none."""

    query: Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUERY_CHARS)]
    hook_id: RecordId | None = None
    budget_ms: Annotated[int, Field(ge=LEAST_BUDGET_MS, le=MOST_BUDGET_MS)] = DEFAULT_BUDGET_MS
    max_chars: Annotated[int, Field(ge=LEAST_CHARS, le=MOST_CHARS)] = DEFAULT_CHARS
    top_k: Annotated[int, Field(ge=1, le=MOST_SNIPPETS)] = DEFAULT_SNIPPETS


def router(auth: Authenticator) -> APIRouter:
    routes = router_of("hooks")
    _add_emit_routes(routes, auth)
    return routes


def _add_emit_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.post("/hooks/{kind}", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 409, 422))
    async def emit_hook(
        request: Request, company_id: CompanyId, kind: Annotated[HookKind, Path()], body: HookGiven
    ) -> EmittedTold:
        """Emit an event. If the hook is enabled, the binding of the scope captures it, and subscribers receive it."""
        plane = await plane_of(auth, request, company_id)
        found = await plane.emit(
            kind,
            body.hook_id,
            body.payload.payload(),
            source=body.source.source(company_id),
            triggered_at=body.triggered_at,
            binding_key=body.binding_key,
            **body.where(),
        )
        return EmittedTold.of(found)

    @routes.post("/hydrate", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def hydrate(request: Request, company_id: CompanyId, body: HydrateGiven) -> HydratedTold:
        """Return a text for a run's prompt, limited in size and time; or none, and the reason."""
        plane = await plane_of(auth, request, company_id)
        found = await plane.hydrate(
            body.query,
            hook_id=body.hook_id,
            top_k=body.top_k,
            max_chars=body.max_chars,
            budget_ms=body.budget_ms,
            binding_key=body.binding_key,
            **body.where(),
        )
        return HydratedTold.of(found)
