"""Routes for a company's costs: metered calls, flat fees and invoices, and token prices."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import Field, StringConstraints

from holdfast.control.costs import MAX_DESCRIPTION_CHARS
from holdfast.control.schemas import Asked, Key, Part
from holdfast.domain.costs import MAX_FEE_MICROS, MAX_PRICE_MICROS, CostGroup, FinanceKind
from holdfast.gateway.authentication import AccessRule, Authenticator, allow
from holdfast.gateway.control.dependencies import PAGE, CompanyId, Cursor, Limit, Since, Until, plane_of, router_of
from holdfast.gateway.control.operation_schemas import (
    CostEventList,
    CostEventTold,
    CostLineTold,
    CostSummary,
    FinanceList,
    FinanceTold,
    PriceList,
    PriceTold,
)
from holdfast.gateway.headers import IdempotencyKey
from holdfast.gateway.problem_responses import refusals

Currency = Annotated[str, StringConstraints(pattern="^[A-Z]{3}$")]
Micros = Annotated[int, Field(ge=0, le=MAX_PRICE_MICROS)]


class FinanceGiven(Asked):
    """A flat fee or an invoice. Amounts are in millionths of the currency unit; a credit is negative."""

    kind: Annotated[FinanceKind, Field(strict=False)]
    description: Annotated[str, StringConstraints(min_length=1, max_length=MAX_DESCRIPTION_CHARS)]
    amount_micros: Annotated[int, Field(ge=-MAX_FEE_MICROS, le=MAX_FEE_MICROS)]
    currency: Currency = "USD"
    binding_key: Key | None = None
    provider: Part | None = None
    external_invoice_id: Part | None = None
    estimated: bool = False
    occurred_at: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        default=None, description="ISO 8601; defaults to now."
    )


class PriceGiven(Asked):
    """Price per million tokens of each kind, in millionths of the currency unit. `*` is any model of the provider."""

    provider: Part
    model: Part = "*"
    currency: Currency = "USD"
    input_micros: Micros = 0
    cached_input_micros: Micros = 0
    output_micros: Micros = 0
    embedding_micros: Micros = 0


def router(auth: Authenticator) -> APIRouter:
    routes = router_of("costs")
    _add_read_routes(routes, auth)
    _add_fee_routes(routes, auth)
    _add_price_routes(routes, auth)
    return routes


def _add_read_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.get("/costs/summary", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 422))
    async def summarize_costs(
        request: Request,
        company_id: CompanyId,
        by: CostGroup = CostGroup.BINDING,
        since: Since = None,
        until: Until = None,
    ) -> CostSummary:
        """Summarize the cost of calls by binding, agent, provider, model or day; and flat fees by provider."""
        plane = await plane_of(auth, request, company_id)
        summary = await plane.cost_summary(by, since=since, until=until)
        return CostSummary(
            by=by,
            metered=[CostLineTold.of(each) for each in summary.lines],
            fees=[CostLineTold.of(each) for each in summary.fees],
        )

    @routes.get("/costs/events", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 422))
    async def list_cost_events(
        request: Request, company_id: CompanyId, limit: Limit = PAGE, cursor: Cursor = None
    ) -> CostEventList:
        """List metered calls, newest first, with their operation ids."""
        plane = await plane_of(auth, request, company_id)
        page = await plane.cost_events(cursor=cursor, limit=limit)
        return CostEventList(events=[CostEventTold.of(each) for each in page.items], next_cursor=page.next_cursor)


def _add_fee_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.get("/costs/finance", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 422))
    async def list_finance_events(
        request: Request, company_id: CompanyId, limit: Limit = PAGE, cursor: Cursor = None
    ) -> FinanceList:
        """List flat fees and invoices, newest first."""
        plane = await plane_of(auth, request, company_id)
        page = await plane.finance_events(cursor=cursor, limit=limit)
        return FinanceList(events=[FinanceTold.of(each) for each in page.items], next_cursor=page.next_cursor)

    @routes.post("/costs/finance", status_code=201, **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def add_finance_event(
        request: Request, company_id: CompanyId, body: FinanceGiven, idempotency_key: IdempotencyKey = None
    ) -> FinanceTold:
        """Record a flat fee or an invoice, which belongs to no single call."""
        plane = await plane_of(auth, request, company_id)
        event = await plane.add_fee(
            body.kind,
            body.description,
            body.amount_micros,
            currency=body.currency,
            binding_key=body.binding_key,
            provider=body.provider,
            external_invoice_id=body.external_invoice_id,
            estimated=body.estimated,
            occurred_at=body.occurred_at,
            idempotency_key=idempotency_key,
        )
        return FinanceTold.of(event)


def _add_price_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.get("/costs/prices", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 422))
    async def list_prices(request: Request, company_id: CompanyId) -> PriceList:
        """List the prices per million tokens, by provider and model."""
        plane = await plane_of(auth, request, company_id)
        return PriceList(prices=[PriceTold.of(each) for each in await plane.prices()])

    @routes.put("/costs/prices", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 422))
    async def set_price(
        request: Request, company_id: CompanyId, body: PriceGiven, idempotency_key: IdempotencyKey = None
    ) -> PriceTold:
        """Set the token price of a model. It applies to calls from now on."""
        plane = await plane_of(auth, request, company_id)
        return PriceTold.of(await plane.set_price(**body.model_dump(), idempotency_key=idempotency_key))

    @routes.delete(
        "/costs/prices", status_code=204, **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 422)
    )
    async def remove_price(
        request: Request,
        company_id: CompanyId,
        provider: Annotated[Part, Query()],
        model: Annotated[Part, Query()] = "*",
        idempotency_key: IdempotencyKey = None,
    ) -> None:
        """Delete a price; past estimates stay. New calls of the model are priced only if `*` has a price."""
        plane = await plane_of(auth, request, company_id)
        await plane.remove_price(provider, model, idempotency_key=idempotency_key)
