"""`binding`: binds memory providers to a space and its agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

import holdfast
from holdfast.cli.control_plane import (
    Company,
    format_config,
    open_control_plane,
    parse_config,
    parse_hooks,
)
from holdfast.cli.exits import ExitCode, UsageError, require_terminal
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json, LocalStoreOptions, OnlyText, StoreOptions, Yes, command, group, option
from holdfast.cli.render import show_facts, show_table
from holdfast.cli.suggestions import suggest_command
from holdfast.cli.terminal_safety import on_one_line
from holdfast.cli.verb_commands import CliOption, Invocation, verb_command
from holdfast.domain.bindings import Binding, Target, TargetKind
from holdfast.domain.contract import HookKind
from holdfast.domain.control import Activity

app = group("Choose the memory provider for a space or one of its agents.")

Key = Annotated[str, typer.Argument(metavar="KEY", hidden=True)]
_CHANGES = {
    "config": CliOption(
        help="The provider's configuration as JSON, or @FILE.", parse=lambda text, _: parse_config(text), noun="JSON"
    ),
    "hooks": CliOption(
        "--hook",
        "Switch a hook, such as issue_comment_capture=on; repeatable.",
        lambda switches, _: parse_hooks(switches),
        "KIND=on|off",
        repeatable=True,
    ),
}


@command(app, "list")
def list_(chosen: LocalStoreOptions, company: Company = None, as_json: Json = False) -> None:
    """List a space's bindings, and whom each serves."""
    with open_control_plane(chosen, company) as plane:
        found, targets = plane.bindings(), plane.targets()
    if as_json:
        print_json({"bindings": found, "targets": targets})
        return
    serves: dict[str, list[str]] = {}
    for target in targets:
        serves.setdefault(target.binding_key, []).append(_target_name(target))
    show_table(
        ("key", "provider", "enabled", "serves", "revision>"),
        (
            (one.key, one.provider, one.enabled, ", ".join(serves.get(one.key, [])) or None, one.revision)
            for one in found
        ),
        f"There are no bindings; `{suggest_command(chosen, 'binding create KEY PROVIDER', company=company)}`"
        " creates one.",
    )


@verb_command(app, "show", "binding")
def show(one: Binding, call: Invocation) -> None:
    """Show one binding: its provider, configuration and hooks. Secrets are shown as references."""
    _print_binding(one)


def _enable_at_once(values: dict[str, Any], call: Invocation) -> None:
    values["enabled"] = not values.pop("disabled")


@verb_command(
    app,
    "create",
    "create_binding",
    options={**_CHANGES, "enabled": CliOption(hidden=True)},
    extra={"disabled": Annotated[bool, typer.Option("--disabled", help="Do not enable it yet.")]},
    adjust=_enable_at_once,
    create=True,
)
def create(one: Binding, call: Invocation) -> None:
    """Bind a provider under a key. Give a secret as env://NAME or file://PATH, never directly.

    It serves nobody until `holdfast binding default` or `override` assigns it.
    """
    _print_binding(one)


def _require_a_change(values: dict[str, Any], call: Invocation) -> None:
    if values["config"] is None and not values["hooks"]:
        enable = call.suggest("binding enable", values["key"])
        raise UsageError(f"there is nothing to change; give --config or --hook, or use `{enable}`")


@verb_command(
    app,
    "update",
    "update_binding",
    options={**_CHANGES, "enabled": CliOption(hidden=True), "expected_revision": CliOption("--revision")},
    adjust=_require_a_change,
)
def update(one: Binding, call: Invocation) -> None:
    """Change a binding: --config replaces its whole configuration, --hook switches single hooks."""
    _print_binding(one)


_SWITCH = {name: CliOption(hidden=True) for name in ("config", "hooks", "enabled", "expected_revision")}


@verb_command(app, "enable", "update_binding", options=_SWITCH, adjust=lambda values, _: values.update(enabled=True))
def enable(one: Binding, call: Invocation) -> None:
    """Enable a binding."""
    _print_binding(one)


@verb_command(app, "disable", "update_binding", options=_SWITCH, adjust=lambda values, _: values.update(enabled=False))
def disable(one: Binding, call: Invocation) -> None:
    """Disable a binding. Its callers are refused until it is enabled again: there is no fallback."""
    _print_binding(one)


@command(app)
def delete(
    key: Key, chosen: LocalStoreOptions, company: Company = None, yes: Yes = False, as_json: Json = False
) -> None:
    """Delete a binding and its assignments. It asks first; without a terminal to ask on, it needs --yes.

    Its operations stay in the trail, and its memories stay where they are.
    """
    question = f"Delete the binding {on_one_line(key)}, so that it serves nobody?"
    require_terminal(yes)
    if not (yes or typer.confirm(question, err=True)):
        if as_json:
            print_json({"deleted": None, "served": []})
        else:
            print("Nothing was changed.")
        raise typer.Exit(ExitCode.PROBLEM)
    with open_control_plane(chosen, company) as plane:
        served = [each for each in plane.targets() if each.binding_key == key]
        plane.delete_binding(key)
        left = _binding_of(plane, None)
    if as_json:
        print_json({"deleted": key, "served": served})
        return
    print(f"Deleted {on_one_line(key)}.")
    if served:
        _print_formerly_served(served, left, _set_default(chosen, company))


