"""Curated entries as values: how a file holds them, how one is addressed, and how a change applies to them.

An entry is text without blank edges. In a file, a line that is only `§` separates two entries, so no entry has such a
line. Nothing here touches a disk.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.agent.curated.threats import MAX_SCANNED_CHARS, threat_in
from holdfast.agent.texts import shorten
from holdfast.domain.checks import checked_text
from holdfast.domain.visible_text import remove_hidden
from holdfast.errors import InvalidInput, InvalidText

DELIMITER = "\n§\n"
PREVIEW_CHARS = 80
# Characters on each side of a border between entries that are scanned as one text, and characters per scan.
_BORDER_CHARS = 1_000
_LOOK_CHARS = 30_000
# Allows for hand edits: blanks around the mark, and any line ends.
_BETWEEN = re.compile(r"^[ \t]*§[ \t]*$", re.MULTILINE)

Entries = tuple[str, ...]


class CuratedTarget(StrEnum):
    """The file: the agent's own notes, or facts about the user."""

    MEMORY = "memory"
    USER = "user"

    @property
    def file(self) -> str:
        return f"{self.name}.md"


class CuratedAction(StrEnum):
    ADD = "add"
    REPLACE = "replace"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Change:
    """One change to one file: `add` takes `content`, `remove` takes `old_text`, `replace` takes both."""

    action: CuratedAction
    target: CuratedTarget
    content: str | None = None
    old_text: str | None = None

    def __post_init__(self) -> None:
        adds, finds = self.action is not CuratedAction.REMOVE, self.action is not CuratedAction.ADD
        for name, needed in (("content", adds), ("old_text", finds)):
            if needed and not (getattr(self, name) or "").strip():
                raise InvalidInput(name, f"is missing; {self.action} needs it")
            if not needed and getattr(self, name):
                raise InvalidInput(name, f"is of no use to {self.action}; leave it out")
        if self.content:
            object.__setattr__(self, "content", checked_entry(self.content))
        if self.old_text:
            object.__setattr__(self, "old_text", _unix_lines(self.old_text).strip())


def parse_entries(text: str) -> Entries:
    """Split a file's text into its entries, in order."""
    # Strips only these blanks: another kind may be all that keeps a `§` line from being a separator.
    return tuple(entry for piece in _BETWEEN.split(_unix_lines(text)) if (entry := piece.strip(" \t\n")))


def join_entries(entries: Sequence[str]) -> str:
    """Join entries as a file holds them, without its last line end. Limits count this text."""
    return DELIMITER.join(entries)


def checked_entry(text: str) -> str:
    """Validate and normalize an entry; raises `InvalidText`."""
    entry = _unix_lines(checked_text(text, "content", max_chars=MAX_SCANNED_CHARS)).strip()
    if _BETWEEN.search(entry):
        raise InvalidText("content", "has a line that is only '§', which divides entries; add them one by one")
    if why := threat_in(entry):
        raise InvalidText("content", f"is refused, since it {why}; keep plain facts, in your own words")
    return entry


def usage(entries: Sequence[str], limit: int) -> str:
    used = len(join_entries(entries))
    return f"{used * 100 // limit}% — {used:,} of {limit:,} characters"


def visible_entries(entries: Sequence[str]) -> Entries:
    """Return the entries as a model may see them. A blocked one shows its reason and number, nothing of its text."""
    alone = {at: f"it {why}" for at, entry in enumerate(entries) if (why := threat_in(entry))}
    reasons = alone | {
        at: f"after the entries before it, it {why}" for at, why in _find_combined_threats(entries).items()
    }
    return tuple(
        f"[BLOCKED: {reasons[at]}; entry {at + 1}]" if at in reasons else entry for at, entry in enumerate(entries)
    )


def combined_threat(before: Sequence[str], after: Sequence[str]) -> str:
    """Return why entries that are harmless alone form a threat together, if they did not before; else empty."""
    found = _find_combined_threats(after)
    return next(iter(found.values())) if len(found) > len(_find_combined_threats(before)) else ""


def _find_combined_threats(entries: Sequence[str]) -> dict[int, str]:
    """Find entries, harmless alone, that form an attack with the text before them: index and reason."""
    clear = {at: entry for at, entry in enumerate(entries) if not threat_in(entry)}
    text = "\n".join(clear.values())
    starts = range(0, len(text), _LOOK_CHARS - 2 * _BORDER_CHARS)
    if len(clear) < 2 or not any(_threat_in_piece(text[start : start + _LOOK_CHARS]) for start in starts):
        return {}
    found, preceding = {}, ""
    for at, entry in clear.items():
        if preceding and (why := _threat_in_piece(f"{preceding[-_BORDER_CHARS:]}\n{entry[:_BORDER_CHARS]}")):
            found[at] = why
        else:
            preceding = f"{preceding[-_BORDER_CHARS:]}\n{entry}".strip()
    return found


def _threat_in_piece(text: str) -> str:
    """Scan a piece of harmless entries. A cut may have divided a sequence of emoji: what is left of it is no threat."""
    return threat_in(remove_hidden(text))


def apply_change(entries: Entries, change: Change) -> tuple[Entries, str]:
    """Apply a change; return the new entries and what it did. `InvalidInput` says why it is impossible."""
    if change.action is CuratedAction.ADD:
        content = str(change.content)
        if content in entries:
            return entries, "It was there already"
        return (*entries, content), "Added"
    at = _find_entry(entries, change)
    if change.action is CuratedAction.REPLACE:
        return (*entries[:at], str(change.content), *entries[at + 1 :]), "Replaced"
    return (*entries[:at], *entries[at + 1 :]), "Removed"


def _find_entry(entries: Entries, change: Change) -> int:
    """Find the one entry that shows the old text. A blocked entry is found by the text shown in its place."""
    old = str(change.old_text)
    views = visible_entries(entries)
    matching = [at for at, view in enumerate(views) if old in view]
    if not matching:
        raise InvalidInput("old_text", f"is in no entry of {change.target.file}; copy a piece of the entry exactly")
    if len({entries[at] for at in matching}) > 1:
        previews = "; ".join(f"'{shorten(' '.join(views[at].split()), PREVIEW_CHARS)}'" for at in matching)
        raise InvalidInput("old_text", f"is in {len(matching)} entries, give more of the one meant: {previews}")
    return matching[0]


def _unix_lines(text: str) -> str:
    """End every line with a line feed: a carriage return at the edge of an entry would become part of a line end."""
    return re.sub("\r\n?", "\n", text)
