"""The root command `holdfast` and its subcommands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import typer

import holdfast
from holdfast.cli.lazy import CommandEntry, LazyGroup

# The commands by purpose, in help order: each with its location and its help's first sentence.
_SECTIONS: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "Start here": (
        ("demo", "demo:demo", "Show what a memory does in under a minute."),
        ("add", "add:add", "Add messages to a conversation."),
        ("search", "search:search", "Search messages and memories by meaning and by words, best first."),
        (
            "recall",
            "search:recall",
            "Print what to show a model: what bears on the query, best first, each thing once, as one message.",
        ),
        ("doctor", "doctor:doctor", "Check Python, the settings, the embedder, the store and the disk."),
    ),
    "Memory": (
        ("shell", "shell:shell", "Type commands at a prompt; Tab completes them."),
        ("list", "records:list_", "List messages and memories, newest first."),
        ("get", "records:get", "Show the memory or message ID with everything that is known about it."),
        (
            "remember",
            "remember:remember",
            'Store a memory: TEXT, a statement that can be understood on its own, such as "Ana lives in Lisbon".',
        ),
        ("correct", "remember:correct", "Replace the text of the memory or message ID by TEXT."),
        ("history", "records:history", "Show every revision of the memory ID, oldest first: who made it and why."),
        ("revert", "remember:revert", "Make revision REVISION of the memory ID current again."),
        (
            "forget",
            "forget:forget",
            "Permanently forget memories or messages by ID, or a whole conversation, subject or source.",
        ),
        (
            "explain",
            "search:explain",
            "Search, and show each part of each score and the evidence behind each result.",
        ),
        (
            "browse",
            "search:browse",
            "List messages and memories by the time they were said or recorded, from any offset, with the total.",
        ),
        ("flush", "flush:flush", "Finish pending work: seal the conversation, make missing vectors, extract memories."),
        ("export", "space:export_space", "Export a space to a file, one record per line."),
        ("import", "space:import_space", "Import a file that `export` made."),
        ("resource", "resource:app", "Store documents for search: text, markdown, HTML, PDF and DOCX."),
        ("transcript", "transcript:app", "Show and check transcripts; archive, mask or delete turns."),
        (
            "runtime",
            "runtime:app",
            "Use a memory as a host's runtime does: recall, project, inspect, move, and manage skills and tools.",
        ),
        (
            "evolution",
            "evolution:app",
            "Review what agents propose to change in a memory: list, show, approve or reject.",
        ),
        ("agent", "agent:app", "Chat with an agent that has memory, and inspect its memory."),
    ),
    "Service": (
        ("serve", "serve:serve", "Serve the memory over HTTP until Ctrl-C or SIGTERM."),
        ("mcp", "mcp:app", "Give other programs this memory, over the Model Context Protocol."),
        ("worker", "worker:worker", "Run background jobs until Ctrl-C or SIGTERM."),
        ("user", "user:app", "Create users, rotate their keys, and revoke them."),
        ("credential", "credential:app", "Manage keys with roles for a space's agents, users and operators."),
        ("binding", "binding:app", "Choose the memory provider for a space or one of its agents."),
        ("provider", "provider:app", "List memory providers, and check one before binding it."),
    ),
    "Operate": (
        ("store", "store:app", "Create, measure, check, copy, back up and repair the store."),
        ("space", "space:app", "Export or import all data of one space as a file."),
        ("operations", "operations:app", "Show memory operations, their callers and outcomes."),
        ("jobs", "jobs:app", "Show, retry and cancel background jobs."),
        ("deliveries", "deliveries:app", "Show hook deliveries; retry or drop dead ones."),
        ("costs", "costs:app", "Show the cost of memory, and set token prices."),
        ("platform", "platform:app", "Show the profiles and the capabilities of each."),
        ("replay", "replay:app", "Run, record and compare replay fixtures, to see if an upgrade changes anything."),
    ),
}


class Program(LazyGroup):
    """The subcommands, in help order."""

    entries: ClassVar[dict[str, CommandEntry]] = {
        name: CommandEntry(f"holdfast.cli.{where}", explained)
        for commands in _SECTIONS.values()
        for name, where, explained in commands
    }
    sections: ClassVar[Mapping[str, Sequence[str]]] = {
        title: tuple(name for name, _, _ in commands) for title, commands in _SECTIONS.items()
    }

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command, or suggest the one that is called otherwise in other programs."""
        try:
            return super().resolve_command(ctx, args)
        except typer.TyperException as error:
            from holdfast.cli.suggestions import suggest_name

            if found := suggest_name(args[0]):
                error.message = f"No such command {args[0]!r}. Did you mean {found!r}?"
            raise


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
