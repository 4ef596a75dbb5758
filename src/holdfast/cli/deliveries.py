"""`deliveries`: hook deliveries and their status."""

from __future__ import annotations

from holdfast.cli.options import group
from holdfast.cli.render import show_facts, show_table
from holdfast.cli.verb_commands import CliOption, Invocation, verb_command
from holdfast.domain.hooks import Delivery, HookDeliveryStatus

app = group("Show hook deliveries; retry or drop dead ones.")


@verb_command(app, "list", "deliveries", options={"kind": CliOption("--hook"), "source_kind": CliOption("--source")})
def list_(found: list[Delivery], call: Invocation) -> None:
    """List deliveries, newest first. dead: the last attempt failed; retry or drop it."""
    show_table(
        ("emitted", "hook", "source", "to", "status", "attempts>", "id"),
        ((one.created_at, one.hook.kind, one.source.kind, one.to, _status(one), one.attempts, one.id) for one in found),
        "There are no such deliveries.",
    )


def _status(one: Delivery) -> str:
    return one.status if one.reason is None else f"{one.status}: {one.reason}"


def _print_delivery(one: Delivery, call: Invocation) -> None:
    facts = {
        "id": one.id,
        "hook": one.hook.kind,
        "hook id": one.hook.hook_id,
        "source": one.source.kind,
        "to": one.to,
        "binding": one.binding,
        "status": _status(one),
        "attempts": one.attempts,
        "emitted": one.created_at,
        "changed": one.updated_at,
        "operation": one.operation_id,
    }
    show_facts(facts)
    if one.status is HookDeliveryStatus.DEAD:
        retry, drop = (call.suggest(f"deliveries {each}", one.id) for each in ("retry", "drop"))
        print(f"`{retry}` retries it, `{drop}` drops it.")


for _name, _verb, _explained in (
    ("show", "delivery", "Show one delivery: its hook, destination and last result."),
    ("retry", "retry_delivery", "Retry a dead delivery with its payload. A worker sends it."),
    ("drop", "drop_delivery", "Drop a pending or dead delivery. Its payload is deleted."),
):
    verb_command(app, _name, _verb, explained=_explained)(_print_delivery)
