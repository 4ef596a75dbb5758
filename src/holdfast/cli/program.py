"""The root command `holdfast` and its subcommands."""

from __future__ import annotations

from typing import Annotated, ClassVar

import typer

import holdfast
from holdfast.cli.lazy import CommandEntry, LazyGroup


class Program(LazyGroup):
    """The subcommands, in help order."""

    entries: ClassVar[dict[str, CommandEntry]] = {
        name: CommandEntry(f"holdfast.cli.{where}", explained)
        for name, where, explained in (
            ("demo", "demo:demo", "Show what a memory does in under a minute."),
            ("serve", "serve:serve", "Serve the memory over HTTP until Ctrl-C or SIGTERM."),
            ("worker", "worker:worker", "Run background jobs until Ctrl-C or SIGTERM."),
            ("add", "add:add", "Add messages to a conversation."),
            ("search", "search:search", "Search messages and memories by meaning and by words, best first."),
            (
                "explain",
                "search:explain",
                "Search, and show each part of each score and the evidence behind each result.",
            ),
            (
                "recall",
                "search:recall",
                "Print what to show a model: what bears on the query, best first, each thing once, as one message.",
            ),
            ("history", "history:history", "Show every revision of the memory ID, oldest first: who made it and why."),
            ("revert", "history:revert", "Make revision REVISION of the memory ID current again."),
            (
                "forget",
                "forget:forget",
                "Permanently forget memories or messages by ID, or a whole conversation, subject or source.",
            ),
            ("doctor", "doctor:doctor", "Check Python, the settings, the embedder, the store and the disk."),
            ("agent", "agent:app", "Chat with an agent that has memory, and inspect its memory."),
            ("resource", "resource:app", "Store documents for search: text, markdown, HTML, PDF and DOCX."),
            ("user", "user:app", "Create users, rotate their keys, and revoke them."),
            ("credential", "credential:app", "Manage keys with roles for a company's agents, users and operators."),
            ("binding", "binding:app", "Choose the memory provider for a company or one of its agents."),
            ("provider", "provider:app", "List memory providers, and check one before binding it."),
            ("operations", "operations:app", "Show memory operations, their callers and outcomes."),
            ("jobs", "jobs:app", "Show, retry and cancel background jobs."),
            ("deliveries", "deliveries:app", "Show hook deliveries; retry or drop dead ones."),
            ("costs", "costs:app", "Show the cost of memory, and set token prices."),
            ("store", "store:app", "Create, measure, check, copy and repair the store."),
            ("space", "space:app", "Export or import all data of one tenant as a file."),
            ("transcript", "transcript:app", "Show and check transcripts; archive, mask or delete turns."),
            ("platform", "platform:app", "Show the profiles and the capabilities of each."),
        )
    }


app = typer.Typer(
    cls=Program,
    # Plain help: the same on every terminal, and fast.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def program(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """One memory for AI agents, in a file.

    New here? `holdfast demo` shows everything in under a minute.
    """
    if version:
        print(f"holdfast {holdfast.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())
