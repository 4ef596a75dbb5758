"""Splits a line of `holdfast shell` into words.

Like a Unix shell, but made for sentences: a quote inside a word is an apostrophe, a backslash before a letter is
itself, and nothing is expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_ESCAPED = "\\\"' \t"


class UnclosedQuote(ValueError):
    """A quote opens and does not close."""


def split_words(line: str) -> list[str]:
    """Return the words. A quote counts at the start of a word, after = of an option, and after a closing quote."""
    return [word for word, _ in _read_words(line)]


def quoted_words(line: str) -> frozenset[str]:
    """Return the words that begin with a quote."""
    return frozenset(word for word, start in _read_words(line) if line[start] in "\"'")


def quote_value(value: str) -> str:
    """Quote a word for a line, if it needs quotes."""
    if value and not re.search(r"[\s\\\"']", value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _read_words(line: str) -> Iterator[tuple[str, int]]:
    """Yield each word, and where it starts."""
    position = 0
    while (start := _skip_spaces(line, position)) < len(line):
        word, position = _read_word(line, start)
        yield word, start


def _skip_spaces(line: str, position: int) -> int:
    while position < len(line) and line[position].isspace():
        position += 1
    return position


def _read_word(line: str, position: int) -> tuple[str, int]:
    word, start, may_quote = "", position, True
    while position < len(line) and not line[position].isspace():
        char = line[position]
        if char in "\"'" and may_quote:
            text, position = _read_quoted(line, position)
            word += text
            continue
        if char == "\\" and line[position + 1 : position + 2] and line[position + 1] in _ESCAPED:
            word += line[position + 1]
            position += 2
            continue  # in '\'' a quote follows, which opens again
        word += char
        may_quote = char == "=" and line.startswith("-", start)
        position += 1
    return word, position


def _read_quoted(line: str, position: int) -> tuple[str, int]:
    """Read up to the closing quote. Between double quotes, a backslash escapes itself and a quote."""
    quote, text = line[position], ""
    position += 1
    while position < len(line) and line[position] != quote:
        if quote == '"' and line[position] == "\\" and line[position + 1 : position + 2] in ('"', "\\"):
            position += 1
        text += line[position]
        position += 1
    if position == len(line):
        raise UnclosedQuote(quote)
    return text, position + 1
