"""Costs: whole micros, rounded once, never summed across currencies; and hostile usage that cannot break accounting."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.contract import AttributionMode, BillingType, Usage
from holdfast.domain.costs import (
    MAX_PRICE_MICROS,
    CostGroup,
    CostLine,
    CostSummary,
    Price,
    checked_currency,
    cost_of,
    index_prices,
    totals,
)
from holdfast.domain.usage import (
    MAX_CENTS,
    MAX_DETAILS,
    MAX_ENTRIES,
    MAX_TOKENS,
    NOTES,
    attribution_of,
    checked_usage,
    is_billed,
)
from holdfast.errors import InvalidInput
from holdfast.testing.full_repr import full_repr

TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens", "embedding_tokens")
PRICES = ("input_micros", "cached_input_micros", "output_micros", "embedding_micros")
tokens = st.integers(0, MAX_TOKENS)
prices = st.integers(0, MAX_PRICE_MICROS)
cents = st.decimals(0, MAX_CENTS, allow_nan=False, allow_infinity=False)


def nearest(exact: Fraction) -> int:
    """Round half to even, by the definition."""
    low = exact.numerator // exact.denominator
    rest = exact - low
    if rest == Fraction(1, 2):
        return low if low % 2 == 0 else low + 1
    return low if rest < Fraction(1, 2) else low + 1


@given(cents)
def test_what_is_reported_in_cents_is_rounded_once_and_half_to_even(reported: Decimal) -> None:
    micros, currency, estimated = cost_of(Usage("p", cost_cents=reported), {})

    assert (type(micros), currency, estimated) == (int, "USD", False)
    assert micros == nearest(Fraction(reported) * 10_000)


@pytest.mark.parametrize(
    ("reported", "micros"),
    [("0.00005", 0), ("0.00015", 2), ("0.00025", 2), ("0.00005000000000000000000000000000000001", 1), ("1.5", 15_000)],
)
def test_a_tie_goes_to_the_even_micro_however_many_digits_it_is_told_with(reported: str, micros: int) -> None:
    assert cost_of(Usage("p", cost_cents=Decimal(reported)), {})[0] == micros


@given(st.tuples(tokens, tokens, tokens, tokens), st.tuples(prices, prices, prices, prices))
def test_an_estimate_is_the_sum_of_tokens_times_prices_rounded_once(
    counts: tuple[int, ...], each: tuple[int, ...]
) -> None:
    usage = replace(Usage("p", model="m"), **dict(zip(TOKENS, counts, strict=True)))  # type: ignore[arg-type]
    price = replace(Price("p", "m", "EUR"), **dict(zip(PRICES, each, strict=True)))  # type: ignore[arg-type]

    exact = Fraction(sum(count * micros for count, micros in zip(counts, each, strict=True)), 1_000_000)
    assert cost_of(usage, index_prices([price])) == (nearest(exact), "EUR", True)


@given(cents, tokens)
def test_what_is_reported_beats_what_our_prices_say(reported: Decimal, count: int) -> None:
    table = index_prices([Price("p", "m", "EUR", input_micros=5)])
    usage = Usage("p", model="m", input_tokens=count, cost_cents=reported, currency="JPY")

    assert cost_of(usage, table)[1:] == ("JPY", False)


def test_the_price_of_a_model_comes_before_that_of_any_model_of_its_provider() -> None:
    table = index_prices([Price("p", "*", input_micros=1_000_000), Price("p", "m", input_micros=3_000_000)])

    assert cost_of(Usage("p", model="m", input_tokens=1_000_000), table)[0] == 3_000_000
    assert cost_of(Usage("p", model="other", input_tokens=1_000_000), table)[0] == 1_000_000
    assert cost_of(Usage("p", input_tokens=1_000_000), table)[0] == 1_000_000
    assert cost_of(Usage("q", model="m", input_tokens=1_000_000), table) == (0, "USD", True)


@pytest.mark.parametrize("mode", AttributionMode)
@pytest.mark.parametrize("billing", BillingType)
def test_what_is_on_another_account_is_never_in_the_ledger(mode: AttributionMode, billing: BillingType) -> None:
    usage = Usage("p", billing_type=billing, attribution_mode=mode, cost_cents=Decimal(5))

    on_its_own = mode is AttributionMode.UNTRACKED and billing is not BillingType.SUBSCRIPTION_INCLUDED
    assert is_billed(usage) == (mode is AttributionMode.BILLED_DIRECTLY or on_its_own)
    assert attribution_of([usage]) == (AttributionMode.BILLED_DIRECTLY if is_billed(usage) else mode)


@pytest.mark.parametrize("mode", AttributionMode)
@pytest.mark.parametrize("billing", BillingType)
@pytest.mark.parametrize("cents", [None, Decimal(0)])
def test_what_is_reported_without_a_cost_is_in_the_ledger_if_it_is_metered(
    mode: AttributionMode, billing: BillingType, cents: Decimal | None
) -> None:
    usage = Usage("p", billing_type=billing, attribution_mode=mode, cost_cents=cents, input_tokens=7)

    metered = billing in (BillingType.METERED_API, BillingType.SUBSCRIPTION_OVERAGE)
    assert is_billed(usage) == (
        mode is AttributionMode.BILLED_DIRECTLY or (mode is AttributionMode.UNTRACKED and metered)
    )
    assert attribution_of([usage]) == (AttributionMode.BILLED_DIRECTLY if is_billed(usage) else mode)


def test_a_call_is_on_the_account_of_the_heaviest_of_what_it_took() -> None:
    included = Usage("p", attribution_mode=AttributionMode.INCLUDED_IN_RUN)
    metered = Usage("p", billing_type=BillingType.METERED_API)

    assert attribution_of([]) is None
    assert attribution_of([included, Usage("p")]) is AttributionMode.INCLUDED_IN_RUN
    assert attribution_of([included, metered]) is AttributionMode.BILLED_DIRECTLY


class Impostor(str):
    """A string whose comparison, hash and conversion raise."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    def __hash__(self) -> int:
        raise RuntimeError("hashed")

    def __str__(self) -> str:
        raise RuntimeError("told")


