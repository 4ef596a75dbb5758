"""`binding`: binds memory providers to a company and its agents."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from holdfast.cli.advice import advised
from holdfast.cli.company import (
    MAX_PAGE,
    Company,
    Few,
    asked_first,
    controlled,
    given_config,
    given_hooks,
    joined,
    show_table,
)
from holdfast.cli.exits import ExitCode, Usage
from holdfast.cli.machine import print_json
from holdfast.cli.options import Json, OnlyText, OwnStoreOptions, StoreOptions, Yes, unfolded
from holdfast.cli.paging import every
from holdfast.cli.render import console, show_facts
from holdfast.cli.safety import on_one_line
from holdfast.cli.words import moment
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
@unfolded
def list_(chosen: OwnStoreOptions, company: Company = None, as_json: Json = False) -> None:
    """List a company's bindings, and whom each serves."""
    with controlled(chosen, company) as plane:
        found, targets = plane.bindings(), plane.targets()
    if as_json:
        print_json({"bindings": found, "targets": targets})
        return
    serves: dict[str, list[str]] = {}
    for target in targets:
        serves.setdefault(target.binding_key, []).append(_whom(target))
    show_table(
        ("key", "provider", "enabled", "serves", "revision>"),
        (
            (one.key, one.provider, one.enabled, ", ".join(serves.get(one.key, [])) or None, one.revision)
            for one in found
        ),
        f"There are no bindings; `{advised(chosen, 'binding create KEY PROVIDER', company=company)}` makes one.",
    )


@app.command()
@unfolded
def show(key: Key, chosen: OwnStoreOptions, company: Company = None, as_json: Json = False) -> None:
    """Show one binding: its provider, configuration and hooks. Secrets are shown as references."""
    with controlled(chosen, company) as plane:
        _tell(plane.binding(key), as_json)


@app.command()
@unfolded
def create(
    key: Key,
    provider: Annotated[str, typer.Argument(metavar="PROVIDER", hidden=True)],
    chosen: OwnStoreOptions,
    company: Company = None,
    config: Config = None,
    hook: Hooks = None,
    disabled: Annotated[bool, typer.Option("--disabled", help="Do not enable it yet.")] = False,
    as_json: Json = False,
) -> None:
    """Bind a provider under a key. Give a secret as env://NAME or file://PATH, never directly.

    It serves nobody until `holdfast binding default` or `override` assigns it.
    """
    settings, switched = given_config(config), given_hooks(hook)
    with controlled(chosen, company, create=True) as plane:
        _tell(plane.create_binding(key, provider, config=settings, hooks=switched, enabled=not disabled), as_json)


