"""`provider`: lists the memory providers that a binding can name, and checks a configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from holdfast.app import check_provider, installed_providers
from holdfast.cli.control_plane import format_config, parse_config
from holdfast.cli.formatting import format_count
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json, OnlyText, command, group, option
from holdfast.cli.render import show_facts, show_table
from holdfast.cli.terminal_safety import on_one_line, quote_word
from holdfast.domain.control import ProviderInfo
from holdfast.errors import UnknownProvider
from holdfast.settings import read_settings

app = group("List memory providers, and check one before binding it.")

Name = Annotated[str, typer.Argument(metavar="NAME", hidden=True)]


@command(app, "list")
def list_(as_json: Json = False) -> None:
    """List the installed providers, and the problem of each that cannot be used."""
    found, broken = installed_providers(read_settings())
    if as_json:
        print_json({"providers": found, "broken": broken})
        return
    show_table(
        ("name", "external", "optional capabilities", "description"),
        ((each.key, each.outside, ", ".join(_abilities(each)) or None, each.description) for each in found),
        "No providers are installed.",
    )
    if broken:
        print()
        rows = ((each.name, each.where, each.problem) for each in broken)
        show_table(("unusable", "location", "problem"), rows, "")


@command(app)
def show(name: Name, as_json: Json = False) -> None:
    """Show a provider's capabilities and configuration options."""
    found, broken = installed_providers(read_settings())
    one = next((each for each in found if each.key == name), None)
    if one is None and (unusable := [each for each in broken if each.name == name]):
        raise UnknownProvider("NAME", f"{name!r:.80} is installed but cannot be used: {unusable[0].problem}")
    if one is None:
        known = ", ".join(each.key for each in found)
        raise UnknownProvider("NAME", f"there is no provider {name!r:.80}; use one of {known}")
    if as_json:
        print_json(one)
        return
    facts = {
        "name": one.key,
        "description": one.description,
        "external": one.outside,
        "optional capabilities": ", ".join(_abilities(one)) or None,
    }
    show_facts(facts)
    needed = one.schema.get("required", ())
    print()
    show_table(
        ("config", "required", "default", "meaning"),
        (
            (property_, property_ in needed, about.get("default"), _meaning(about))
            for property_, about in one.schema.get("properties", {}).items()
        ),
        "It has no configuration.",
    )


@command(app)
def check(
    name: Name,
    config: Annotated[
        OnlyText, option("--config", "JSON", "The configuration as JSON, or @FILE.  [default: {}]")
    ] = None,
    connect: Annotated[bool, typer.Option("--connect", help="Also resolve its secrets and send it a query.")] = False,
    as_json: Json = False,
) -> None:
    """Check a configuration, as `holdfast binding create` would; with --connect, also that the provider answers.

    Nothing is written, neither here nor at the provider.
    """
    options = parse_config(config) or {}
    found = asyncio.run(check_provider(name, options, read_settings(), connect=connect))
    if as_json:
        print_json(found)
        return
    show_facts({"provider": found.provider, "config": format_config(found.config)})
    if found.snippets is None:
        print("The configuration is valid.", end="")
        print("" if connect or not found.outside else " --connect also queries the provider.")
    else:
        print(f"It answers, in {found.seconds:.2f} s, with {format_count(found.snippets, 'record')}.")
    if found.outside and found.snippets is not None:
        print(f"`holdfast binding create KEY {quote_word(on_one_line(name))} --config …` binds it.")


def _abilities(one: ProviderInfo) -> list[str]:
    return [each for each in one.capabilities.__slots__ if getattr(one.capabilities, each)]


def _meaning(about: Mapping[str, Any]) -> str:
    is_secret = any(each.get("secret") for each in (about, *about.get("anyOf", ())))
    secret = "Give it as env://NAME or file://PATH." if is_secret else None
    return " ".join(part for part in (str(about.get("description", "")), secret) if part) or "-"
