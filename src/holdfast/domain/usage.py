"""Validation of the usage that a provider reports for a call.

An implausible figure is left out, and the entry's `details` name the field under `NOTES`. Nothing here raises: the call
was made, and its response is good.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeVar

from holdfast.domain.contract import AttributionMode, BillingType, Usage
from holdfast.domain.visible_text import is_plain_line

NOTES = "holdfast_notes"
DEFAULT_CURRENCY = "USD"
MAX_ENTRIES = 32  # of one response
MAX_TOKENS = 10**9
MAX_CENTS = 10**8
MAX_NAME_CHARS = 128
MAX_DETAILS = 16
MAX_DETAIL_CHARS = 200
_MOST_DIGITS = 50
_MOST_MILLISECONDS = 86_400_000.0
_CURRENCY = re.compile("[A-Z]{3}", re.ASCII)

E = TypeVar("E", bound=StrEnum)


def is_currency(value: object) -> bool:
    """True if the value is three capital letters, as in ISO 4217."""
    return type(value) is str and _CURRENCY.fullmatch(value) is not None


def checked_usage(given: object, provider: str) -> tuple[Usage, ...]:
    """Return the usage of one response, as far as it can be counted. Entries that are no `Usage` are left out.

    `provider` is the default where an entry names none. Types must match exactly: a subclass may behave differently
    the next time it is read.
    """
    entries: list[object] = list(given) if type(given) in (tuple, list) else []  # type: ignore[call-overload]
    known = [entry for entry in entries if type(entry) is Usage]
    return tuple(_validate_entry(entry, provider) for entry in known[:MAX_ENTRIES])


@dataclass(slots=True)
class _Notes:
    """Validates fields and collects a note for each one left out. Notes never repeat the given value."""

    said: list[str] = field(default_factory=list)

    def name(self, name: str, value: object) -> str | None:
        if value is None:
            return None
        if type(value) is str and 0 < len(value) <= MAX_NAME_CHARS and is_plain_line(value) and value.strip():
            return value
        self.said.append(f"{name}: not a name of at most {MAX_NAME_CHARS} characters")
        return None

    def tokens(self, name: str, value: object) -> int:
        if type(value) is int and 0 <= value <= MAX_TOKENS:
            return value
        self.said.append(f"{name}: not a whole number from 0 to {MAX_TOKENS}")
        return 0

    def cents(self, value: object) -> Decimal | None:
        if value is None:
            return None
        # The repr of a float is the decimal that the provider meant.
        amount = Decimal(repr(value)) if type(value) is float else Decimal(value) if type(value) is int else value
        if type(amount) is Decimal and amount.is_finite() and 0 <= amount <= MAX_CENTS and _is_short(amount):
            return amount if amount else Decimal(0)
        self.said.append(f"cost_cents: not an amount from 0 to {MAX_CENTS}")
        return None

    def milliseconds(self, value: object) -> float | None:
        if value is None:
            return None
        if type(value) in (int, float) and 0 <= value <= _MOST_MILLISECONDS:  # type: ignore[operator]
            return float(value)  # type: ignore[arg-type]
        self.said.append("latency_ms: not a time from 0 to a day")
        return None

    def one_of(self, name: str, kind: type[E], value: object, otherwise: E) -> E:
        if isinstance(value, kind):
            return value
        if type(value) is str and value in set(kind):
            return kind(value)
        self.said.append(f"{name}: not one of {', '.join(kind)}")
        return otherwise

    def details(self, value: object) -> dict[str, Any]:
        """Return the first few entries that are scalars. Long text is not a detail of usage."""
        if not isinstance(value, dict):
            self.said.append("details: not a mapping")
            return {}
        scalars = {name: each for name, each in list(dict.items(value))[: 4 * MAX_DETAILS] if _is_detail(name, each)}
        scalars.pop(NOTES, None)
        first = dict(list(scalars.items())[:MAX_DETAILS])
        if len(first) < dict.__len__(value) - dict.__contains__(value, NOTES):
            self.said.append(f"details: more than {MAX_DETAILS}, or not single values")
        return first


def _validate_entry(entry: Usage, provider: str) -> Usage:
    notes = _Notes()
    cents, currency = notes.cents(entry.cost_cents), entry.currency
    if not is_currency(currency):
        # Without a currency the amount is meaningless.
        notes.said.append("currency: not three capital letters; the cost is left out")
        cents, currency = None, DEFAULT_CURRENCY
    named = notes.name("provider", entry.provider)
    return Usage(
        provider=provider if named is None else named,
        biller=notes.name("biller", entry.biller),
        model=notes.name("model", entry.model),
        billing_type=notes.one_of("billing_type", BillingType, entry.billing_type, BillingType.UNKNOWN),
        attribution_mode=notes.one_of(
            "attribution_mode", AttributionMode, entry.attribution_mode, AttributionMode.UNTRACKED
        ),
        input_tokens=notes.tokens("input_tokens", entry.input_tokens),
        cached_input_tokens=notes.tokens("cached_input_tokens", entry.cached_input_tokens),
        output_tokens=notes.tokens("output_tokens", entry.output_tokens),
        embedding_tokens=notes.tokens("embedding_tokens", entry.embedding_tokens),
        cost_cents=cents,
        currency=currency,
        latency_ms=notes.milliseconds(entry.latency_ms),
        details=_with_notes(notes.details(entry.details), notes.said),
    )


def _with_notes(details: dict[str, Any], said: list[str]) -> dict[str, Any]:
    return {**details, NOTES: said} if said else details


def _is_detail(name: object, value: object) -> bool:
    if type(name) is not str or not 0 < len(name) <= MAX_NAME_CHARS or not is_plain_line(name):
        return False
    if type(value) is str:
        return len(value) <= MAX_DETAIL_CHARS and is_plain_line(value)
    if type(value) is float:
        return math.isfinite(value)
    return value is None or type(value) is bool or (type(value) is int and abs(value) < 2**63)


def _is_short(amount: Decimal) -> bool:
    """True if the amount has few enough digits to be stored exactly."""
    _, digits, exponent = amount.as_tuple()
    return not amount or (len(digits) <= _MOST_DIGITS and int(exponent) >= -_MOST_DIGITS)


def attribution_of(usages: Iterable[Usage]) -> AttributionMode | None:
    """Return the attribution of a call with these usages: the heaviest of theirs; None if there are none."""
    modes = {AttributionMode.BILLED_DIRECTLY if is_billed(usage) else usage.attribution_mode for usage in usages}
    return next((mode for mode in _HEAVIEST_FIRST if mode in modes), None)


_HEAVIEST_FIRST = (
    AttributionMode.BILLED_DIRECTLY,
    AttributionMode.EXTERNAL_INVOICE,
    AttributionMode.INCLUDED_IN_RUN,
    AttributionMode.UNTRACKED,
)
_METERED = (BillingType.METERED_API, BillingType.SUBSCRIPTION_OVERAGE)


def is_billed(usage: Usage) -> bool:
    """True if a call gets a cost event of its own: metered or reported with a cost, and not on another account.

    A provider may leave out the attribution and the billing type; the money must be counted all the same.
    """
    if usage.attribution_mode is not AttributionMode.UNTRACKED:
        return usage.attribution_mode is AttributionMode.BILLED_DIRECTLY
    if usage.billing_type is BillingType.UNKNOWN:
        return usage.cost_cents is not None and usage.cost_cents > 0
    return usage.billing_type in _METERED
