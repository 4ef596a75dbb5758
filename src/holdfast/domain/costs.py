"""What memory costs: metered calls, flat fees, and the prices that tokens are reckoned by.

Money is a whole number of millionths of a currency's unit. What a provider reports in cents is rounded half to even.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal
from enum import StrEnum

from holdfast.domain.contract import AttributionMode, BillingType, Usage
from holdfast.domain.ids import CostEventId, FinanceEventId, OperationId
from holdfast.domain.scope import Scope

MICROS_PER_CENT = 10_000
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Of a million tokens of each kind, in millionths of the currency's unit. `*` is any model of the provider."""

    provider: str
    model: str
    currency: str = "USD"
    input_micros: int = 0
    cached_input_micros: int = 0
    output_micros: int = 0
    embedding_micros: int = 0


@dataclass(frozen=True, slots=True)
class CostEvent:
    """One metered call, linked to its operation. `estimated` if our prices said so, not the provider."""

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
class FinanceEvent:
    """A flat fee or an invoice: never of one call. Credits are negative."""

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
class CostLine:
    """One line of a summary. `name` is None for what has none; days are UTC."""

    name: str | None
    currency: str
    amount_micros: int
    events: int
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    embedding_tokens: int
    estimated_micros: int


def billed(usage: Usage) -> bool:
    """Whether a call is to be in the ledger by itself: metered, and on nobody else's account."""
    if usage.attribution_mode is AttributionMode.BILLED_DIRECTLY:
        return True
    return usage.attribution_mode is AttributionMode.UNTRACKED and usage.billing_type is BillingType.METERED_API


def amount(usage: Usage, prices: Mapping[tuple[str, str], Price]) -> tuple[int, str, bool]:
    """Micros, currency, and whether they are an estimate: as reported, else by our prices, else nothing."""
    if usage.cost_cents is not None:
        micros = (usage.cost_cents * MICROS_PER_CENT).to_integral_value(ROUND_HALF_EVEN)
        return int(micros), usage.currency, False
    price = prices.get((usage.provider, usage.model or "*")) or prices.get((usage.provider, "*"))
    if price is None:
        return 0, usage.currency, True
    total = sum(
        Decimal(tokens) * each
        for tokens, each in (
            (usage.input_tokens, price.input_micros),
            (usage.cached_input_tokens, price.cached_input_micros),
            (usage.output_tokens, price.output_micros),
            (usage.embedding_tokens, price.embedding_micros),
        )
    )
    return int((Decimal(total) / _MILLION).to_integral_value(ROUND_HALF_EVEN)), price.currency, True


def by_model(prices: Iterable[Price]) -> dict[tuple[str, str], Price]:
    return {(price.provider, price.model): price for price in prices}
