"""A space's memory costs: summaries, the ledger of metered calls, flat fees, and token prices.

Calls write the ledger themselves (`runtime/metering.py`); this module reads it. Operators maintain fees and prices, and
each change is recorded as an event.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar

from holdfast.control.company_requests import CompanyPage, CompanyRead, CompanyWrite, log_change
from holdfast.domain import ids
from holdfast.domain.access import Action, Grant
from holdfast.domain.arguments import GROUP, IdempotencyKey, text_rule, whole_number
from holdfast.domain.bindings import Key
from holdfast.domain.contract import DEFAULT_PAGE, Cursor, PageLimit, Since, Until
from holdfast.domain.costs import (
    ANY_MODEL,
    MAX_FEE_MICROS,
    CostEventPage,
    CostGroup,
    CostSummary,
    Currency,
    FinanceEvent,
    FinanceEventPage,
    FinanceKind,
    Price,
)
from holdfast.domain.events import EventKind
from holdfast.domain.ids import FinanceEventId
from holdfast.domain.scope import Part
from holdfast.domain.times import from_micros, to_micros
from holdfast.domain.usage import DEFAULT_CURRENCY
from holdfast.errors import NotFound
from holdfast.ports import Reader, Transaction
from holdfast.runtime.gate import Core

MAX_DESCRIPTION_CHARS = 500


@dataclass(frozen=True, slots=True)
class SummarizeCosts(CompanyRead[CostSummary]):
    """Summarize the costs of calls by binding, agent, provider, model or UTC day; and flat fees by provider."""

    action: ClassVar[Action] = Action.READ_COSTS
    group: Annotated[CostGroup, "Sum by this."] = CostGroup.BINDING
    since: Since | None = None
    until: Until | None = None

    def apply(self, reader: Reader, prepared: Core) -> CostSummary:
        lines = reader.costs.summary(self.group, self.since, self.until)
        fees = reader.costs.finance_summary(self.since, self.until)
        return CostSummary(self.group, self.since, self.until, tuple(lines), tuple(fees))

    def record_count(self, result: CostSummary) -> int:
        return len(result.lines) + len(result.fees)


@dataclass(frozen=True, slots=True)
class ListCostEvents(CompanyPage[CostEventPage]):
    """List metered calls, newest first, each with its operation."""

    action: ClassVar[Action] = Action.READ_COSTS
    cursor: Cursor | None = None
    limit: PageLimit = DEFAULT_PAGE

    def apply(self, reader: Reader, prepared: Core) -> CostEventPage:
        return CostEventPage(*self._page(reader.costs.page(self._before(), self.limit + 1)))


@dataclass(frozen=True, slots=True)
class ListFinanceEvents(CompanyPage[FinanceEventPage]):
    """List flat fees and invoices, newest first by when they were recorded, not by when they were due."""

    action: ClassVar[Action] = Action.READ_COSTS
    cursor: Cursor | None = None
    limit: PageLimit = DEFAULT_PAGE

    def apply(self, reader: Reader, prepared: Core) -> FinanceEventPage:
        return FinanceEventPage(*self._page(reader.costs.finance_page(self._before(), self.limit + 1)))


@dataclass(frozen=True, slots=True)
class AddFinanceEvent(CompanyWrite[FinanceEvent]):
    """Record a flat fee or an invoice, which belongs to no single call. A credit is negative."""

    action: ClassVar[Action] = Action.MANAGE_COSTS
    kind: Annotated[FinanceKind, "The kind of fee."]
    description: Annotated[str, text_rule(MAX_DESCRIPTION_CHARS), "What it is for."]
    amount_micros: Annotated[int, whole_number(-MAX_FEE_MICROS, MAX_FEE_MICROS), "Millionths of the currency's unit."]
    currency: Currency = DEFAULT_CURRENCY
    occurred_at: Annotated[datetime | None, "When it is due; now by default."] = None
    binding: Annotated[Key | None, "For this binding."] = None
    provider: Annotated[Part | None, "Of this provider."] = None
    external_invoice_id: Annotated[Part | None, "The invoice's id."] = None
    estimated: Annotated[bool, "Not billed yet."] = False
    idempotency_key: IdempotencyKey | None = None

    def apply(self, transaction: Transaction, prepared: tuple[Core, Grant]) -> FinanceEvent:
        core = prepared[0]
        fee_id = FinanceEventId(core.ids.new(ids.FINANCE_EVENT))
        event = self._build_event(fee_id, self.occurred_at or core.clock.now())
        transaction.costs.add_finance(event)
        details = {"kind": self.kind, "provider": self.provider, "binding": self.binding}
        log_change(transaction, prepared, EventKind.FINANCE_ADDED, fee_id, details)
        return event

    def _build_event(self, fee_id: FinanceEventId, at: datetime) -> FinanceEvent:
        return FinanceEvent(
            id=fee_id,
            space=self.scope.space,
            kind=self.kind,
            description=self.description,
            amount_micros=self.amount_micros,
            currency=self.currency,
            occurred_at=at,
            binding=self.binding,
            provider=self.provider,
            external_invoice_id=self.external_invoice_id,
            estimated=self.estimated,
        )

    def replay_state(self, result: FinanceEvent) -> dict[str, Any]:
        return {"id": result.id, "at": to_micros(result.occurred_at)}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> FinanceEvent:
        """Rebuild the event from this request: the digest proved that the two are the same."""
        return self._build_event(FinanceEventId(kept["id"]), from_micros(kept["at"]))


@dataclass(frozen=True, slots=True)
class ListPrices(CompanyRead[tuple[Price, ...]]):
    """List the prices per million tokens, by provider and model; `*` is any model of the provider."""

    action: ClassVar[Action] = Action.READ_COSTS

    def apply(self, reader: Reader, prepared: Core) -> tuple[Price, ...]:
        return tuple(reader.costs.prices())


@dataclass(frozen=True, slots=True)
class SetPrice(CompanyWrite[Price]):
    """Set the price of a model's tokens for calls from now on, in millionths of the currency's unit."""

    action: ClassVar[Action] = Action.MANAGE_COSTS
    price: Annotated[Price, GROUP]
    idempotency_key: IdempotencyKey | None = None

    def apply(self, transaction: Transaction, prepared: tuple[Core, Grant]) -> Price:
        price = self.price
        if price not in transaction.costs.prices():
            transaction.costs.put_price(price)
            about = {"provider": price.provider, "model": price.model, "currency": price.currency}
            name = _price_name(price.provider, price.model)
            log_change(transaction, prepared, EventKind.PRICE_SET, name, about)
        return price

    def replay_state(self, result: Price) -> dict[str, Any]:
        return {}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> Price:
        return self.price


@dataclass(frozen=True, slots=True)
class RemovePrice(CompanyWrite[None]):
    """Delete the price of a provider's model; past estimates stay. `NotFound` if there was none."""

    action: ClassVar[Action] = Action.MANAGE_COSTS
    provider: Annotated[Part, "The provider."]
    model: Annotated[Part, "The model; * is any model of the provider."] = ANY_MODEL
    idempotency_key: IdempotencyKey | None = None

    def apply(self, transaction: Transaction, prepared: tuple[Core, Grant]) -> None:
        name = _price_name(self.provider, self.model)
        if not transaction.costs.remove_price(self.provider, self.model):
            raise NotFound(f"there is no price for {name!r:.120} here; list the space's prices")
        about = {"provider": self.provider, "model": self.model}
        log_change(transaction, prepared, EventKind.PRICE_REMOVED, name, about)

    def replay_state(self, result: None) -> dict[str, Any]:
        return {}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> None:
        return None


def _price_name(provider: str, model: str) -> str:
    return f"{provider}/{model}"
