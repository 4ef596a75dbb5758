"""Reads markdown: its blocks as they were written, and the levels of its headings, in time linear in its size.

Tables, links and code keep their markup, which people and models read well, and nothing is lost. Comments that are
blocks of their own are left out: they are invisible on the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from holdfast.documents.blocks import DocumentBlock, ParsedDocument, build_document, clean_title

_MAX_FRONT_CHARS = 20_000
_FRONT_TITLE = re.compile(r"""^title:[ \t]{1,9}["']?(.{1,500}?)["']?[ \t]{0,9}$""", re.MULTILINE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_COMMENT = re.compile(r" {0,3}<!--")
# A line of dashes below one of these is a rule, not the underline of a heading.
_NO_PARAGRAPH = re.compile(r" {0,3}(?:(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)|[>|<])| {4}|\t")


def read_markdown(lines: Iterable[str], max_characters: int) -> ParsedDocument:
    front, rest = _front_matter(iter(lines))
    titled = _FRONT_TITLE.search(front or "")
    first = [DocumentBlock(front)] if front else []
    document = build_document(titled[1] if titled else None, chain(first, _blocks(rest)), max_characters)
    heading = next((block.text for block in document.blocks if block.level == 1), None)
    return document._replace(title=document.title or clean_title(heading))


def _front_matter(lines: Iterator[str]) -> tuple[str | None, Iterator[str]]:
    """Return the text between the lines of dashes that a file may begin with, and the lines after it."""
    begin = next(lines, "")
    taken: list[str] = []
    if begin.rstrip() == "---":
        left = _MAX_FRONT_CHARS
        for line in lines:
            if line.rstrip() in ("---", "..."):
                return "\n".join(taken), lines
            taken.append(line)
            left -= len(line)
            if left < 0:
                break
    return None, chain((begin, *taken), lines)


def _blocks(lines: Iterator[str]) -> Iterator[DocumentBlock]:
    gathering: list[str] = []

    def end_block() -> Iterator[DocumentBlock]:
        if gathering:
            yield DocumentBlock("\n".join(gathering))
            gathering.clear()

    for line in lines:
        if not line.strip():
            yield from end_block()
        elif heading := _HEADING.match(line):
            yield from end_block()
            yield DocumentBlock(_heading_text(line[heading.end() :]), len(heading[1]))
        elif _UNDERLINE.match(line) and gathering and not _NO_PARAGRAPH.match(gathering[0]):
            level = 1 if line.lstrip().startswith("=") else 2
            yield DocumentBlock("\n".join(each.strip() for each in gathering), level)
            gathering.clear()
        elif _COMMENT.match(line):
            yield from end_block()
            _skip_comment(line, lines)
        elif fence := _FENCE.match(line):
            yield from end_block()
            gathering += _code(line, fence[1], lines)
            yield from end_block()
        else:
            gathering.append(line)
    yield from end_block()


def _heading_text(text: str) -> str:
    """Return the text of a heading without the signs that may close it."""
    text = text.strip()
    without = text.rstrip("#")
    return without.rstrip() if not without or without[-1] in " \t" else text


def _skip_comment(line: str, lines: Iterator[str]) -> None:
    while "-->" not in line:
        following = next(lines, None)
        if following is None:
            return
        line = following


def _code(line: str, fence: str, lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines of a piece of code to the line that ends it."""
    yield line
    for line in lines:
        yield line
        marks = line.strip()
        if len(marks) >= len(fence) and marks == fence[0] * len(marks):
            return
