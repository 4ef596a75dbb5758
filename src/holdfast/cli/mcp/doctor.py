"""`mcp doctor`: starts the server as a client would, and calls each of its tools."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.exits import ExitCode
from holdfast.cli.formatting import format_count
from holdfast.cli.json_output import print_json
from holdfast.cli.mcp.install import make_launch
from holdfast.cli.mcp.options import McpOptions, McpScopeOptions, check_mcp_installed
from holdfast.cli.options import Json, expand_options, option
from holdfast.cli.terminal_safety import on_one_line
from holdfast.errors import ConfigurationError
from holdfast.mcp_clients.clients import find_client
from holdfast.mcp_clients.installation import read_launch

Installed = Annotated[
    str | None, typer.Argument(metavar="[CLIENT]", help="Start it as this program's configuration says.")
]
File = Annotated[Path | None, option("--config", "FILE", "Read this file instead of the account's own.")]


@expand_options
def doctor(
    chosen: McpOptions,
    where: McpScopeOptions,
    client: Installed = None,
    config: File = None,
    as_json: Json = False,
) -> None:
    """Start the server as a client would, and call each of its tools.

    With CLIENT, the command in that program's configuration is started; else one with these options. It remembers a
    statement, and forgets it again.
    """
    check_mcp_installed()
    from holdfast.mcp.checkup import check_server

    launch = make_launch(chosen, where) if client is None else read_launch(find_client(client), config)
    try:
        found = asyncio.run(check_server(launch.command, launch.args))
    except (OSError, BaseExceptionGroup) as error:
        raise ConfigurationError(f"{launch.command} does not start a server: {_first(error)}") from None
    if as_json:
        calls = [{"tool": each.tool, "seconds": each.seconds, "problem": each.problem} for each in found.calls]
        print_json({"ok": found.ok, "protocol": found.protocol, "tools": list(found.tools), "calls": calls})
    else:
        for each in found.calls:
            if each.problem is not None:
                print(f"{each.tool}: {on_one_line(each.problem)}")
        print(f"{format_count(len(found.tools), 'tool')}, answered in {found.seconds * 1_000:.0f} ms")
    if not found.ok:
        raise typer.Exit(ExitCode.PROBLEM)


def _first(error: BaseException) -> str:
    """The message of the first error in a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return on_one_line(str(error) or type(error).__name__)
