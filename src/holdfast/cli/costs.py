"""`costs`: costs of memory. Amounts are shown in their currency; in JSON they are millionths of it."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Annotated

import typer

from holdfast.cli.control_plane import MAX_PAGE, Company, Few, Since, Until, open_control_plane, show_table
from holdfast.cli.exits import UsageError
from holdfast.cli.formatting import format_time
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json, LocalStoreOptions, OnlyText, expand_options
from holdfast.cli.paging import iterate_pages
from holdfast.cli.suggestions import suggest_command
from holdfast.cli.terminal_safety import on_one_line
from holdfast.domain.costs import CostLine, FinanceEvent, Price

app = typer.Typer(help="Show the cost of memory, and set token prices.", rich_markup_mode=None)
prices = typer.Typer(help="Show and set the price of a million tokens of a model.", rich_markup_mode=None)
app.add_typer(prices, name="prices")

_MICROS = 1_000_000
_SET_PRICE = "costs prices set PROVIDER MODEL --input AMOUNT"
Currency = Annotated[str, typer.Option("--currency", metavar="CODE", help="Such as USD or EUR.")]
ProviderName = Annotated[str, typer.Argument(metavar="PROVIDER", hidden=True)]
ModelName = Annotated[str, typer.Argument(metavar="MODEL", hidden=True)]


@app.callback(invoke_without_command=True)
def costs(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@prices.callback(invoke_without_command=True)
def prices_(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
@expand_options
def summary(
    chosen: LocalStoreOptions,
    company: Company = None,
    by: Annotated[
        str, typer.Option("--by", metavar="WHAT", help="Group by binding, agent, provider, model or day.")
    ] = "binding",
    since: Since = None,
    until: Until = None,
    as_json: Json = False,
) -> None:
    """Show the cost of metered calls, highest first, and flat fees by provider."""
    with open_control_plane(chosen, company) as plane:
        found = plane.cost_summary(by, since=since, until=until)
    if as_json:
        print_json({"by": by, "metered": found.lines, "fees": found.fees})
        return
    show_table(
        (by, "cost>", "estimated>", "calls>", "tokens in>", "cached>", "out>", "embedded>"),
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


@app.command()
@expand_options
def events(chosen: LocalStoreOptions, company: Company = None, limit: Few = 50, as_json: Json = False) -> None:
    """Show metered calls, newest first, each with its operation."""
    with open_control_plane(chosen, company) as plane:
        found = list(iterate_pages(lambda most, cursor: plane.cost_events(limit=most, cursor=cursor), limit, MAX_PAGE))
    if as_json:
        print_json({"events": found})
        return
    show_table(
        ("when", "cost>", "estimated", "provider", "model", "binding", "agent", "operation"),
        (
            (
                format_time(each.occurred_at),
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


@app.command()
@expand_options
def fee(
    kind: Annotated[str, typer.Argument(metavar="KIND", hidden=True)],
    amount: Annotated[str, typer.Argument(metavar="AMOUNT", hidden=True)],
    description: Annotated[str, typer.Argument(metavar="DESCRIPTION", hidden=True)],
    chosen: LocalStoreOptions,
    company: Company = None,
    currency: Currency = "USD",
    binding: Annotated[OnlyText, typer.Option("--binding", metavar="KEY", help="For this binding.")] = None,
    provider: Annotated[OnlyText, typer.Option("--provider", metavar="NAME", help="Of this provider.")] = None,
    invoice: Annotated[OnlyText, typer.Option("--invoice", metavar="ID", help="The invoice's ID.")] = None,
    estimated: Annotated[bool, typer.Option("--estimated", help="Not billed yet.")] = False,
    at: Annotated[OnlyText, typer.Option("--at", metavar="TIME", help="Due time.  [default: now]")] = None,
    as_json: Json = False,
) -> None:
    """Record a flat fee or an invoice: subscription, storage, platform or other. It belongs to no single call.

    AMOUNT is in the currency, such as 19.90. A credit is negative: put -- before the arguments, as in fee -- other -5
    Refund.
    """
    micros = _micros(amount)
    with open_control_plane(chosen, company) as plane:
        made = plane.add_fee(
            kind,
            description,
            micros,
            currency=currency,
            binding_key=binding,
            provider=provider,
            external_invoice_id=invoice,
            estimated=estimated,
            occurred_at=at,
        )
    if as_json:
        print_json(made)
    else:
        print(f"Recorded: {money(made.amount_micros, made.currency)}, {made.kind}: {on_one_line(made.description)}")


@app.command()
@expand_options
def fees(chosen: LocalStoreOptions, company: Company = None, limit: Few = 50, as_json: Json = False) -> None:
    """Show flat fees and invoices, newest first."""
    with open_control_plane(chosen, company) as plane:
        found: list[FinanceEvent] = list(
            iterate_pages(lambda most, cursor: plane.finance_events(limit=most, cursor=cursor), limit, MAX_PAGE)
        )
    if as_json:
        print_json({"events": found})
        return
    show_table(
        ("when", "cost>", "kind", "description", "provider", "binding", "invoice"),
        (
            (
                format_time(each.occurred_at),
                money(each.amount_micros, each.currency),
                each.kind,
                each.description,
                each.provider,
                each.binding,
                each.external_invoice_id,
            )
            for each in found
        ),
        f"There are no fees; `{suggest_command(chosen, 'costs fee KIND AMOUNT DESCRIPTION', company=company)}`"
        " records one.",
    )


@prices.command(name="list")
@expand_options
def list_(chosen: LocalStoreOptions, company: Company = None, as_json: Json = False) -> None:
    """Show the prices by provider and model. `*` is any model of the provider."""
    with open_control_plane(chosen, company) as plane:
        found = plane.prices()
    if as_json:
        print_json({"prices": found})
        return
    show_table(
        ("provider", "model", "in>", "cached in>", "out>", "embedded>"),
        (_price_row(each) for each in found),
        f"There are no prices; `{suggest_command(chosen, _SET_PRICE, company=company)}` sets one.",
    )


@prices.command(name="set")
@expand_options
def set_(
    provider: ProviderName,
    chosen: LocalStoreOptions,
    model: ModelName = "*",
    company: Company = None,
    input_: Annotated[
        OnlyText, typer.Option("--input", metavar="AMOUNT", help="Price of a million input tokens.")
    ] = None,
    cached_input: Annotated[
        OnlyText, typer.Option("--cached-input", metavar="AMOUNT", help="Price of a million cached input tokens.")
    ] = None,
    output: Annotated[
        OnlyText, typer.Option("--output", metavar="AMOUNT", help="Price of a million output tokens.")
    ] = None,
    embedding: Annotated[
        OnlyText, typer.Option("--embedding", metavar="AMOUNT", help="Price of a million embedded tokens.")
    ] = None,
    currency: Currency = "USD",
    as_json: Json = False,
) -> None:
    """Set the price of a million tokens, such as --input 0.15. It applies to calls from now on.

    Without MODEL it applies to every model of the provider that has no price of its own. Omitted prices are 0.
    """
    if input_ is cached_input is output is embedding is None:
        raise UsageError("no price was given; give --input, --cached-input, --output or --embedding (0 is allowed)")
    with open_control_plane(chosen, company) as plane:
        made = plane.set_price(
            provider,
            model,
            currency=currency,
            input_micros=_price(input_, "--input"),
            cached_input_micros=_price(cached_input, "--cached-input"),
            output_micros=_price(output, "--output"),
            embedding_micros=_price(embedding, "--embedding"),
        )
    if as_json:
        print_json(made)
    else:
        print(
            f"Set. It applies to calls of {on_one_line(provider)} from now on, unless the provider reports their cost."
        )


@prices.command()
@expand_options
def remove(
    provider: ProviderName,
    chosen: LocalStoreOptions,
    model: ModelName = "*",
    company: Company = None,
    as_json: Json = False,
) -> None:
    """Remove a price. Past estimates stay."""
    with open_control_plane(chosen, company) as plane:
        plane.remove_price(provider, model)
    if as_json:
        print_json({"removed": {"provider": provider, "model": model}})
    else:
        print(f"Removed the price of {on_one_line(provider)} {on_one_line(model)}.")


def money(micros: int, currency: str) -> str:
    """Format an exact amount with at least two decimals: a call may cost a thousandth of a cent."""
    exact = Decimal(micros) / _MICROS
    short = exact.quantize(Decimal("0.01"))
    return f"{short if short == exact else exact.normalize():,f} {on_one_line(currency)}"


def _micros(amount: str, named: str = "AMOUNT") -> int:
    try:
        micros = Decimal(amount) * _MICROS
        if micros == micros.to_integral_value() and abs(micros) <= 10**15:
            return int(micros)
    except (InvalidOperation, ValueError, OverflowError):
        pass
    raise UsageError(
        f"{named} {on_one_line(amount)}: give an amount such as 19.90, with at most six digits after the point"
    )


def _price(amount: str | None, named: str) -> int:
    micros = 0 if amount is None else _micros(amount, named)
    if micros < 0:
        raise UsageError(f"{named} {on_one_line(str(amount))}: a price is 0 or more")
    return micros


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
