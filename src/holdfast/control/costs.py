"""A company's memory costs: summaries, the ledger of metered calls, flat fees, and token prices.

Calls write the ledger themselves (`runtime/metering.py`); this module reads it. Operators maintain fees and prices, and
each change is recorded as an event.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from holdfast.control import validation
from holdfast.domain import ids
from holdfast.domain.access import Action, Grant
from holdfast.domain.bindings import checked_key
from holdfast.domain.checks import checked_flag, checked_text, checked_whole
from holdfast.domain.contract import DEFAULT_PAGE, MAX_PAGE
from holdfast.domain.costs import (
    ANY_MODEL,
    MAX_FEE_MICROS,
    CostEventPage,
    CostGroup,
    CostSummary,
    FinanceEvent,
    FinanceEventPage,
    FinanceKind,
    Price,
    checked_currency,
)
from holdfast.domain.events import Event, EventKind
from holdfast.domain.ids import FinanceEventId
from holdfast.domain.scope import Scope, check_part
from holdfast.domain.times import from_micros, to_micros
from holdfast.domain.usage import DEFAULT_CURRENCY
from holdfast.errors import NotFound
from holdfast.ports import Reader, Transaction
from holdfast.runtime.activity_events import activity_event
from holdfast.runtime.cursors import Pagination
from holdfast.runtime.gate import Core, Read, Write
from holdfast.runtime.idempotency import digest_of

MAX_DESCRIPTION_CHARS = 500


@dataclass(frozen=True, slots=True)
class SummarizeCosts(Read[None, CostSummary]):
    """Summarize call costs by binding, agent, provider, model or UTC day, with the flat fees of the same period."""

    action: ClassVar[Action] = Action.READ_COSTS
    scope: Scope
    group: CostGroup = CostGroup.BINDING
    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        validation.check_company(self.scope)
        validation.check_enum(self.group, CostGroup, "group")
        validation.check_span(self.since, self.until)

    async def prepare(self, core: Core, grant: Grant) -> None:
        return None

    def apply(self, reader: Reader, prepared: None) -> CostSummary:
        lines = reader.cost_summary(self.group, self.since, self.until)
        fees = reader.finance_summary(self.since, self.until)
        return CostSummary(self.group, self.since, self.until, tuple(lines), tuple(fees))

    def record_count(self, result: CostSummary) -> int:
        return len(result.lines) + len(result.fees)


class _PagedCosts(Pagination):
    __slots__ = ()
    scope: Scope

    def __post_init__(self) -> None:
        validation.check_company(self.scope)
        self._check_page(MAX_PAGE)

    def _query(self) -> str:
        return digest_of(type(self).__name__, self.scope.space)[:16]


@dataclass(frozen=True, slots=True)
class ListCostEvents(_PagedCosts, Read[None, CostEventPage]):
    """List the ledger of metered calls, newest first."""

    action: ClassVar[Action] = Action.READ_COSTS
    scope: Scope
    cursor: str | None = None
    limit: int = DEFAULT_PAGE

    async def prepare(self, core: Core, grant: Grant) -> None:
        return None

    def apply(self, reader: Reader, prepared: None) -> CostEventPage:
        return CostEventPage(*self._page(reader.cost_events_page(self._before(), self.limit + 1)))

    def record_count(self, result: CostEventPage) -> int:
        return len(result.items)


@dataclass(frozen=True, slots=True)
class ListFinanceEvents(_PagedCosts, Read[None, FinanceEventPage]):
    """List flat fees and invoices, newest first by when they were recorded, not by when they were due."""

    action: ClassVar[Action] = Action.READ_COSTS
    scope: Scope
    cursor: str | None = None
    limit: int = DEFAULT_PAGE

    async def prepare(self, core: Core, grant: Grant) -> None:
        return None

    def apply(self, reader: Reader, prepared: None) -> FinanceEventPage:
        return FinanceEventPage(*self._page(reader.finance_events_page(self._before(), self.limit + 1)))

    def record_count(self, result: FinanceEventPage) -> int:
        return len(result.items)


class _Fee(NamedTuple):
    id: FinanceEventId
    at: datetime
    event: Event


@dataclass(frozen=True, slots=True)
class AddFinanceEvent(Write[_Fee, FinanceEvent]):
    """Record a flat fee or an invoice; a credit is negative. `occurred_at` defaults to now."""

    action: ClassVar[Action] = Action.MANAGE_COSTS
    scope: Scope
    kind: FinanceKind
    description: str
    amount_micros: int
    currency: str = DEFAULT_CURRENCY
    occurred_at: datetime | None = None
    binding: str | None = None
    provider: str | None = None
    external_invoice_id: str | None = None
    estimated: bool = False
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        validation.check_company(self.scope)
        validation.check_enum(self.kind, FinanceKind, "kind")
        checked_text(self.description, "description", max_chars=MAX_DESCRIPTION_CHARS)
        checked_whole(self.amount_micros, "amount_micros", -MAX_FEE_MICROS, MAX_FEE_MICROS)
        checked_currency(self.currency)
        validation.check_moment(self.occurred_at, "occurred_at")
        if self.binding is not None:
            checked_key(self.binding, "binding")
        for name in ("provider", "external_invoice_id"):
            if (value := getattr(self, name)) is not None:
                check_part(name, value)
        checked_flag(self.estimated, "estimated")

    async def prepare(self, core: Core, grant: Grant) -> _Fee:
        fee_id = FinanceEventId(core.ids.new(ids.FINANCE_EVENT))
        details = {"kind": self.kind, "provider": self.provider, "binding": self.binding}
        event = activity_event(core, grant, EventKind.FINANCE_ADDED, fee_id, details)
        return _Fee(fee_id, self.occurred_at or core.clock.now(), event)

    def apply(self, transaction: Transaction, prepared: _Fee) -> FinanceEvent:
        event = self._build_event(prepared.id, prepared.at)
        transaction.add_finance(event)
        transaction.append_event(prepared.event)
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
class ListPrices(Read[None, tuple[Price, ...]]):
    action: ClassVar[Action] = Action.READ_COSTS
    scope: Scope

    def __post_init__(self) -> None:
        validation.check_company(self.scope)

    async def prepare(self, core: Core, grant: Grant) -> None:
        return None

    def apply(self, reader: Reader, prepared: None) -> tuple[Price, ...]:
        return tuple(reader.prices())

    def record_count(self, result: tuple[Price, ...]) -> int:
        return len(result)


@dataclass(frozen=True, slots=True)
class SetPrice(Write[Event, Price]):
    """Set the price of a provider's model for future calls. Past estimates do not change."""

    action: ClassVar[Action] = Action.MANAGE_COSTS
    scope: Scope
    price: Price
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        validation.check_company(self.scope)
        if not isinstance(self.price, Price):
            raise validation.missing("price")

    async def prepare(self, core: Core, grant: Grant) -> Event:
        price = self.price
        about = {"provider": price.provider, "model": price.model, "currency": price.currency}
        return activity_event(core, grant, EventKind.PRICE_SET, _price_name(price.provider, price.model), about)

    def apply(self, transaction: Transaction, prepared: Event) -> Price:
        if self.price not in transaction.prices():
            transaction.put_price(self.price)
            transaction.append_event(prepared)
        return self.price

    def replay_state(self, result: Price) -> dict[str, Any]:
        return {}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> Price:
        return self.price

    def record_count(self, result: Price) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class RemovePrice(Write[Event, bool]):
    """Delete the price of a provider's model; past estimates stay. `NotFound` if there was none."""

    action: ClassVar[Action] = Action.MANAGE_COSTS
    scope: Scope
    provider: str
    model: str = ANY_MODEL
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        validation.check_company(self.scope)
        check_part("provider", self.provider)
        check_part("model", self.model)

    async def prepare(self, core: Core, grant: Grant) -> Event:
        about = {"provider": self.provider, "model": self.model}
        return activity_event(core, grant, EventKind.PRICE_REMOVED, _price_name(self.provider, self.model), about)

    def apply(self, transaction: Transaction, prepared: Event) -> bool:
        if not transaction.remove_price(self.provider, self.model):
            raise NotFound(
                f"there is no price for {_price_name(self.provider, self.model)!r:.120} here; list the company's prices"
            )
        transaction.append_event(prepared)
        return True

    def replay_state(self, result: bool) -> dict[str, Any]:
        return {}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> bool:
        return True

    def record_count(self, result: bool) -> int:
        return 1


def _price_name(provider: str, model: str) -> str:
    return f"{provider}/{model}"