class Endless(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("listed")

    def __len__(self) -> int:
        raise RuntimeError("counted")


class Claimed(Usage):
    pass


# Values that are wrong for a field, hostile or not.
ODD = [
    None, -1, -(10**40), 10**40, True, float("nan"), float("inf"), -float("inf"), -0.5, 1e308, "12", "", "x" * 10_000,
    "a\x00b", "\ud800", "\u202e", b"USD", object(), Impostor("USD"), Endless(a=1), [1], {"a": object()}, {1: 2},
    Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity"), Decimal("1e999999"), Decimal("-1"), Decimal("1e-999999"),
    Decimal("0e999999"), Decimal("-0"), Decimal((0, (1,) * 5_000, -4_999)), {"deep": {"er": 1}}, {NOTES: "forged"},
    {str(number): number for number in range(1_000)}, {"big": 10**40}, {"nan": float("nan")},
]  # fmt: skip


# Drawn by index, since some values cannot even be printed.
chosen = st.integers(0, len(ODD) - 1)


@given(st.fixed_dictionaries({}, optional={name.name: chosen for name in fields(Usage)}))
def test_hostile_usage_never_crashes_whoever_counts_it(wrong: dict[str, int]) -> None:
    entry = Usage("honest")
    for name, number in wrong.items():
        object.__setattr__(entry, name, ODD[number])

    (checked,) = checked_usage((entry,), "fallback")

    micros, currency, _ = cost_of(checked, index_prices([Price("fallback", "*", input_micros=MAX_PRICE_MICROS)]))
    assert 0 <= micros <= 10**14
    assert type(micros) is int
    assert checked_currency(currency) == currency
    assert all(type(getattr(checked, name)) is int and 0 <= getattr(checked, name) <= MAX_TOKENS for name in TOKENS)
    assert checked.cost_cents is None or 0 <= checked.cost_cents <= MAX_CENTS
    assert type(checked.provider) is str
    assert 0 < len(checked.provider) <= 128
    assert isinstance(checked.billing_type, BillingType)
    assert isinstance(checked.attribution_mode, AttributionMode)
    assert len(json.dumps(dict(checked.details), allow_nan=False)) < 10_000
    assert checked_usage([checked], "fallback")[0].cost_cents == checked.cost_cents
    is_billed(checked)


@pytest.mark.parametrize("name", [*TOKENS, "cost_cents", "latency_ms"])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "12", 10**40, True], ids=repr)
def test_a_figure_that_cannot_be_believed_is_left_out_and_the_entry_says_so(name: str, value: Any) -> None:
    (checked,) = checked_usage((replace(Usage("p"), **{name: value}),), "p")

    assert not getattr(checked, name)
    (note,) = checked.details[NOTES]
    assert note.startswith(f"{name}: ")


