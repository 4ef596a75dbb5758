"""Calls on costs: metered calls, flat fees, and token prices."""

from __future__ import annotations

from holdfast.control.costs import (
    AddFinanceEvent,
    ListCostEvents,
    ListFinanceEvents,
    ListPrices,
    RemovePrice,
    SetPrice,
    SummarizeCosts,
)
from holdfast.control_api.base_calls import ControlCalls
from holdfast.domain.access import Action
from holdfast.domain.contract import DEFAULT_PAGE
from holdfast.domain.costs import (
    ANY_MODEL,
    CostEventPage,
    CostGroup,
    CostSummary,
    FinanceEvent,
    FinanceEventPage,
    FinanceKind,
    Price,
)
from holdfast.domain.usage import DEFAULT_CURRENCY
from holdfast.inputs import Moment, moment_from, parse_enum


class CostCalls(ControlCalls):
    async def cost_summary(
        self, by: CostGroup | str = CostGroup.BINDING, *, since: Moment | None = None, until: Moment | None = None
    ) -> CostSummary:
        """Summarize metered calls by binding, agent, provider, model or day, and flat fees by provider."""
        return await self._perform(
            Action.READ_COSTS,
            lambda: SummarizeCosts(
                self._company(),
                parse_enum(CostGroup, by, "by"),
                moment_from(since, "since"),
                moment_from(until, "until"),
            ),
        )

    async def cost_events(self, *, cursor: str | None = None, limit: int = DEFAULT_PAGE) -> CostEventPage:
        """List metered calls, newest first, each with its operation id."""
        return await self._perform(Action.READ_COSTS, lambda: ListCostEvents(self._company(), cursor, limit))

    async def add_fee(
        self,
        kind: FinanceKind | str,
        description: str,
        amount_micros: int,
        *,
        currency: str = DEFAULT_CURRENCY,
        occurred_at: Moment | None = None,
        binding_key: str | None = None,
        provider: str | None = None,
        external_invoice_id: str | None = None,
        estimated: bool = False,
        idempotency_key: str | None = None,
    ) -> FinanceEvent:
        """Record a flat fee or an invoice, which belongs to no single call. A credit is negative."""

        def make() -> AddFinanceEvent:
            return AddFinanceEvent(
                self._company(),
                parse_enum(FinanceKind, kind, "kind"),
                description,
                amount_micros,
                currency,
                moment_from(occurred_at, "occurred_at"),
                binding_key,
                provider,
                external_invoice_id,
                estimated,
                idempotency_key,
            )

        return await self._perform(Action.MANAGE_COSTS, make)

    async def finance_events(self, *, cursor: str | None = None, limit: int = DEFAULT_PAGE) -> FinanceEventPage:
        """List flat fees and invoices, newest first."""
        return await self._perform(Action.READ_COSTS, lambda: ListFinanceEvents(self._company(), cursor, limit))

    async def prices(self) -> tuple[Price, ...]:
        """List prices per million tokens, by provider and model; `*` is any model of the provider."""
        return await self._perform(Action.READ_COSTS, lambda: ListPrices(self._company()))

    async def set_price(
        self,
        provider: str,
        model: str = ANY_MODEL,
        *,
        currency: str = DEFAULT_CURRENCY,
        input_micros: int = 0,
        cached_input_micros: int = 0,
        output_micros: int = 0,
        embedding_micros: int = 0,
        idempotency_key: str | None = None,
    ) -> Price:
        """Set the price per million tokens of each kind for future calls, in millionths of the currency's unit."""

        def make() -> SetPrice:
            amounts = (input_micros, cached_input_micros, output_micros, embedding_micros)
            return SetPrice(self._company(), Price(provider, model, currency, *amounts), idempotency_key)

        return await self._perform(Action.MANAGE_COSTS, make)

    async def remove_price(self, provider: str, model: str = ANY_MODEL, *, idempotency_key: str | None = None) -> None:
        """Delete a price. Past estimates stay."""
        await self._perform(Action.MANAGE_COSTS, lambda: RemovePrice(self._company(), provider, model, idempotency_key))
