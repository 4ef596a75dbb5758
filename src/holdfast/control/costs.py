"""A company's memory costs: summaries, the ledger of metered calls, flat fees, and token prices.

Calls write the ledger themselves (`runtime/metering.py`); this module reads it. Operators maintain fees and prices, and
each change is recorded as an event.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar, NamedTuple

from holdfast.control import validation
from holdfast.control.company_requests import CompanyPage, CompanyRead, check_request
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
from holdfast.domain.events import Event, EventKind
from holdfast.domain.ids import FinanceEventId
from holdfast.domain.scope import Part, Scope
from holdfast.domain.times import from_micros, to_micros
from holdfast.domain.usage import DEFAULT_CURRENCY
from holdfast.errors import NotFound
from holdfast.ports import Reader, Transaction
from holdfast.runtime.activity_events import activity_event
from holdfast.runtime.gate import Core, Write

MAX_DESCRIPTION_CHARS = 500


@dataclass(frozen=True, slots=True)
class SummarizeCosts(CompanyRead[None, CostSummary]):
    """Summarize the costs of calls by binding, agent, provider, model or UTC day; and flat fees by provider."""

    action: ClassVar[Action] = Action.READ_COSTS
    whole_company: ClassVar[bool] = True
    scope: Scope
    group: Annotated[CostGroup, "Sum by this."] = CostGroup.BINDING
    since: Since | None = None
    until: Until | None = None

    def __post_init__(self) -> None:
        CompanyRead.__post_init__(self)
        validation.check_span(self.since, self.until)

    def apply(self, reader: Reader, prepared: None) -> CostSummary:
        lines = reader.costs.summary(self.group, self.since, self.until)
        fees = reader.costs.finance_summary(self.since, self.until)
        return CostSummary(self.group, self.since, self.until, tuple(lines), tuple(fees))

    def record_count(self, result: CostSummary) -> int:
        return len(result.lines) + len(result.fees)


@dataclass(frozen=True, slots=True)
class ListCostEvents(CompanyPage[None, CostEventPage]):
    """List metered calls, newest first, each with its operation."""

    action: ClassVar[Action] = Action.READ_COSTS
    whole_company: ClassVar[bool] = True
    scope: Scope
    cursor: Cursor | None = None
    limit: PageLimit = DEFAULT_PAGE

    def apply(self, reader: Reader, prepared: None) -> CostEventPage:
        return CostEventPage(*self._page(reader.costs.page(self._before(), self.limit + 1)))


@dataclass(frozen=True, slots=True)
class ListFinanceEvents(CompanyPage[None, FinanceEventPage]):
    """List flat fees and invoices, newest first by when they were recorded, not by when they were due."""

    action: ClassVar[Action] = Action.READ_COSTS
    whole_company: ClassVar[bool] = True
    scope: Scope
    cursor: Cursor | None = None
    limit: PageLimit = DEFAULT_PAGE

    def apply(self, reader: Reader, prepared: None) -> FinanceEventPage:
        return FinanceEventPage(*self._page(reader.costs.finance_page(self._before(), self.limit + 1)))


class _Fee(NamedTuple):
    id: FinanceEventId
    at: datetime
    event: Event


@dataclass(frozen=True, slots=True)
class AddFinanceEvent(Write[_Fee, FinanceEvent]):
    """Record a flat fee or an invoice, which belongs to no single call. A credit is negative."""

    action: ClassVar[Action] = Action.MANAGE_COSTS
    whole_company: ClassVar[bool] = True
    scope: Scope
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

    def __post_init__(self) -> None:
        check_request(self)

    async def prepare(self, core: Core, grant: Grant) -> _Fee:
        fee_id = FinanceEventId(core.ids.new(ids.FINANCE_EVENT))
        details = {"kind": self.kind, "provider": self.provider, "binding": self.binding}
        event = activity_event(core, grant, EventKind.FINANCE_ADDED, fee_id, details)
        return _Fee(fee_id, self.occurred_at or core.clock.now(), event)

    def apply(self, transaction: Transaction, prepared: _Fee) -> FinanceEvent:
        event = self._build_event(prepared.id, prepared.at)
        transaction.costs.add_finance(event)
        transaction.events.append(prepared.event)
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

    def record_count(self, result: FinanceEvent) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class ListPrices(CompanyRead[None, tuple[Price, ...]]):
    """List the prices per million tokens, by provider and model; `*` is any model of the provider."""

    action: ClassVar[Action] = Action.READ_COSTS
    whole_company: ClassVar[bool] = True
    scope: Scope

    def apply(self, reader: Reader, prepared: None) -> tuple[Price, ...]:
        return tuple(reader.costs.prices())

    def record_count(self, result: tuple[Price, ...]) -> int:
        return len(result)


@dataclass(frozen=True, slots=True)
class SetPrice(Write[Event, Price]):
    """Set the price of a model's tokens for calls from now on, in millionths of the currency's unit."""

    action: ClassVar[Action] = Action.MANAGE_COSTS
    whole_company: ClassVar[bool] = True
    scope: Scope
    price: Annotated[Price, GROUP]
    idempotency_key: IdempotencyKey | None = None

    def __post_init__(self) -> None:
        check_request(self)

    async def prepare(self, core: Core, grant: Grant) -> Event:
        price = self.price
        about = {"provider": price.provider, "model": price.model, "currency": price.currency}
        return activity_event(core, grant, EventKind.PRICE_SET, _price_name(price.provider, price.model), about)

    def apply(self, transaction: Transaction, prepared: Event) -> Price:
        if self.price not in transaction.costs.prices():
            transaction.costs.put_price(self.price)
            transaction.events.append(prepared)
        return self.price

    def replay_state(self, result: Price) -> dict[str, Any]:
        return {}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> Price:
        return self.price

    def record_count(self, result: Price) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class RemovePrice(Write[Event, None]):
    """Delete the price of a provider's model; past estimates stay. `NotFound` if there was none."""

    action: ClassVar[Action] = Action.MANAGE_COSTS
    whole_company: ClassVar[bool] = True
    scope: Scope
    provider: Annotated[Part, "The provider."]
    model: Annotated[Part, "The model; * is any model of the provider."] = ANY_MODEL
    idempotency_key: IdempotencyKey | None = None

    def __post_init__(self) -> None:
        check_request(self)

    async def prepare(self, core: Core, grant: Grant) -> Event:
        about = {"provider": self.provider, "model": self.model}
        return activity_event(core, grant, EventKind.PRICE_REMOVED, _price_name(self.provider, self.model), about)

    def apply(self, transaction: Transaction, prepared: Event) -> None:
        if not transaction.costs.remove_price(self.provider, self.model):
            raise NotFound(
                f"there is no price for {_price_name(self.provider, self.model)!r:.120} here; list the company's prices"
            )
        transaction.events.append(prepared)

    def replay_state(self, result: None) -> dict[str, Any]:
        return {}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> None:
        return None

    def record_count(self, result: None) -> int:
        return 1


def _price_name(provider: str, model: str) -> str:
    return f"{provider}/{model}"
