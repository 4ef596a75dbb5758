"""The result of every reader: the blocks of a document in order, with heading levels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from holdfast.errors import InvalidDocument

MAX_TITLE_CHARS = 300
PARAGRAPH = 0
DEEPEST_HEADING = 9
# Not storable, or meaningless in a text. Page breaks and other line ends are converted to newlines before.
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")


class DocumentBlock(NamedTuple):
    """A paragraph, a table row or a piece of code (level 0), or a heading of that level."""

    text: str
    level: int = PARAGRAPH


class ParsedDocument(NamedTuple):
    title: str | None
    blocks: tuple[DocumentBlock, ...]


def build_document(title: object, blocks: Iterable[DocumentBlock], max_characters: int) -> ParsedDocument:
    """Clean the blocks and drop empty ones; refuse the document as soon as it exceeds `max_characters`."""
    cleaned: list[DocumentBlock] = []
    left = max_characters
    for block in blocks:
        text = clean(block.text)
        if not text:
            continue
        left -= len(text)
        if left < 0:
            raise InvalidDocument("content", f"holds more than {max_characters:,} characters of text; split it")
        cleaned.append(DocumentBlock(text, block.level))
    return ParsedDocument(clean_title(title), tuple(cleaned))


def clean(text: str) -> str:
    """Remove characters that cannot be stored, surrounding space, and space at line ends."""
    lines = _CONTROL.sub("", _LINE_END.sub("\n", text)).split("\n")
    return "\n".join(line.rstrip() for line in lines).strip("\n").rstrip()


def clean_title(title: object) -> str | None:
    if not isinstance(title, str):
        return None
    # Cut it first: a title may be as long as its document.
    return " ".join(clean(title[: 4 * MAX_TITLE_CHARS]).split())[:MAX_TITLE_CHARS].strip() or None


def paragraphs(text: str) -> Iterator[str]:
    """Split a text at blank lines."""
    for filled, lines in groupby(_LINE_END.sub("\n", text).split("\n"), lambda line: bool(line.strip())):
        if filled:
            yield "\n".join(lines)
