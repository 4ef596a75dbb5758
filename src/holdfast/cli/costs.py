"""`costs`: costs of memory. Amounts are shown in their currency; in JSON they are millionths of it."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from holdfast.cli.exits import UsageError
from holdfast.cli.options import group
from holdfast.cli.render import show_table
from holdfast.cli.terminal_safety import on_one_line
from holdfast.cli.verb_commands import CliOption, Invocation, verb_command
from holdfast.domain.costs import CostEvent, CostLine, CostSummary, FinanceEvent, Price

app = group("Show the cost of memory, and set token prices.")
prices = group("Show and set the price of a million tokens of a model.")
app.add_typer(prices, name="prices")

_MICROS = 1_000_000
_SET_PRICE = "costs prices set PROVIDER MODEL --input AMOUNT"
_PRICES = ("input_micros", "cached_input_micros", "output_micros", "embedding_micros")


def money(micros: int, currency: str) -> str:
    """Format an exact amount with at least two decimals: a call may cost a thousandth of a cent."""
    exact = Decimal(micros) / _MICROS
    short = exact.quantize(Decimal("0.01"))
    return f"{short if short == exact else exact.normalize():,f} {on_one_line(currency)}"


def _micros(amount: str, name: str) -> int:
    try:
        micros = Decimal(amount) * _MICROS
        if micros == micros.to_integral_value() and abs(micros) <= 10**15:
            return int(micros)
    except (InvalidOperation, ValueError, OverflowError):
        pass
    raise UsageError(
        f"{name} {on_one_line(amount)}: give an amount such as 19.90, with at most six digits after the point"
    )


def _price(amount: str, name: str) -> int:
    micros = _micros(amount, name)
    if micros < 0:
        raise UsageError(f"{name} {on_one_line(amount)}: a price is 0 or more")
    return micros


@verb_command(app, "summary", "cost_summary", options={"group": CliOption("--by")})
def summary(found: CostSummary, call: Invocation) -> None:
    """Show the cost of metered calls, highest first, and flat fees by provider."""
    show_table(
        (found.group, "cost>", "estimated>", "calls>", "tokens in>", "cached>", "out>", "embedded>"),
        (_line(each) for each in found.lines),
        "No metered calls were made in that time.",
    )
    if found.fees:
        print()
        show_table(
            ("flat fees of", "cost>", "events>"),
            ((each.name, money(each.amount_micros, each.currency), each.events) for each in found.fees),
            "",
        )


@verb_command(app, "events", "cost_events")
def events(found: list[CostEvent], call: Invocation) -> None:
    """Show metered calls, newest first, each with its operation."""
    show_table(
        ("when", "cost>", "estimated", "provider", "model", "binding", "agent", "operation"),
        (
            (
                each.occurred_at,
                money(each.amount_micros, each.currency),
                each.estimated,
                each.usage.provider,
                each.usage.model,
                each.binding,
                each.scope.agent,
                each.operation_id,
            )
            for each in found
        ),
        "No metered calls were made.",
    )


@verb_command(
    app,
    "fee",
    "add_fee",
    options={
        "amount_micros": CliOption("AMOUNT", parse=_micros),
        "external_invoice_id": CliOption("--invoice"),
        "occurred_at": CliOption("--at"),
    },
    order=("kind", "amount_micros", "description"),
)
def fee(made: FinanceEvent, call: Invocation) -> None:
    """Record a flat fee or an invoice: subscription, storage, platform or other. It belongs to no single call.

    AMOUNT is in the currency, such as 19.90. A credit is negative: put -- before the arguments, as in fee -- other -5
    Refund.
    """
    print(f"Recorded: {money(made.amount_micros, made.currency)}, {made.kind}: {on_one_line(made.description)}")


@verb_command(app, "fees", "finance_events")
def fees(found: list[FinanceEvent], call: Invocation) -> None:
    """Show flat fees and invoices, newest first."""
    show_table(
        ("when", "cost>", "kind", "description", "provider", "binding", "invoice"),
        (
            (
                each.occurred_at,
                money(each.amount_micros, each.currency),
                each.kind,
                each.description,
                each.provider,
                each.binding,
                each.external_invoice_id,
            )
            for each in found
        ),
        f"There are no fees; `{call.suggest('costs fee KIND AMOUNT DESCRIPTION')}` records one.",
    )


@verb_command(prices, "list", "prices", many="prices")
def list_(found: tuple[Price, ...], call: Invocation) -> None:
    """Show the prices by provider and model. `*` is any model of the provider."""
    show_table(
        ("provider", "model", "in>", "cached in>", "out>", "embedded>"),
        (_price_row(each) for each in found),
        f"There are no prices; `{call.suggest(_SET_PRICE)}` sets one.",
    )


def _require_a_price(values: dict[str, Any], call: Invocation) -> None:
    if all(values[name] is None for name in _PRICES):
        raise UsageError("no price was given; give --input, --cached-input, --output or --embedding (0 is allowed)")


@verb_command(
    prices,
    "set",
    "set_price",
    options={
        name: CliOption(f"--{name.removesuffix('_micros').replace('_', '-')}", parse=_price, noun="AMOUNT")
        for name in _PRICES
    },
    adjust=_require_a_price,
)
def set_(made: Price, call: Invocation) -> None:
    """Set the price of a million tokens, such as --input 0.15. It applies to calls from now on.

    Without MODEL it applies to every model of the provider that has no price of its own. Omitted prices are 0.
    """
    print(
        f"Set. It applies to calls of {on_one_line(made.provider)} from now on, unless the provider reports their cost."
    )


@verb_command(prices, "remove", "remove_price")
def remove(_: None, call: Invocation) -> None:
    """Remove a price. Past estimates stay."""
    provider, model = (on_one_line(call.values[name]) for name in ("provider", "model"))
    print(f"Removed the price of {provider} {model}.")


def _line(each: CostLine) -> tuple[object, ...]:
    return (
        each.name,
        money(each.amount_micros, each.currency),
        money(each.estimated_micros, each.currency),
        each.events,
        each.input_tokens,
        each.cached_input_tokens,
        each.output_tokens,
        each.embedding_tokens,
    )


def _price_row(each: Price) -> tuple[object, ...]:
    amounts = (each.input_micros, each.cached_input_micros, each.output_micros, each.embedding_micros)
    return (each.provider, each.model, *(money(micros, each.currency) for micros in amounts))
