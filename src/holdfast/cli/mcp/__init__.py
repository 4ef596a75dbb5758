"""`mcp`: gives other programs this memory, over the Model Context Protocol."""

from __future__ import annotations

from typing import ClassVar

import typer

from holdfast.cli.lazy import CommandEntry, LazyGroup
from holdfast.cli.mcp.serve import serve
from holdfast.cli.options import expand_options


class Mcp(LazyGroup):
    """The subcommands, in help order."""

    entries: ClassVar[dict[str, CommandEntry]] = {
        "install": CommandEntry(
            "holdfast.cli.mcp.install:install", "Give CLIENT this memory: write its configuration."
        ),
        "uninstall": CommandEntry(
            "holdfast.cli.mcp.install:uninstall", "Undo `install`: remove this memory from CLIENT's configuration."
        ),
        "doctor": CommandEntry(
            "holdfast.cli.mcp.doctor:doctor", "Start the server as a client would, and call each of its tools."
        ),
    }


app = typer.Typer(cls=Mcp, rich_markup_mode=None)
app.callback(invoke_without_command=True)(expand_options(serve))