@command(app)
def default(
    chosen: LocalStoreOptions,
    key: Annotated[OnlyText, typer.Argument(metavar="KEY", hidden=True)] = None,
    company: Company = None,
    clear: Annotated[
        bool, typer.Option("--clear", help="Have none: callers without a binding of their own are refused.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Set the binding for everybody in the space who has none of their own; without KEY, show it."""
    _assign(chosen, company, None, key, clear=clear, as_json=as_json)


@command(app)
def override(
    agent: Annotated[str, typer.Argument(metavar="AGENT", hidden=True)],
    chosen: LocalStoreOptions,
    key: Annotated[OnlyText, typer.Argument(metavar="KEY", hidden=True)] = None,
    company: Company = None,
    clear: Annotated[bool, typer.Option("--clear", help="Use the space's default again.")] = False,
    as_json: Json = False,
) -> None:
    """Set the binding for one agent; without KEY, show it."""
    _assign(chosen, company, agent, key, clear=clear, as_json=as_json)


@command(app)
def resolve(
    chosen: LocalStoreOptions,
    agent: Annotated[OnlyText, option("--agent", "NAME", "For this agent.")] = None,
    key: Annotated[OnlyText, option("--key", "KEY", "As if this binding were requested.")] = None,
    company: Company = None,
    as_json: Json = False,
) -> None:
    """Show which binding is used, the rule that chose it, and what was checked."""
    with open_control_plane(chosen, company) as plane:
        found = plane.resolve(key, agent=agent)
    if as_json:
        print_json(found)
        return
    show_facts(
        {
            "binding": found.binding_key or "none",
            "provider": found.provider,
            "chosen by": found.source,
            "checked": ", ".join(found.checked),
            "enabled": found.enabled,
        },
    )
    if found.binding_key is None:
        print(f"No binding applies; `{_set_default(chosen, company)}` sets one.")
    elif not found.enabled:
        enable = suggest_command(chosen, "binding enable", found.binding_key, company=company)
        print(f"It is disabled; `{enable}` enables it.")


@verb_command(app, "activity", "activity")
def activity(found: list[Activity], call: Invocation) -> None:
    """Show changes and who made them, newest first: bindings, assignments, prices, deliveries and jobs."""
    show_table(
        ("when", "what", "of", "by", "about"),
        ((one.at, one.kind.removeprefix("memory."), one.key, *_about(one)) for one in found),
        "Nothing was changed.",
    )


def _about(one: Activity) -> tuple[str | int | None, str]:
    """The actor, and the other details."""
    more = {name: value for name, value in one.details.items() if name != "actor" and value is not None}
    return one.details.get("actor"), ", ".join(f"{name} {value}" for name, value in more.items())


def _set_default(chosen: StoreOptions, company: str | None) -> str:
    return suggest_command(chosen, "binding default KEY", company=company)


def _print_formerly_served(served: Sequence[Target], default: str | None, set_default: str) -> None:
    """Print whom the deleted binding served, and what serves them now."""
    agents = [f"the agent {each.target_id}" for each in served if each.kind is TargetKind.AGENT]
    others = ["everybody without a binding of their own"] if len(agents) < len(served) else []
    print(f"It served {on_one_line(', '.join([*others, *agents]))}. ", end="")
    if default is None:
        print(f"No binding serves them now; `{set_default}` sets one.")
    else:
        print(f"{on_one_line(default)}, the space's default, serves them now.")


def _target_name(target: Target) -> str:
    return "everybody else" if target.kind is TargetKind.COMPANY else f"agent {target.target_id}"


def _print_binding(one: Binding) -> None:
    facts = {
        "key": one.key,
        "provider": one.provider,
        "enabled": one.enabled,
        "revision": str(one.revision),
        "config": format_config(one.config),
        "hooks on": ", ".join(kind for kind in HookKind if one.delivers(kind)) or None,
        "hooks off": ", ".join(kind for kind in HookKind if not one.delivers(kind)) or None,
        "changed": one.updated_at or "never",
    }
    show_facts(facts)


def _assign(
    chosen: StoreOptions, company: str | None, agent: str | None, key: str | None, *, clear: bool, as_json: bool
) -> None:
    """Set or clear the binding of an agent, or of the space if it is None; then show it."""
    if key is not None and clear:
        raise UsageError("give a KEY, or --clear, not both")
    with open_control_plane(chosen, company) as plane:
        if key is not None and agent is None:
            plane.set_default(key)
        elif key is not None and agent is not None:
            plane.set_override(agent, key)
        elif clear and agent is None:
            plane.clear_default()
        elif clear and agent is not None:
            plane.clear_override(agent)
        found = _binding_of(plane, agent)
        whom = on_one_line(f"the space {plane.space}" if agent is None else f"the agent {agent}")
    if as_json:
        print_json({"binding_key": found})
    else:
        print(f"No binding of its own serves {whom}." if found is None else f"{on_one_line(found)} serves {whom}.")


def _binding_of(plane: holdfast.ControlPlane, agent: str | None) -> str | None:
    """The key of the binding assigned to an agent, or to the space if it is None."""
    kind = TargetKind.COMPANY if agent is None else TargetKind.AGENT
    owns = (each.binding_key for each in plane.targets() if each.kind is kind and agent in (None, each.target_id))
    return next(owns, None)
