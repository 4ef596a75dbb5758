"""Costs of memory: metered calls, flat fees, and the prices of tokens.

Money is an integer number of millionths of a currency's unit. Cents from a provider are rounded half to even.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal
from enum import StrEnum
from typing import Annotated

from holdfast.domain.arguments import Rule, check_arguments, whole_number
from holdfast.domain.contract import Usage
from holdfast.domain.ids import CostEventId, FinanceEventId, OperationId
from holdfast.domain.presentable import Presentable, PresentableList
from holdfast.domain.scope import Part, Scope
from holdfast.domain.usage import DEFAULT_CURRENCY, is_currency
from holdfast.errors import InvalidInput

ANY_MODEL = "*"
MAX_PRICE_MICROS = 10**10  # of a million tokens
MAX_FEE_MICROS = 10**15
_PLACES_PER_CENT = 4
_MILLION = 1_000_000


def checked_currency(value: object, field: str = "currency") -> str:
    if not is_currency(value):
        raise InvalidInput(field, f"must be three capital letters, such as USD or EUR, not {value!r:.40}")
    return str(value)


Currency = Annotated[str, Rule(checked_currency, "CODE", 3, 3, "^[A-Z]{3}$"), "The currency."]
Micros = Annotated[int, whole_number(0, MAX_PRICE_MICROS)]


@dataclass(frozen=True, slots=True)
class Price(Presentable):
    """The price of a million tokens of each kind, in millionths of the currency's unit. `*` is any model."""

    provider: Annotated[Part, "The provider."]
    model: Annotated[Part, "The model; * is any model of the provider."] = ANY_MODEL
    currency: Currency = DEFAULT_CURRENCY
    input_micros: Annotated[Micros, "The price of a million input tokens."] = 0
    cached_input_micros: Annotated[Micros, "The price of a million cached input tokens."] = 0
    output_micros: Annotated[Micros, "The price of a million output tokens."] = 0
    embedding_micros: Annotated[Micros, "The price of a million embedded tokens."] = 0

    def __post_init__(self) -> None:
        check_arguments(self)


@dataclass(frozen=True, slots=True)
class CostEvent(Presentable):
    """One metered call, linked to its operation. `estimated` if the amount is by our prices, not the provider's."""

    id: CostEventId
    operation_id: OperationId | None
    binding: str | None
    scope: Scope
    usage: Usage
    amount_micros: int
    currency: str
    estimated: bool
    occurred_at: datetime


class FinanceKind(StrEnum):
    SUBSCRIPTION = "subscription"
    STORAGE = "storage"
    PLATFORM = "platform"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class FinanceEvent(Presentable):
    """A flat fee or an invoice, never the cost of one call. Credits are negative."""

    id: FinanceEventId
    space: str
    kind: FinanceKind
    description: str
    amount_micros: int
    currency: str
    occurred_at: datetime
    binding: str | None = None
    provider: str | None = None
    external_invoice_id: str | None = None
    estimated: bool = False


class CostGroup(StrEnum):
    BINDING = "binding"
    AGENT = "agent"
    PROVIDER = "provider"
    MODEL = "model"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class CostLine(Presentable):
    """One line of a summary. `name` is None for the group without a name; days are UTC."""

    name: str | None
    currency: str
    amount_micros: int
    events: int
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    embedding_tokens: int
    estimated_micros: int


@dataclass(frozen=True, slots=True)
class CostSummary(Presentable):
    """Costs of a period: metered calls by one group, and flat fees apart. Currencies are never added up."""

    group: CostGroup
    since: datetime | None
    until: datetime | None
    lines: tuple[CostLine, ...]
    fees: tuple[CostLine, ...]  # by provider

    @property
    def totals(self) -> dict[str, int]:
        """Metered calls, in micros by currency."""
        return totals(self.lines)

    @property
    def fee_totals(self) -> dict[str, int]:
        return totals(self.fees)


@dataclass(frozen=True, slots=True)
class CostEventPage(PresentableList[CostEvent]):
    """A page of cost events, newest first. `next_cursor` is None on the last page."""

    items: tuple[CostEvent, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class FinanceEventPage(PresentableList[FinanceEvent]):
    """A page of finance events, as `CostEventPage`."""

    items: tuple[FinanceEvent, ...]
    next_cursor: str | None


def cost_of(usage: Usage, prices: Mapping[tuple[str, str], Price]) -> tuple[int, str, bool]:
    """Return micros, currency, and whether it is an estimate: as reported, else by our prices, else 0.

    Rounded once, half to even, and never by way of a float. `usage` must be validated.
    """
    if usage.cost_cents is not None:
        # Multiplying would round to the decimal context's precision first.
        sign, digits, exponent = usage.cost_cents.as_tuple()
        micros = Decimal((sign, digits, int(exponent) + _PLACES_PER_CENT))
        return int(micros.to_integral_value(ROUND_HALF_EVEN)), usage.currency, False
    price = prices.get((usage.provider, usage.model or ANY_MODEL)) or prices.get((usage.provider, ANY_MODEL))
    if price is None:
        return 0, usage.currency, True
    millionths = (
        usage.input_tokens * price.input_micros
        + usage.cached_input_tokens * price.cached_input_micros
        + usage.output_tokens * price.output_micros
        + usage.embedding_tokens * price.embedding_micros
    )
    return _divide_half_even(millionths, _MILLION), price.currency, True


def _divide_half_even(value: int, by: int) -> int:
    """Divide, rounding half to even."""
    whole, rest = divmod(value, by)
    return whole + (2 * rest > by or (2 * rest == by and whole % 2 == 1))


def index_prices(prices: Iterable[Price]) -> dict[tuple[str, str], Price]:
    return {(price.provider, price.model): price for price in prices}


def totals(lines: Iterable[CostLine]) -> dict[str, int]:
    """Sum micros by currency, in the order of currency names."""
    sums: dict[str, int] = {}
    for line in lines:
        sums[line.currency] = sums.get(line.currency, 0) + line.amount_micros
    return dict(sorted(sums.items()))
