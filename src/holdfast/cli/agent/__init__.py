"""`agent`: talk with an agent that remembers, and look at what it keeps. A file per command, or per group of them."""

from __future__ import annotations

from typing import ClassVar

import typer

from holdfast.cli.lazy import Entry, LazyGroup


class Agent(LazyGroup):
    """In the order in which the help lists them."""

    entries: ClassVar[dict[str, Entry]] = {
        "chat": Entry("holdfast.cli.agent.chat:chat", "Talk with the agent."),
        "run": Entry(
            "holdfast.cli.agent.run:run", "Ask the agent one thing: PROMPT, or what is on stdin if that is `-`."
        ),
        "init": Entry(
            "holdfast.cli.agent.init:init",
            "Write a config file with comments: .holdfast/config.json in the folder that the agent works in.",
        ),
        "memory": Entry("holdfast.cli.agent.memory:app", "See what the agent keeps in its curated files."),
        "sessions": Entry(
            "holdfast.cli.agent.sessions:app",
            "List the sessions, the latest first; or show, search and delete what was said.",
        ),
    }


app = typer.Typer(cls=Agent, help="Talk with an agent that remembers, and see what it keeps.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def agent(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
