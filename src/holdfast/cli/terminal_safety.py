"""Escapes characters that could control a terminal or hide text: stored text is untrusted."""

from __future__ import annotations

import re
import shlex

# Controls but tab and newline (ESC, CR, the C1 set with its one-byte CSI), bidi controls and line separators, byte
# order marks, invisible tags, and lone surrogates. Joiners stay: scripts and emoji need them.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff\U000e0000-\U000e007f"
    "\ud800-\udfff]"
)


def escape_controls(text: str) -> str:
    """Escape everything that a terminal would act on."""
    return UNSAFE.sub(lambda found: found.group().encode("unicode_escape").decode("ascii"), text)


def on_one_line(text: str) -> str:
    return escape_controls(" ".join(text.split("\n")))


def quote_word(word: str) -> str:
    """Quote a word for a command suggested in a message."""
    return on_one_line(shlex.quote(word))
