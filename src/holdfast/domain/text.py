"""What text is fit to be kept: checked once, at the door, so that every store and format can carry it unchanged."""

from __future__ import annotations

import re

from holdfast.errors import InvalidText

MAX_TEXT_CHARS = 1_000_000
MAX_QUERY_CHARS = 20_000
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def checked_text(value: object, field: str, *, max_chars: int = MAX_TEXT_CHARS) -> str:
    """The text itself, or `InvalidText`. Text is never trimmed or altered."""
    if not isinstance(value, str):
        raise InvalidText(field, f"expected text, got {type(value).__name__}")
    if not value.strip():
        raise InvalidText(field, "is empty; there is nothing to keep or to look for")
    if len(value) > max_chars:
        # What is kept may be kept in several pieces; a name, an id or a question cannot.
        advice = "split it" if max_chars > MAX_QUERY_CHARS else "shorten it"
        raise InvalidText(field, f"has {len(value):,} characters; at most {max_chars:,} are allowed: {advice}")
    if found := _UNSTORABLE.search(value):
        name = "a NUL character" if found.group() == "\x00" else "a lone surrogate"
        raise InvalidText(field, f"holds {name} at position {found.start()}; remove it")
    return value
