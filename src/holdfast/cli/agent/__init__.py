"""`agent`: chats with an agent that has memory, and inspects that memory. A file per command or command group."""

from __future__ import annotations

from typing import ClassVar

import typer

from holdfast.cli.lazy import CommandEntry, LazyGroup


class Agent(LazyGroup):
    """The subcommands, in help order."""

    entries: ClassVar[dict[str, CommandEntry]] = {
        "chat": CommandEntry("holdfast.cli.agent.chat:chat", "Chat with the agent."),
        "run": CommandEntry(
            "holdfast.cli.agent.run:run", "Send the agent one prompt: PROMPT, or stdin if that is `-`."
        ),
        "init": CommandEntry(
            "holdfast.cli.agent.init:init",
            "Write a commented config file, .holdfast/config.json, in the agent's folder.",
        ),
        "memory": CommandEntry("holdfast.cli.agent.memory:app", "Show the agent's curated files."),
        "sessions": CommandEntry(
            "holdfast.cli.agent.sessions:app",
            "List sessions, latest first; or show, search and delete them.",
        ),
    }


app = typer.Typer(cls=Agent, help="Chat with an agent that has memory, and inspect its memory.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def agent(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
