"""The program: its commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

import holdfast
from holdfast.cli import add, demo, doctor, forget, search, store

app = typer.Typer(
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


app.command("demo")(demo.demo)
app.command("add")(add.add)
app.command("search")(search.search)
app.command("explain")(search.explain)
app.command("forget")(forget.forget)
app.command("doctor")(doctor.doctor)
app.add_typer(store.app, name="store")
