"""The program: its commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

import holdfast
from holdfast.cli.add import add
from holdfast.cli.agent import app as agent
from holdfast.cli.binding import app as binding
from holdfast.cli.costs import app as costs
from holdfast.cli.credential import app as credential
from holdfast.cli.deliveries import app as deliveries
from holdfast.cli.demo import demo
from holdfast.cli.doctor import doctor
from holdfast.cli.forget import forget
from holdfast.cli.jobs import app as jobs
from holdfast.cli.operations import app as operations
from holdfast.cli.platform import app as platform
from holdfast.cli.provider import app as provider
from holdfast.cli.resource import app as resource
from holdfast.cli.search import explain, search
from holdfast.cli.serve import serve
from holdfast.cli.space import app as space
from holdfast.cli.store import app as store
from holdfast.cli.transcript import app as transcript
from holdfast.cli.user import app as user
from holdfast.cli.worker import worker

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


for command in (demo, serve, worker, add, search, explain, forget, doctor):
    app.command(command.__name__)(command)
groups = {
    "agent": agent,
    "resource": resource,
    "user": user,
    "credential": credential,
    "binding": binding,
    "provider": provider,
    "operations": operations,
    "jobs": jobs,
    "deliveries": deliveries,
    "costs": costs,
    "store": store,
    "space": space,
    "transcript": transcript,
    "platform": platform,
}
for name, group in groups.items():
    app.add_typer(group, name=name)
