"""`remember`, `correct` and `revert`: write a memory, replace its text, and undo that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.cli.exits import UsageError
from holdfast.cli.terminal_safety import on_one_line
from holdfast.cli.verb_commands import CliOption, MemoryCall, memory_command

if TYPE_CHECKING:
    from holdfast.domain.memory import MemoryRecord

_TEXT = CliOption("TEXT", words=True)


def _metadata(entries: Sequence[str], name: str) -> dict[str, str]:
    """Parse `--metadata NAME=TEXT` options."""
    found = {}
    for entry in entries:
        key, equals, value = entry.partition("=")
        if not (equals and key):
            raise UsageError(f"{name} {on_one_line(entry)}: write a name and a text, such as topic=travel")
        found[key] = value
    return found


@memory_command(
    "remember",
    options={
        "text": _TEXT,
        "metadata": CliOption(
            help="A text of your own by its name, such as topic=travel. Repeatable.",
            parse=_metadata,
            noun="NAME=TEXT",
            repeatable=True,
        ),
    },
    create=True,
)
def remember(made: MemoryRecord, call: MemoryCall) -> None:
    """Store a memory: TEXT, a statement that can be understood on its own, such as "Ana lives in Lisbon".

    The same statement again is a revision of the first. `holdfast add` stores what was said, and memories are learned
    from it.
    """
    _show(made, f"Remembered as {on_one_line(made.id)}.")


@memory_command("correct", options={"text": _TEXT})
def correct(made: MemoryRecord, call: MemoryCall) -> None:
    """Replace the text of the memory or message ID by TEXT. The old one stays in its history.

    Correcting a message makes a memory that replaces it in search. `holdfast revert` undoes a correction.
    """
    _show(made, f"Corrected: {on_one_line(made.id)} is at revision {made.revision:,}.")


@memory_command("revert", options={"reason": CliOption(help="Who said so, or what was wrong.")})
def revert(made: MemoryRecord, call: MemoryCall) -> None:
    """Make revision REVISION of the memory ID current again.

    Its text, validity, evidence and marks come back as a new revision. `holdfast history ID` shows the revisions.
    """
    _show(made, f"Reverted: {on_one_line(made.id)} is at revision {made.revision:,}.")


def _show(made: MemoryRecord, done: str) -> None:
    from holdfast.cli import render

    print(done)
    render.show_history(render.console(), [made])
