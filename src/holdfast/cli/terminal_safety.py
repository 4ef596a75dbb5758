"""Escapes characters that could control a terminal or hide text: stored text is untrusted."""

from __future__ import annotations

import shlex


def escape_controls(text: str) -> str:
    """Escape everything that a terminal would act on, or not show."""
    if text.isascii() and text.isprintable():
        return text
    from holdfast.domain.visible_text import escape_hidden  # its patterns take time to compile

    return escape_hidden(text, lambda char: char.encode("unicode_escape").decode("ascii"))


def on_one_line(text: str) -> str:
    return escape_controls(" ".join(text.split("\n")))


def quote_word(word: str) -> str:
    """Quote a word for a command suggested in a message."""
    return on_one_line(shlex.quote(word))
