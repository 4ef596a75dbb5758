"""Looking for text that is not a note but an attack on the agent that reads it."""

from __future__ import annotations

import re
import unicodedata

MAX_SCANNED_CHARS = 65_536

_CLEAR = {
    "tries to override instructions": re.compile(
        r"\b(?:ignore|disregard|forget)\b.{0,40}\b(?:previous|prior|above|earlier|all)\b.{0,40}\binstructions\b"
    ),
    "poses as another speaker": re.compile(r"^\s*(?:system|assistant)\s*:|<\|im_start\|>|\[/?inst\]", re.MULTILINE),
}


def threat_in(text: str) -> str:
    """Why the text must not reach a prompt ("tries to …"), or nothing."""
    if len(text) > MAX_SCANNED_CHARS:
        return f"is longer than {MAX_SCANNED_CHARS:,} characters"
    if any(unicodedata.category(char) in ("Cc", "Cf") and char not in "\n\t" for char in text):
        return "holds invisible characters"
    folded = unicodedata.normalize("NFKC", text).casefold()
    return next((why for why, pattern in _CLEAR.items() if pattern.search(folded)), "")
