"""`agent sessions`: lists, shows, searches and deletes sessions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from holdfast.cli.agent.options import Workspace
from holdfast.cli.exits import ExitCode, UsageError, require_terminal
from holdfast.cli.formatting import format_count, format_time
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json, Yes, option
from holdfast.cli.terminal_safety import on_one_line
from holdfast.errors import InvalidInput, NotFound
from holdfast.settings import read_settings

if TYPE_CHECKING:
    from holdfast.agent.ports import SessionEvent, SessionHit, SessionStore, SessionSummary

R = TypeVar("R")
_MOST_LISTED = 10_000
_LEAST_PREFIX = 4
_HEAD = len("assistant: ")

app = typer.Typer(help="List sessions, latest first; or show, search and delete them.", rich_markup_mode=None)

Id = Annotated[str, typer.Argument(metavar="ID", hidden=True)]
Ids = Annotated[list[str], typer.Argument(metavar="ID", hidden=True)]
Words = Annotated[list[str], typer.Argument(metavar="WORDS", hidden=True)]
Most = Annotated[int, option("--limit", "N", "At most N.")]
All = Annotated[bool, typer.Option("--all", help="Also tool calls, gateway events, and how runs ended.")]


@app.callback(invoke_without_command=True)
def sessions(context: typer.Context, workspace: Workspace = None, limit: Most = 20, as_json: Json = False) -> None:
    """List sessions: id, last use, length and title."""
    if context.invoked_subcommand is not None:
        if workspace is not None or as_json:
            raise UsageError(
                f"give options after the command: `holdfast agent sessions {context.invoked_subcommand} …`"
            )
        return
    _check(limit)
    found = _with_sessions(workspace, lambda kept: kept.sessions(limit)) or ()
    if as_json:
        print_json({"sessions": found})
    else:
        from holdfast.cli import render

        render.show_lines(map(_line, found), "There are no sessions yet; `holdfast agent chat` starts one.")


@app.command()
def show(session: Id, everything: All = False, workspace: Workspace = None, as_json: Json = False) -> None:
    """Show a session's messages. ID may be a prefix."""

    async def read(kept: SessionStore) -> tuple[SessionEvent, ...]:
        return await kept.events(await _resolve_id(kept, session), visible=not everything)

    events = _with_sessions(workspace, read)
    if events is None:
        raise _not_found(session)
    if as_json:
        print_json({"session_id": events[0].session_id if events else session, "events": events})
    else:
        _show(events)


@app.command()
def search(words: Words, workspace: Workspace = None, limit: Most = 10, as_json: Json = False) -> None:
    """Search sessions by their text, best first."""
    _check(limit)
    query = " ".join(words)
    found = _with_sessions(workspace, lambda kept: kept.search(query, limit=limit)) or ()
    if as_json:
        print_json({"query": query, "hits": found})
    else:
        _show_hits(found)


@app.command()
def delete(chosen: Ids, workspace: Workspace = None, yes: Yes = False, as_json: Json = False) -> None:
    """Permanently delete sessions with their text. It asks first; without a terminal to ask on, it needs --yes.

    The agent's curated files and a Memory Gateway's data are not changed.
    """
    require_terminal(yes)

    async def find_all(kept: SessionStore) -> list[SessionSummary | str]:
        listed = {each.id: each for each in await kept.sessions(_MOST_LISTED)}
        return [listed.get(name, name) for name in [await _resolve_id(kept, each) for each in dict.fromkeys(chosen)]]

    async def delete_all(kept: SessionStore) -> list[str]:
        return [name for name in names if await kept.delete(name)]

    selected = _with_sessions(workspace, find_all)
    if selected is None:
        raise _not_found(chosen[0])
    names = [each if isinstance(each, str) else each.id for each in selected]
    # Confirm while no event loop runs: a running loop would swallow Ctrl-C.
    deleted = (_with_sessions(workspace, delete_all) or []) if yes or _confirm_deletion(selected) else []
    if as_json:
        print_json({"deleted": deleted})
    else:
        print(f"Deleted {format_count(len(deleted), 'session')}." if deleted else "Nothing was deleted.")
    if not deleted:
        raise typer.Exit(ExitCode.PROBLEM)


def _confirm_deletion(selected: list[SessionSummary | str]) -> bool:
    for each in selected:
        print(on_one_line(each) if isinstance(each, str) else _line(each), file=sys.stderr)
    return typer.confirm(f"Delete {format_count(len(selected), 'session')} for good?", err=True)


def _check(limit: int) -> None:
    if limit < 1:
        raise UsageError("--limit: must be at least 1")


def _with_sessions(workspace: Path | None, work: Callable[[SessionStore], Coroutine[Any, Any, R]]) -> R | None:
    """Call `work` with the session store; None if there is none yet: reading does not create it."""
    from holdfast.agent.config import read_config
    from holdfast.app import open_sessions

    settings = read_settings()
    config = read_config(workspace, settings)
    if not config.sessions.exists():
        return None

    async def run() -> R:
        kept = open_sessions(config.sessions, settings)
        try:
            return await work(kept)
        finally:
            await kept.close()

    return asyncio.run(run())


async def _resolve_id(kept: SessionStore, prefix: str) -> str:
    """Resolve an id, or an unambiguous prefix of one, to a session id."""
    if await kept.events(prefix, last=1):
        return prefix
    listed = await kept.sessions(_MOST_LISTED) if len(prefix) >= _LEAST_PREFIX else ()
    found = [each.id for each in listed if each.id.startswith(prefix)]
    if len(found) > 1:
        raise InvalidInput("ID", f"{format_count(len(found), 'session')} match this prefix; give a longer one")
    if not found:
        raise _not_found(prefix)
    return found[0]


def _not_found(name: str) -> NotFound:
    return NotFound(f"there is no session {name!r:.80}; `holdfast agent sessions` lists them")


def _line(one: SessionSummary) -> str:
    parts = (one.id, format_time(one.last_at), f"{format_count(one.messages, 'message'):>12}", one.title)
    return on_one_line("  ".join(parts))


def _show(events: tuple[SessionEvent, ...]) -> None:
    from rich.text import Text

    from holdfast.cli import render

    screen = render.console()
    if not events:
        screen.print("It has no messages.")
    for event in events:
        if event.context_visible:
            head = Text(f"{event.role or event.kind}: ", style="bold" if event.role == "user" else "default")
            render.print_hanging(screen, head, event.content, indent=_HEAD)
        else:
            data = ", ".join(f"{name} {value}" for name, value in event.data.items())
            line = on_one_line(f"{format_time(event.at)} {event.kind}: {data} {event.content}".rstrip(" :"))
            render.print_hanging(screen, Text("  · ", style="dim"), line, style="dim", indent=4)


def _show_hits(hits: tuple[SessionHit, ...]) -> None:
    from rich.text import Text

    from holdfast.cli import render

    screen = render.console()
    for place, hit in enumerate(hits, 1):
        render.print_hanging(
            screen, Text(f"{place:>2}  ", style="bold").append(f"{hit.role}: ", style="cyan"), hit.text
        )
        render.print_hanging(
            screen, Text(), on_one_line(f"{format_time(hit.at)} · session {hit.session_id}"), style="dim"
        )
    if not hits:
        screen.print("No session has any of these words.")
