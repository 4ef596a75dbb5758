"""The program: its commands, put together."""

from __future__ import annotations

from typing import Annotated, ClassVar

import typer

import holdfast
from holdfast.cli.lazy import Entry, LazyGroup


class Program(LazyGroup):
    """In the order in which the help lists them."""

    entries: ClassVar[dict[str, Entry]] = {
        "demo": Entry("holdfast.cli.demo:demo", "Show in under a minute what a memory does."),
        "serve": Entry("holdfast.cli.serve:serve", "Serve the memory over HTTP until Ctrl-C or SIGTERM."),
        "worker": Entry("holdfast.cli.worker:worker", "Do the store's background work until Ctrl-C or SIGTERM."),
        "add": Entry("holdfast.cli.add:add", "Add what was said to a conversation."),
        "search": Entry(
            "holdfast.cli.search:search", "Find what was said and learned, by meaning and by words, best first."
        ),
        "explain": Entry(
            "holdfast.cli.search:explain",
            "Search, and show each part of each score and the evidence behind each result.",
        ),
        "forget": Entry(
            "holdfast.cli.forget:forget",
            "Forget for good: some memories or messages by ID, or a conversation, a subject or a source whole.",
        ),
        "doctor": Entry(
            "holdfast.cli.doctor:doctor", "Check Python, the settings, the embedder, the store and the disk."
        ),
        "agent": Entry("holdfast.cli.agent:app", "Talk with an agent that remembers, and see what it keeps."),
        "resource": Entry(
            "holdfast.cli.resource:app", "Keep documents to be searched: text, markdown, HTML, PDF and DOCX."
        ),
        "user": Entry("holdfast.cli.user:app", "Create users, change their keys, and let them in no longer."),
        "credential": Entry(
            "holdfast.cli.credential:app",
            "Give agents, users and operators of a company keys with roles, and take them away.",
        ),
        "binding": Entry(
            "holdfast.cli.binding:app", "Choose which memory serves a company, and which serves one of its agents."
        ),
        "provider": Entry("holdfast.cli.provider:app", "See which memories can be bound, and try one before it is."),
        "operations": Entry("holdfast.cli.operations:app", "See what memory did, for whom, and how it ended."),
        "jobs": Entry("holdfast.cli.jobs:app", "See background work, try it again, or cancel it."),
        "deliveries": Entry(
            "holdfast.cli.deliveries:app", "See what became of hooks, and try dead ones again or drop them."
        ),
        "costs": Entry("holdfast.cli.costs:app", "See what memory costs, and what its tokens are reckoned at."),
        "store": Entry("holdfast.cli.store:app", "Create, measure, check, move and mend the store."),
        "space": Entry("holdfast.cli.space:app", "Move everything of one tenant, as a file."),
        "transcript": Entry(
            "holdfast.cli.transcript:app", "Look at transcripts, archive, mask or delete turns, and check them."
        ),
        "platform": Entry("holdfast.cli.platform:app", "Show the profiles, and what memory can do under each."),
    }


app = typer.Typer(
    cls=Program,
    # Plain help: the same on every terminal, and quick.
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
