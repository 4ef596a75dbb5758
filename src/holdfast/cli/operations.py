"""`operations`: memory operations, their callers and outcomes."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from holdfast.cli.formatting import format_time_with_seconds
from holdfast.cli.options import group
from holdfast.cli.render import show_facts, show_table
from holdfast.cli.verb_commands import CliOption, Invocation, verb_command
from holdfast.domain.operations import TYPE_OF, MemoryMetrics, Operation

app = group("Show memory operations, their callers and outcomes.")
_ALL = typer.Option("--all", help="Include administration: who read what, and who changed the configuration.")


def _leave_out_administration(values: dict[str, Any], call: Invocation) -> None:
    values["of_memory"] = not (values.pop("all_") or values["action"])


@verb_command(
    app,
    "list",
    "operations",
    options={"of_memory": CliOption(hidden=True)},
    extra={"all_": Annotated[bool, _ALL]},
    adjust=_leave_out_administration,
)
def list_(found: list[Operation], call: Invocation) -> None:
    """List memory operations, newest first. All given filters must match."""
    show_table(
        ("when", "type", "action", "outcome", "binding", "who", "agent", "run", "records>", "ms>", "id"),
        (_row(one) for one in found),
        "There are no such operations.",
    )


@verb_command(app, "show", "operation")
def show(found: Operation, call: Invocation) -> None:
    """Show one operation with its attribution and usage."""
    show_facts(_facts(found))


@verb_command(app, "metrics", "metrics")
def metrics(found: MemoryMetrics, call: Invocation) -> None:
    """Show quality metrics: recall hits, empty queries, corrections, failures, and each binding's counts."""
    show_facts(
        {
            "recall hit rate": _rate(found.recall_hit_rate, found.recall_hits, found.recalls),
            "empty query rate": _rate(found.empty_query_rate, found.empty_queries, found.queries),
            "manual corrections": found.corrections,
            "extraction failures": found.extraction_failures,
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
        one.record_count,
        f"{one.duration_micros / 1_000:,.1f}",
        one.id,
    )


def _facts(one: Operation) -> dict[str, object]:
    facts: dict[str, object] = {
        "id": one.id,
        "when": format_time_with_seconds(one.started_at),
        "type": TYPE_OF.get(one.action),
        "action": one.action,
        "outcome": one.outcome if one.error_code is None else f"{one.outcome}: {one.error_code}",
        "who": str(one.actor),
        "where": ", ".join(f"{name} {value}" for name, value in one.scope.given().items()),
        "records": one.record_count,
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
