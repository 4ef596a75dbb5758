"""`operations`: memory operations, their callers and outcomes."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from holdfast.cli.control_plane import (
    MAX_PAGE,
    Company,
    Few,
    Since,
    Until,
    open_control_plane,
    show_table,
    without_none,
)
from holdfast.cli.formatting import format_time_with_seconds
from holdfast.cli.json_output import plain, print_json
from holdfast.cli.options import Json, LocalStoreOptions, OnlyText, expand_options
from holdfast.cli.paging import iterate_pages
from holdfast.cli.render import console, show_facts
from holdfast.domain.operations import TYPE_OF, Operation

app = typer.Typer(help="Show memory operations, their callers and outcomes.", rich_markup_mode=None)


def _option(name: str, metavar: str, explained: str) -> typer.models.OptionInfo:
    found: typer.models.OptionInfo = typer.Option(name, metavar=metavar, help=explained)
    return found


@app.callback(invoke_without_command=True)
def operations(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(name="list")
@expand_options
def list_(
    chosen: LocalStoreOptions,
    company: Company = None,
    agent: Annotated[OnlyText, _option("--agent", "NAME", "Of this agent.")] = None,
    project: Annotated[OnlyText, _option("--project", "NAME", "In this project.")] = None,
    issue: Annotated[OnlyText, _option("--issue", "NAME", "In this issue.")] = None,
    run: Annotated[OnlyText, _option("--run", "NAME", "In this run.")] = None,
    binding: Annotated[OnlyText, _option("--binding", "KEY", "Through this binding.")] = None,
    source_kind: Annotated[OnlyText, _option("--source-kind", "KIND", "Of this kind of source, such as run.")] = None,
    type_: Annotated[
        OnlyText, _option("--type", "TYPE", "capture, record_upsert, query, list, get, forget or correct.")
    ] = None,
    action: Annotated[OnlyText, _option("--action", "ACTION", "The exact action, such as recall.")] = None,
    outcome: Annotated[OnlyText, _option("--outcome", "OUTCOME", "succeeded, refused, failed or unknown.")] = None,
    since: Since = None,
    until: Until = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Include administration: who read what, and who changed the configuration.")
    ] = False,
    limit: Few = 50,
    as_json: Json = False,
) -> None:
    """List memory operations, newest first. All given filters must match."""
    filters = without_none(
        agent=agent,
        project=project,
        issue=issue,
        run=run,
        binding_key=binding,
        source_kind=source_kind,
        type=type_,
        action=action,
        outcome=outcome,
        since=since,
        until=until,
    )
    with open_control_plane(chosen, company) as plane:
        page = partial(plane.operations, of_memory=not (all_ or action), **filters)
        found = list(iterate_pages(lambda most, cursor: page(limit=most, cursor=cursor), limit, MAX_PAGE))
    if as_json:
        print_json({"operations": [_to_json(one) for one in found]})
        return
    show_table(
        ("when", "type", "action", "outcome", "binding", "who", "agent", "run", "records>", "ms>", "id"),
        (_row(one) for one in found),
        "There are no such operations.",
    )


@app.command()
@expand_options
def show(
    operation_id: Annotated[str, typer.Argument(metavar="ID", hidden=True)],
    chosen: LocalStoreOptions,
    company: Company = None,
    as_json: Json = False,
) -> None:
    """Show one operation with its attribution and usage."""
    with open_control_plane(chosen, company) as plane:
        found = plane.operation(operation_id)
    if as_json:
        print_json(_to_json(found))
        return
    show_facts(console(), _facts(found))


@app.command()
@expand_options
def metrics(
    chosen: LocalStoreOptions, company: Company = None, since: Since = None, until: Until = None, as_json: Json = False
) -> None:
    """Show quality metrics: recall hits, empty queries, corrections, failures, and each binding's counts."""
    with open_control_plane(chosen, company) as plane:
        found = plane.metrics(since=since, until=until)
    if as_json:
        print_json(
            {"metrics": found, "recall_hit_rate": found.recall_hit_rate, "empty_query_rate": found.empty_query_rate}
        )
        return
    show_facts(
        console(),
        {
            "recall hit rate": _rate(found.recall_hit_rate, found.recall_hits, found.recalls),
            "empty query rate": _rate(found.empty_query_rate, found.empty_queries, found.queries),
            "manual corrections": f"{found.corrections:,}",
            "extraction failures": f"{found.extraction_failures:,}",
        },
    )
    print()
    show_table(
        ("binding", "succeeded>", "failed>", "refused>", "unknown>"),
        ((each.binding, each.succeeded, each.failed, each.refused, each.unknown) for each in found.bindings),
        "There were no operations in that time.",
    )


def _rate(rate: float | None, some: int, of: int) -> str:
    return "-" if rate is None else f"{rate:.1%} ({some:,} of {of:,})"


def _to_json(one: Operation) -> dict[str, Any]:
    """The JSON form, with the operation's type: null for administration."""
    return {**plain(one), "type": TYPE_OF.get(one.action)}


def _row(one: Operation) -> tuple[object, ...]:
    about = one.attribution
    ended = one.outcome if one.error_code is None else f"{one.outcome} ({one.error_code})"
    return (
        format_time_with_seconds(one.started_at),
        TYPE_OF.get(one.action),
        one.action,
        ended,
        None if about is None else about.binding,
        f"{one.actor}",
        one.scope.agent,
        one.scope.run,
        one.touched,
        f"{one.duration_micros / 1_000:,.1f}",
        one.id,
    )


def _facts(one: Operation) -> dict[str, str]:
    facts = {
        "id": one.id,
        "when": format_time_with_seconds(one.started_at),
        "type": TYPE_OF.get(one.action, "-"),
        "action": one.action,
        "outcome": one.outcome if one.error_code is None else f"{one.outcome}: {one.error_code}",
        "who": str(one.actor),
        "where": ", ".join(f"{name} {value}" for name, value in one.scope.given().items()),
        "records": f"{one.touched:,}",
        "took": f"{one.duration_micros / 1_000:,.1f} ms",
    }
    if (about := one.attribution) is None:
        return facts
    details = {
        "binding": about.binding,
        "provider": about.provider,
        "source": None if about.source is None else about.source.kind,
        "hook": None if about.hook is None else f"{about.hook.kind} {about.hook.hook_id}",
        "account": about.mode,
        "costs": ", ".join(about.cost_events) or None,
        "usage": "; ".join(f"{each.provider} {each.model or ''}".strip() for each in about.usage) or None,
        "named": ", ".join(about.handles) or None,
        "dropped": f"{about.dropped:,}" if about.dropped else None,
    }
    return facts | {name: value for name, value in details.items() if value is not None}
