"""Validation of text, once at the edge, so that every store and format can carry it unchanged."""

from __future__ import annotations

import re

from holdfast.errors import InvalidText

MAX_TEXT_CHARS = 1_000_000
MAX_QUERY_CHARS = 20_000
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def checked_text(value: object, field: str, *, max_chars: int = MAX_TEXT_CHARS) -> str:
    """Return the text unchanged, or raise `InvalidText`."""
    if not isinstance(value, str):
        raise InvalidText(field, f"expected text, got {type(value).__name__}")
    if not value.strip():
        raise InvalidText(field, "is empty; give it some text")
    if len(value) > max_chars:
        # Content can be split into several pieces; a name, an id or a query cannot.
        advice = "split it" if max_chars > MAX_QUERY_CHARS else "shorten it"
        raise InvalidText(field, f"has {len(value):,} characters; at most {max_chars:,} are allowed: {advice}")
    if found := _UNSTORABLE.search(value):
        name = "a NUL character" if found.group() == "\x00" else "a lone surrogate"
        raise InvalidText(field, f"holds {name} at position {found.start()}; remove it")
    return value
