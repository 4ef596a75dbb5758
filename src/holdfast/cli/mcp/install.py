"""`mcp install` and `mcp uninstall`: write another program's configuration."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.exits import UsageError
from holdfast.cli.json_output import print_json
from holdfast.cli.mcp.options import Client, McpOptions, McpScopeOptions, check_mcp_installed
from holdfast.cli.options import Json, expand_options, option
from holdfast.cli.terminal_safety import on_one_line
from holdfast.domain.location import is_server_url, redact_location
from holdfast.errors import ConfigurationError
from holdfast.mcp_clients.clients import ClientProgram, Launch, find_client
from holdfast.mcp_clients.installation import FileChange, make_change, plan_install, plan_uninstall

File = Annotated[
    Path | None, option("--config", "FILE", "Change this file instead of the account's own, such as a project's.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]


@expand_options
def install(
    client: Client,
    chosen: McpOptions,
    where: McpScopeOptions,
    config: File = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Give CLIENT this memory: write its configuration.

    CLIENT is claude-code, claude-desktop, cursor, vscode, codex, windsurf, zed, gemini-cli or opencode. Everything
    else in its file stays as it is, and the file is kept beside it as it was.
    """
    check_mcp_installed()
    program = find_client(client)
    change = plan_install(program, make_launch(chosen, where), config)
    _show(program, change, dry_run, as_json, f"{program.title} starts this memory from now on; restart it if it runs.")


@expand_options
def uninstall(client: Client, config: File = None, dry_run: DryRun = False, as_json: Json = False) -> None:
    """Undo `install`: remove this memory from CLIENT's configuration. The memory itself stays."""
    program = find_client(client)
    change = plan_uninstall(program, config)
    _show(program, change, dry_run, as_json, f"{program.title} no longer starts this memory, which stays where it is.")


def make_launch(chosen: McpOptions, where: McpScopeOptions) -> Launch:
    """Return the command that starts the server with these options, wherever it is run. No key is part of it."""
    place = chosen.location
    if redact_location(place) != place:
        raise ConfigurationError(
            "--store: this URL holds a password, which would be written into the configuration; leave it out of the"
            " URL, and put it into ~/.pgpass"
        )
    if is_server_url(place) and chosen.key_file is None:
        raise UsageError("a server's memory needs a key: put it into a file that only you can read, and add --key-file")
    settings = chosen.settings()  # reads the key's file, and says what is wrong with it
    # The program that starts the server has not this terminal's variables.
    from_environment = settings.model_fields_set - ({"embedder"} if is_server_url(place) else set())
    options = {
        "--store": place,
        "--key-file": None if chosen.key_file is None else str(chosen.key_file.expanduser().absolute()),
        "--embedder": chosen.embedder or (settings.embedder if "embedder" in from_environment else None),
        "--tools": None if chosen.tools == "simple" else chosen.tools,
        "--subject": where.subject,
        "--agent": where.agent,
        "--project": where.project,
        "--space": where.space or (settings.space if "space" in from_environment else None),
    }
    typed = (part for name, value in options.items() if value is not None for part in (name, value))
    command, *first = this_command()
    return Launch(command, (*first, "mcp", *typed))


def this_command() -> tuple[str, ...]:
    """The running program by its path: another program may have another search path."""
    script = Path(sys.argv[0])
    if script.stem == "holdfast" and script.is_file():
        return (str(script.absolute()),)
    return sys.executable, "-m", "holdfast"


def _show(program: ClientProgram, change: FileChange, dry_run: bool, as_json: bool, done: str) -> None:
    line, removed, added = change.describe()
    backup = None if dry_run or change.is_empty else make_change(change)
    if as_json:
        document = {"client": program.name, "file": str(change.path), "line": line, "removed": removed, "added": added}
        print_json({**document, "changed": not (dry_run or change.is_empty), "backup": backup and str(backup)})
        return
    if change.is_empty:
        print(f"{on_one_line(str(change.path))} has it already; nothing was changed.")
        return
    print(f"{on_one_line(str(change.path))}, line {line}:")
    print(
        "\n".join([*(f"- {on_one_line(each)}" for each in removed), *(f"+ {_terminal_line(each)}" for each in added)])
    )
    if dry_run:
        print("Nothing was changed. Without --dry-run it will be.")
        return
    print(done + (f"\nThe file as it was at first: {on_one_line(str(backup))}" if backup is not None else ""))


def _terminal_line(line: str) -> str:
    """A line of a file, safe for a terminal, with its indentation."""
    return line[: len(line) - len(line.lstrip())].replace("\t", "  ") + on_one_line(line.strip())
