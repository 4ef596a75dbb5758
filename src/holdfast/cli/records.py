"""`list`, `get` and `history`: records as they are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import holdfast
from holdfast.cli.paging import join_pages
from holdfast.cli.verb_commands import MemoryCall, memory_command

if TYPE_CHECKING:
    from holdfast.domain.results import Page, Record


def _list(memory: holdfast.Memory, call: MemoryCall) -> Page:
    """Read as many pages as the limit needs, as one page."""
    from holdfast.domain.results import Page

    arguments = {**call.arguments, **call.where}
    most = arguments.pop("limit")
    return Page(*join_pages(lambda limit, cursor: memory.list(limit=limit, cursor=cursor, **arguments), most))


@memory_command("list", perform=_list)
def list_(found: Page, call: MemoryCall) -> None:
    """List messages and memories, newest first.

    Scope options that are given must match; the others match all.
    """
    from holdfast.cli import render

    if not found.items:
        print("There is nothing here. `holdfast store stats` shows what the store holds.")
    render.show_records(render.console(), found.items)


@memory_command("get")
def get(record: Record, call: MemoryCall) -> None:
    """Show the memory or message ID with everything that is known about it."""
    from holdfast.cli import render

    render.show_record(render.console(), record)


@memory_command("history", document=lambda revisions, _: {"revisions": revisions})
def history(revisions: tuple[Record, ...], call: MemoryCall) -> None:
    """Show every revision of the memory ID, oldest first: who made it and why."""
    from holdfast.cli import render

    render.show_history(render.console(), revisions)