def test_a_cost_in_no_currency_is_left_out_so_that_our_prices_count() -> None:
    (checked,) = checked_usage([Usage("p", cost_cents=Decimal(3), currency="dollars", input_tokens=7)], "p")

    assert (checked.cost_cents, checked.currency, checked.input_tokens) == (None, "USD", 7)
    assert checked.details[NOTES] == ["currency: not three capital letters; the cost is left out"]


def test_honest_usage_is_left_as_it_is() -> None:
    usage = Usage(
        "openai", "acme", "gpt-x", BillingType.METERED_API, AttributionMode.BILLED_DIRECTLY, 1, 2, 3, 4,
        Decimal("0.0123"), "EUR", 12.5, {"region": "eu", "cached": True, "tries": 2},
    )  # fmt: skip

    assert checked_usage((usage,), "other") == (usage,)


def test_figures_may_come_as_floats_and_words_as_plain_text() -> None:
    usage: Any = Usage("p", cost_cents=0.1, billing_type="metered_api", attribution_mode="untracked")  # type: ignore[arg-type]

    (checked,) = checked_usage((usage,), "p")

    assert checked.cost_cents == Decimal("0.1")
    assert checked.billing_type is BillingType.METERED_API
    assert NOTES not in checked.details


@pytest.mark.parametrize("given", [None, 5, "usage", {"a": 1}, object(), [None, 3], [Claimed("p")], iter([Usage("p")])])
def test_what_is_no_usage_counts_as_none(given: object) -> None:
    assert checked_usage(given, "p") == ()


def test_one_answer_has_a_bounded_number_of_entries_and_of_details() -> None:
    entry = Usage("p", details={f"d{number}": number for number in range(500)})

    checked = checked_usage([entry] * 10_000, "p")

    assert len(checked) == MAX_ENTRIES
    assert len(checked[0].details) == MAX_DETAILS + 1
    assert NOTES in checked[0].details


def test_nothing_that_a_provider_wrote_is_repeated_in_a_note() -> None:
    secret = "sk-" + "s" * 200
    hostile: Any = Usage(secret, model=secret, currency=secret, cost_cents=secret, details={"key": secret})  # type: ignore[arg-type]

    (checked,) = checked_usage((hostile,), "p")

    assert secret not in full_repr(checked)


lines = st.builds(
    CostLine, st.none() | st.text(max_size=3), st.sampled_from(["USD", "EUR", "JPY"]), st.integers(0, 10**15),
    st.integers(0, 99), tokens, tokens, tokens, tokens, st.integers(0, 10**15),
)  # fmt: skip


@given(st.lists(lines), st.lists(lines))
def test_currencies_are_never_added_up(calls: list[CostLine], fees: list[CostLine]) -> None:
    summary = CostSummary(CostGroup.DAY, None, datetime.now(UTC), tuple(calls), tuple(fees))

    for found, of in ((summary.totals, calls), (summary.fee_totals, fees)):
        assert found == totals(of)
        assert found == {
            currency: sum(line.amount_micros for line in of if line.currency == currency)
            for currency in sorted({line.currency for line in of})
        }


@pytest.mark.parametrize("currency", ["usd", "US", "EURO", "U$D", "", None, 5, "ÄÖÜ", "USD\n"], ids=repr)
def test_a_currency_is_three_capital_letters(currency: Any) -> None:
    with pytest.raises(InvalidInput, match="three capital letters"):
        Price("p", "m", currency)


@pytest.mark.parametrize("micros", [-1, 1.5, True, "5", MAX_PRICE_MICROS + 1], ids=repr)
@pytest.mark.parametrize("name", PRICES)
def test_a_price_is_a_whole_number_of_micros(name: str, micros: Any) -> None:
    with pytest.raises(InvalidInput, match=name):
        Price("p", "m", **{name: micros})
