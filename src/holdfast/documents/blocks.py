"""What every reader gives: the blocks of a document in order, headings marked as such."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from holdfast.errors import InvalidDocument

MAX_TITLE_CHARS = 300
PARAGRAPH = 0
DEEPEST_HEADING = 9
# Not storable, or without meaning in a text. Breaks of pages and lines of other systems are made newlines before.
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")


class Block(NamedTuple):
    """A paragraph, a row of a table or a piece of code (level 0), or a heading of that level."""

    text: str
    level: int = PARAGRAPH


class Parsed(NamedTuple):
    title: str | None
    blocks: tuple[Block, ...]


def parsed(title: object, blocks: Iterable[Block], max_characters: int) -> Parsed:
    """Cleaned, without empty blocks, and not more than that many characters: it stops as soon as there are."""
    kept: list[Block] = []
    left = max_characters
    for block in blocks:
        text = clean(block.text)
        if not text:
            continue
        left -= len(text)
        if left < 0:
            raise InvalidDocument("content", f"holds more than {max_characters:,} characters of text; split it")
        kept.append(Block(text, block.level))
    return Parsed(clean_title(title), tuple(kept))


def clean(text: str) -> str:
    """The text without characters that cannot be kept, and without space around it or at the ends of its lines."""
    lines = _CONTROL.sub("", _LINE_END.sub("\n", text)).split("\n")
    return "\n".join(line.rstrip() for line in lines).strip("\n").rstrip()


def clean_title(title: object) -> str | None:
    if not isinstance(title, str):
        return None
    # Cut before anything is done with it: a title may be as long as its document.
    return " ".join(clean(title[: 4 * MAX_TITLE_CHARS]).split())[:MAX_TITLE_CHARS].strip() or None


def paragraphs(text: str) -> Iterator[str]:
    """The parts of a text that blank lines separate."""
    lines: list[str] = []
    for line in _LINE_END.sub("\n", text).split("\n"):
        if line.strip():
            lines.append(line)
        elif lines:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)
