"""`store events`: the event log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import holdfast
from holdfast.cli.paging import join_pages
from holdfast.cli.store_access import widest_scope
from holdfast.cli.terminal_safety import on_one_line
from holdfast.cli.verb_commands import MemoryCall, memory_command

if TYPE_CHECKING:
    from holdfast.domain.events import Event, EventPage


def _list(memory: holdfast.Memory, call: MemoryCall) -> EventPage:
    from holdfast.domain.events import EventPage

    arguments = {**call.arguments, **(call.where or widest_scope(call.chosen))}
    most = arguments.pop("limit")
    return EventPage(*join_pages(lambda limit, cursor: memory.events(limit=limit, cursor=cursor, **arguments), most))


@memory_command("events", perform=_list)
def events(found: EventPage, call: MemoryCall) -> None:
    """List the event log, newest first: which records were written, merged and deleted."""
    from holdfast.cli import render

    render.show_lines(map(_event_line, found.items), "There are no events.")


def _event_line(event: Event) -> str:
    counts = ", ".join(f"{name} {value}" for name, value in event.details.items() if value is not None)
    named = " ".join(part for part in (event.plane, event.record_key, counts and f"({counts})") if part)
    return on_one_line(f"{event.at:%Y-%m-%d %H:%M:%S}  {event.kind}  {named}".rstrip())
