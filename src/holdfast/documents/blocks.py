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
_PIECE_CHARS = 32_768
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")


class DocumentBlock(NamedTuple):
    """A paragraph, a table row or a piece of code (level 0), or a heading of that level."""

    text: str
    level: int = PARAGRAPH


class ParsedDocument(NamedTuple):
    title: str | None
    blocks: tuple[DocumentBlock, ...]

    @property
    def characters(self) -> int:
        return sum(len(block.text) for block in self.blocks)


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


def has_controls(text: str) -> bool:
    """True if it has characters that `clean` removes."""
    return _CONTROL.search(text) is not None


def paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Join the lines between blank lines."""
    for filled, together in groupby(lines, lambda line: bool(line.strip())):
        if filled:
            yield "\n".join(together)


def lines_of(text: str) -> Iterator[str]:
    """Yield its lines. Splits it piece by piece: work on all of a long text at once would hold up other threads."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + _PIECE_CHARS) + 1 or len(text)
        lines = _LINE_END.sub("\n", text[start:end]).split("\n")
        yield from lines[:-1] if end < len(text) else lines
        start = end
