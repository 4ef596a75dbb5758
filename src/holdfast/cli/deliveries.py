"""`deliveries`: hook deliveries and their status."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.control_plane import MAX_PAGE, Company, Few, open_control_plane, show_table, without_none
from holdfast.cli.formatting import format_time
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json, LocalStoreOptions, OnlyText, StoreOptions, expand_options
from holdfast.cli.paging import iterate_pages
from holdfast.cli.render import console, show_facts
from holdfast.cli.suggestions import suggest_command
from holdfast.domain.hooks import Delivery, HookDeliveryStatus

app = typer.Typer(help="Show hook deliveries; retry or drop dead ones.", rich_markup_mode=None)

DeliveryId = Annotated[str, typer.Argument(metavar="ID", hidden=True)]


@app.callback(invoke_without_command=True)
def deliveries(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(name="list")
@expand_options
def list_(
    chosen: LocalStoreOptions,
    company: Company = None,
    status: Annotated[
        OnlyText,
        typer.Option("--status", metavar="STATUS", help="pending, delivered, skipped, dead or dropped."),
    ] = None,
    hook: Annotated[OnlyText, typer.Option("--hook", metavar="KIND", help="Of this kind of hook.")] = None,
    to: Annotated[OnlyText, typer.Option("--to", metavar="PLACE", help="To binding:KEY or subscriber:NAME.")] = None,
    source: Annotated[OnlyText, typer.Option("--source", metavar="KIND", help="From this kind of source.")] = None,
    limit: Few = 50,
    as_json: Json = False,
) -> None:
    """List deliveries, newest first. dead: the last attempt failed; retry or drop it."""
    filters = without_none(status=status, kind=hook, to=to, source_kind=source)
    with open_control_plane(chosen, company) as plane:
        found = list(
            iterate_pages(lambda most, cursor: plane.deliveries(limit=most, cursor=cursor, **filters), limit, MAX_PAGE)
        )
    if as_json:
        print_json({"deliveries": found})
        return
    show_table(
        ("emitted", "hook", "source", "to", "status", "attempts>", "id"),
        (
            (format_time(one.created_at), one.hook.kind, one.source.kind, one.to, _status(one), one.attempts, one.id)
            for one in found
        ),
        "There are no such deliveries.",
    )


@app.command()
@expand_options
def show(delivery_id: DeliveryId, chosen: LocalStoreOptions, company: Company = None, as_json: Json = False) -> None:
    """Show one delivery: its hook, destination and last result."""
    with open_control_plane(chosen, company) as plane:
        _print_delivery(chosen, company, plane.delivery(delivery_id), as_json)


@app.command()
@expand_options
def retry(delivery_id: DeliveryId, chosen: LocalStoreOptions, company: Company = None, as_json: Json = False) -> None:
    """Retry a dead delivery with its payload. A worker sends it."""
    with open_control_plane(chosen, company) as plane:
        _print_delivery(chosen, company, plane.retry_delivery(delivery_id), as_json)


@app.command()
@expand_options
def drop(delivery_id: DeliveryId, chosen: LocalStoreOptions, company: Company = None, as_json: Json = False) -> None:
    """Drop a pending or dead delivery. Its payload is deleted."""
    with open_control_plane(chosen, company) as plane:
        _print_delivery(chosen, company, plane.drop_delivery(delivery_id), as_json)


def _status(one: Delivery) -> str:
    return one.status if one.reason is None else f"{one.status}: {one.reason}"


def _print_delivery(chosen: StoreOptions, company: str | None, one: Delivery, as_json: bool) -> None:
    if as_json:
        print_json(one)
        return
    facts = {
        "id": one.id,
        "hook": one.hook.kind,
        "hook id": one.hook.hook_id,
        "source": one.source.kind,
        "to": one.to,
        "binding": one.binding or "-",
        "status": _status(one),
        "attempts": str(one.attempts),
        "emitted": format_time(one.created_at),
        "changed": "-" if one.updated_at is None else format_time(one.updated_at),
        "operation": one.operation_id or "-",
    }
    show_facts(console(), facts)
    if one.status is HookDeliveryStatus.DEAD:
        retry, drop = (
            suggest_command(chosen, f"deliveries {each}", one.id, company=company) for each in ("retry", "drop")
        )
        print(f"`{retry}` retries it, `{drop}` drops it.")
