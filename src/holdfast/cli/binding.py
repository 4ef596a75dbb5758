"""`binding`: binds memory providers to a company and its agents."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from holdfast.cli.control_plane import (
    MAX_PAGE,
    Company,
    Few,
    confirm,
    format_config,
    open_control_plane,
    parse_config,
    parse_hooks,
    show_table,
)
from holdfast.cli.exits import ExitCode, UsageError
from holdfast.cli.formatting import format_time
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json, LocalStoreOptions, OnlyText, StoreOptions, Yes, expand_options
from holdfast.cli.paging import iterate_pages
from holdfast.cli.render import console, show_facts
from holdfast.cli.suggestions import suggest_command
from holdfast.cli.terminal_safety import on_one_line
from holdfast.domain.bindings import Binding, Target, TargetKind
from holdfast.domain.contract import HookKind
from holdfast.domain.control import Activity

app = typer.Typer(help="Choose the memory provider for a company or one of its agents.", rich_markup_mode=None)

Key = Annotated[str, typer.Argument(metavar="KEY", hidden=True)]
Config = Annotated[
    OnlyText,
    typer.Option("--config", metavar="JSON", help="The provider's configuration as JSON, or @FILE."),
]
Hooks = Annotated[
    list[str] | None,
    typer.Option("--hook", metavar="KIND=on|off", help="Switch a hook, such as issue_comment_capture=on; repeatable."),
]


@app.callback(invoke_without_command=True)
def binding(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(name="list")
@expand_options
def list_(chosen: LocalStoreOptions, company: Company = None, as_json: Json = False) -> None:
    """List a company's bindings, and whom each serves."""
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


@app.command()
@expand_options
def show(key: Key, chosen: LocalStoreOptions, company: Company = None, as_json: Json = False) -> None:
    """Show one binding: its provider, configuration and hooks. Secrets are shown as references."""
    with open_control_plane(chosen, company) as plane:
        _print_binding(plane.binding(key), as_json)


@app.command()
@expand_options
def create(
    key: Key,
    provider: Annotated[str, typer.Argument(metavar="PROVIDER", hidden=True)],
    chosen: LocalStoreOptions,
    company: Company = None,
    config: Config = None,
    hook: Hooks = None,
    disabled: Annotated[bool, typer.Option("--disabled", help="Do not enable it yet.")] = False,
    as_json: Json = False,
) -> None:
    """Bind a provider under a key. Give a secret as env://NAME or file://PATH, never directly.

    It serves nobody until `holdfast binding default` or `override` assigns it.
    """
    settings, switched = parse_config(config), parse_hooks(hook)
    with open_control_plane(chosen, company, create=True) as plane:
        _print_binding(
            plane.create_binding(key, provider, config=settings, hooks=switched, enabled=not disabled), as_json
        )


