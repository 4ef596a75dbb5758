"""`agent`: talk with an agent that remembers, and look at what it keeps. A file per command, or per group of them."""

from __future__ import annotations

import typer

from holdfast.cli.agent.chat import chat
from holdfast.cli.agent.init import init
from holdfast.cli.agent.memory import app as memory
from holdfast.cli.agent.run import run
from holdfast.cli.agent.sessions import app as sessions

app = typer.Typer(help="Talk with an agent that remembers, and see what it keeps.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def agent(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


for command in (chat, run, init):
    app.command(command.__name__)(command)
for group, name in ((memory, "memory"), (sessions, "sessions")):
    app.add_typer(group, name=name)
