"""`deliveries`: hook deliveries and their status."""

from __future__ import annotations

from holdfast.cli.control_plane import show_table
from holdfast.cli.formatting import format_time
from holdfast.cli.options import group
from holdfast.cli.render import console, show_facts
from holdfast.cli.verb_commands import CliOption, Invocation, verb_command
from holdfast.domain.hooks import Delivery, HookDeliveryStatus

app = group("Show hook deliveries; retry or drop dead ones.")


@verb_command(app, "list", "deliveries", options={"kind": CliOption("--hook"), "source_kind": CliOption("--source")})
def list_(found: list[Delivery], call: Invocation) -> None:
    """List deliveries, newest first. dead: the last attempt failed; retry or drop it."""
    show_table(
        ("emitted", "hook", "source", "to", "status", "attempts>", "id"),
        (
            (format_time(one.created_at), one.hook.kind, one.source.kind, one.to, _status(one), one.attempts, one.id)
            for one in found
        ),
        "There are no such deliveries.",
    )


@verb_command(app, "show", "delivery")
def show(one: Delivery, call: Invocation) -> None:
    """Show one delivery: its hook, destination and last result."""
    _print_delivery(one, call)


@verb_command(app, "retry", "retry_delivery")
def retry(one: Delivery, call: Invocation) -> None:
    """Retry a dead delivery with its payload. A worker sends it."""
    _print_delivery(one, call)


@verb_command(app, "drop", "drop_delivery")
def drop(one: Delivery, call: Invocation) -> None:
    """Drop a pending or dead delivery. Its payload is deleted."""
    _print_delivery(one, call)


def _status(one: Delivery) -> str:
    return one.status if one.reason is None else f"{one.status}: {one.reason}"


def _print_delivery(one: Delivery, call: Invocation) -> None:
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
        retry, drop = (call.suggest(f"deliveries {each}", one.id) for each in ("retry", "drop"))
        print(f"`{retry}` retries it, `{drop}` drops it.")