@app.command()
@expand_options
def update(
    key: Key,
    chosen: LocalStoreOptions,
    company: Company = None,
    config: Config = None,
    hook: Hooks = None,
    revision: Annotated[
        int | None, typer.Option("--revision", metavar="N", help="Only if it is still at this revision.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Change a binding: --config replaces its whole configuration, --hook switches single hooks."""
    settings, switched = parse_config(config), parse_hooks(hook)
    if settings is None and not switched:
        enable = suggest_command(chosen, "binding enable", key, company=company)
        raise UsageError(f"there is nothing to change; give --config or --hook, or use `{enable}`")
    with open_control_plane(chosen, company) as plane:
        _print_binding(
            plane.update_binding(key, config=settings, hooks=switched or None, expected_revision=revision), as_json
        )


@app.command()
@expand_options
def enable(key: Key, chosen: LocalStoreOptions, company: Company = None, as_json: Json = False) -> None:
    """Enable a binding."""
    with open_control_plane(chosen, company) as plane:
        _print_binding(plane.update_binding(key, enabled=True), as_json)


@app.command()
@expand_options
def disable(key: Key, chosen: LocalStoreOptions, company: Company = None, as_json: Json = False) -> None:
    """Disable a binding. Its callers are refused until it is enabled again: there is no fallback."""
    with open_control_plane(chosen, company) as plane:
        _print_binding(plane.update_binding(key, enabled=False), as_json)


@app.command()
@expand_options
def delete(
    key: Key, chosen: LocalStoreOptions, company: Company = None, yes: Yes = False, as_json: Json = False
) -> None:
    """Delete a binding and its assignments. It asks first; without a terminal to ask on, it needs --yes.

    Its operations stay in the trail, and its memories stay where they are.
    """
    question = f"Delete the binding {on_one_line(key)}, so that it serves nobody?"
    if not confirm(question, yes, is_terminal=sys.stdin.isatty):
        if as_json:
            print_json({"deleted": None, "served": []})
        else:
            print("Nothing was changed.")
        raise typer.Exit(ExitCode.PROBLEM)
    with open_control_plane(chosen, company) as plane:
        served = [each for each in plane.targets() if each.binding_key == key]
        plane.delete_binding(key)
        left = next((each.binding_key for each in plane.targets() if each.kind is TargetKind.COMPANY), None)
    if as_json:
        print_json({"deleted": key, "served": served})
        return
    print(f"Deleted {on_one_line(key)}.")
    if served:
        _print_formerly_served(served, left, _set_default(chosen, company))


@app.command()
@expand_options
def default(
    chosen: LocalStoreOptions,
    key: Annotated[OnlyText, typer.Argument(metavar="KEY", hidden=True)] = None,
    company: Company = None,
    clear: Annotated[
        bool, typer.Option("--clear", help="Have none: callers without a binding of their own are refused.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Set the binding for everybody in the company who has none of their own; without KEY, show it."""
    _refuse_both(key, clear)
    with open_control_plane(chosen, company) as plane:
        if key is not None:
            plane.set_default(key)
        elif clear:
            plane.clear_default()
        found = [each.binding_key for each in plane.targets() if each.kind is TargetKind.COMPANY]
        name = plane.space
    _print_target(found[0] if found else None, f"the company {name}", as_json)


@app.command()
@expand_options
def override(
    agent: Annotated[str, typer.Argument(metavar="AGENT", hidden=True)],
    chosen: LocalStoreOptions,
    key: Annotated[OnlyText, typer.Argument(metavar="KEY", hidden=True)] = None,
    company: Company = None,
    clear: Annotated[bool, typer.Option("--clear", help="Use the company's default again.")] = False,
    as_json: Json = False,
) -> None:
    """Set the binding for one agent; without KEY, show it."""
    _refuse_both(key, clear)
    with open_control_plane(chosen, company) as plane:
        if key is not None:
            plane.set_override(agent, key)
        elif clear:
            plane.clear_override(agent)
        target = (TargetKind.AGENT, agent)
        found = [each.binding_key for each in plane.targets() if (each.kind, each.target_id) == target]
    _print_target(found[0] if found else None, f"the agent {agent}", as_json)


@app.command()
@expand_options
def resolve(
    chosen: LocalStoreOptions,
    agent: Annotated[OnlyText, typer.Option("--agent", metavar="NAME", help="For this agent.")] = None,
    key: Annotated[OnlyText, typer.Option("--key", metavar="KEY", help="As if this binding were requested.")] = None,
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
        console(),
        {
            "binding": found.binding_key or "none",
            "provider": found.provider or "-",
            "chosen by": found.source,
            "checked": ", ".join(found.checked),
            "enabled": "yes" if found.enabled else "no",
        },
    )
    if found.binding_key is None:
        print(f"No binding applies; `{_set_default(chosen, company)}` sets one.")
    elif not found.enabled:
        enable = suggest_command(chosen, "binding enable", found.binding_key, company=company)
        print(f"It is disabled; `{enable}` enables it.")


@app.command()
@expand_options
def activity(chosen: LocalStoreOptions, company: Company = None, limit: Few = 50, as_json: Json = False) -> None:
    """Show changes and who made them, newest first: bindings, assignments, prices, deliveries and jobs."""
    with open_control_plane(chosen, company) as plane:
        found = list(iterate_pages(lambda most, cursor: plane.activity(limit=most, cursor=cursor), limit, MAX_PAGE))
    if as_json:
        print_json({"activity": found})
        return
    show_table(
        ("when", "what", "of", "by", "about"),
        ((format_time(one.at), one.kind.removeprefix("memory."), one.key, *_about(one)) for one in found),
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
        print(f"{on_one_line(default)}, the company's default, serves them now.")


def _target_name(target: Target) -> str:
    return "everybody else" if target.kind is TargetKind.COMPANY else f"agent {target.target_id}"


def _refuse_both(key: str | None, clear: bool) -> None:
    if key is not None and clear:
        raise UsageError("give a KEY, or --clear, not both")


def _print_binding(one: Binding, as_json: bool) -> None:
    if as_json:
        print_json(one)
        return
    facts = {
        "key": one.key,
        "provider": one.provider,
        "enabled": "yes" if one.enabled else "no",
        "revision": str(one.revision),
        "config": format_config(one.config),
        "hooks on": ", ".join(kind for kind in HookKind if one.delivers(kind)) or "-",
        "hooks off": ", ".join(kind for kind in HookKind if not one.delivers(kind)) or "-",
        "changed": "never" if one.updated_at is None else format_time(one.updated_at),
    }
    show_facts(console(), facts)


def _print_target(key: str | None, whom: str, as_json: bool) -> None:
    if as_json:
        print_json({"binding_key": key})
    elif key is None:
        print(f"No binding of its own serves {on_one_line(whom)}.")
    else:
        print(f"{on_one_line(key)} serves {on_one_line(whom)}.")