@app.command()
@unfolded
def update(
    key: Key,
    chosen: OwnStoreOptions,
    company: Company = None,
    config: Config = None,
    hook: Hooks = None,
    revision: Annotated[
        int | None, typer.Option("--revision", metavar="N", help="Only if it is still at this revision.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Change a binding: --config replaces its whole configuration, --hook switches single hooks."""
    settings, switched = given_config(config), given_hooks(hook)
    if settings is None and not switched:
        enable = advised(chosen, "binding enable", key, company=company)
        raise Usage(f"there is nothing to change; give --config or --hook, or use `{enable}`")
    with controlled(chosen, company) as plane:
        _tell(plane.update_binding(key, config=settings, hooks=switched or None, expected_revision=revision), as_json)


@app.command()
@unfolded
def enable(key: Key, chosen: OwnStoreOptions, company: Company = None, as_json: Json = False) -> None:
    """Enable a binding."""
    with controlled(chosen, company) as plane:
        _tell(plane.update_binding(key, enabled=True), as_json)


@app.command()
@unfolded
def disable(key: Key, chosen: OwnStoreOptions, company: Company = None, as_json: Json = False) -> None:
    """Disable a binding. Its callers are refused until it is enabled again: there is no fallback."""
    with controlled(chosen, company) as plane:
        _tell(plane.update_binding(key, enabled=False), as_json)


@app.command()
@unfolded
def delete(key: Key, chosen: OwnStoreOptions, company: Company = None, yes: Yes = False, as_json: Json = False) -> None:
    """Delete a binding and its assignments. It asks first; without a terminal to ask on, it needs --yes.

    Its operations stay in the trail, and its memories stay where they are.
    """
    question = f"Delete the binding {on_one_line(key)}, so that it serves nobody?"
    if not asked_first(question, yes, is_terminal=sys.stdin.isatty):
        if as_json:
            print_json({"deleted": None, "served": []})
        else:
            print("Nothing was changed.")
        raise typer.Exit(ExitCode.PROBLEM)
    with controlled(chosen, company) as plane:
        served = [each for each in plane.targets() if each.binding_key == key]
        plane.delete_binding(key)
        left = next((each.binding_key for each in plane.targets() if each.kind is TargetKind.COMPANY), None)
    if as_json:
        print_json({"deleted": key, "served": served})
        return
    print(f"Deleted {on_one_line(key)}.")
    if served:
        _tell_left(served, left, _set_default(chosen, company))


@app.command()
@unfolded
def default(
    chosen: OwnStoreOptions,
    key: Annotated[OnlyText, typer.Argument(metavar="KEY", hidden=True)] = None,
    company: Company = None,
    clear: Annotated[
        bool, typer.Option("--clear", help="Have none: callers without a binding of their own are refused.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Set the binding for everybody in the company who has none of their own; without KEY, show it."""
    _require_one(key, clear)
    with controlled(chosen, company) as plane:
        if key is not None:
            plane.set_default(key)
        elif clear:
            plane.clear_default()
        found = [each.binding_key for each in plane.targets() if each.kind is TargetKind.COMPANY]
        name = plane.space
    _tell_target(found[0] if found else None, f"the company {name}", as_json)


@app.command()
@unfolded
def override(
    agent: Annotated[str, typer.Argument(metavar="AGENT", hidden=True)],
    chosen: OwnStoreOptions,
    key: Annotated[OnlyText, typer.Argument(metavar="KEY", hidden=True)] = None,
    company: Company = None,
    clear: Annotated[bool, typer.Option("--clear", help="Use the company's default again.")] = False,
    as_json: Json = False,
) -> None:
    """Set the binding for one agent; without KEY, show it."""
    _require_one(key, clear)
    with controlled(chosen, company) as plane:
        if key is not None:
            plane.set_override(agent, key)
        elif clear:
            plane.clear_override(agent)
        target = (TargetKind.AGENT, agent)
        found = [each.binding_key for each in plane.targets() if (each.kind, each.target_id) == target]
    _tell_target(found[0] if found else None, f"the agent {agent}", as_json)


@app.command()
@unfolded
def resolve(
    chosen: OwnStoreOptions,
    agent: Annotated[OnlyText, typer.Option("--agent", metavar="NAME", help="For this agent.")] = None,
    key: Annotated[OnlyText, typer.Option("--key", metavar="KEY", help="As if this binding were requested.")] = None,
    company: Company = None,
    as_json: Json = False,
) -> None:
    """Show which binding is used, the rule that chose it, and what was checked."""
    with controlled(chosen, company) as plane:
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
        enable = advised(chosen, "binding enable", found.binding_key, company=company)
        print(f"It is disabled; `{enable}` enables it.")


@app.command()
@unfolded
def activity(chosen: OwnStoreOptions, company: Company = None, limit: Few = 50, as_json: Json = False) -> None:
    """Show changes and who made them, newest first: bindings, assignments, prices, deliveries and jobs."""
    with controlled(chosen, company) as plane:
        found = list(every(lambda most, cursor: plane.activity(limit=most, cursor=cursor), limit, MAX_PAGE))
    if as_json:
        print_json({"activity": found})
        return
    show_table(
        ("when", "what", "of", "by", "about"),
        ((moment(one.at), one.kind.removeprefix("memory."), one.key, *_about(one)) for one in found),
        "Nothing was changed.",
    )


def _about(one: Activity) -> tuple[str | int | None, str]:
    """The actor, and the other details."""
    more = {name: value for name, value in one.details.items() if name != "actor" and value is not None}
    return one.details.get("actor"), ", ".join(f"{name} {value}" for name, value in more.items())


def _set_default(chosen: StoreOptions, company: str | None) -> str:
    return advised(chosen, "binding default KEY", company=company)


def _tell_left(served: Sequence[Target], default: str | None, set_default: str) -> None:
    """Print whom the deleted binding served, and what serves them now."""
    agents = [f"the agent {each.target_id}" for each in served if each.kind is TargetKind.AGENT]
    others = ["everybody without a binding of their own"] if len(agents) < len(served) else []
    print(f"It served {on_one_line(', '.join([*others, *agents]))}. ", end="")
    if default is None:
        print(f"No binding serves them now; `{set_default}` sets one.")
    else:
        print(f"{on_one_line(default)}, the company's default, serves them now.")


def _whom(target: Target) -> str:
    return "everybody else" if target.kind is TargetKind.COMPANY else f"agent {target.target_id}"


def _require_one(key: str | None, clear: bool) -> None:
    if key is not None and clear:
        raise Usage("give a KEY, or --clear, not both")


def _tell(one: Binding, as_json: bool) -> None:
    if as_json:
        print_json(one)
        return
    facts = {
        "key": one.key,
        "provider": one.provider,
        "enabled": "yes" if one.enabled else "no",
        "revision": str(one.revision),
        "config": joined(one.config),
        "hooks on": ", ".join(kind for kind in HookKind if one.delivers(kind)) or "-",
        "hooks off": ", ".join(kind for kind in HookKind if not one.delivers(kind)) or "-",
        "changed": "never" if one.updated_at is None else moment(one.updated_at),
    }
    show_facts(console(), facts)


def _tell_target(key: str | None, whom: str, as_json: bool) -> None:
    if as_json:
        print_json({"binding_key": key})
    elif key is None:
        print(f"No binding of its own serves {on_one_line(whom)}.")
    else:
        print(f"{on_one_line(key)} serves {on_one_line(whom)}.")
