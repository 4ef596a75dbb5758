"""Reads markdown: its blocks as they were written. The parser only finds the blocks and their heading levels.

Tables, links and code keep their markup, which people and models read well, and nothing is lost. Comments that are
blocks of their own are left out: they are invisible on the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt

from holdfast.documents.blocks import DocumentBlock, ParsedDocument, build_document, clean_title, paragraphs

_FRONT_MATTER = re.compile(r"\A---[ \t]{0,9}\n(.{0,20000}?)\n(?:---|\.\.\.)[ \t]{0,9}(?:\n|\Z)", re.DOTALL)
_FRONT_TITLE = re.compile(r"""^title:[ \t]{1,9}["']?(.{1,500}?)["']?[ \t]{0,9}$""", re.MULTILINE)


def read_markdown(text: str, max_characters: int) -> ParsedDocument:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    title: str | None = None
    front = _FRONT_MATTER.match(text)
    found: list[DocumentBlock] = []
    if front:
        titled = _FRONT_TITLE.search(front[1])
        title = titled[1] if titled else None
        found.append(DocumentBlock(front[1]))
        text = text[front.end() :]
    found += _blocks(text)
    title = clean_title(title) or next((block.text for block in found if block.level == 1), None)
    return build_document(title, found, max_characters)


def _blocks(text: str) -> Iterator[DocumentBlock]:
    lines = text.split("\n")
    # Parse blocks only: without the inline step every text stays as written.
    tokens = MarkdownIt("commonmark").enable("table").disable("inline").parse(text)
    done = 0
    heading: int | None = None
    for token in tokens:
        if heading is not None and token.type == "inline":
            yield DocumentBlock(token.content, heading)
            heading = None
        if token.level or token.map is None or token.nesting < 0:
            continue
        # Text for which the parser emits no token, such as link targets, lies between the blocks.
        yield from map(DocumentBlock, paragraphs("\n".join(lines[done : token.map[0]])))
        done = token.map[1]
        if token.type == "heading_open":
            heading = int(token.tag[1:])
        elif not (token.type == "html_block" and token.content.lstrip().startswith("<!--")):
            yield DocumentBlock("\n".join(lines[token.map[0] : token.map[1]]))
    yield from map(DocumentBlock, paragraphs("\n".join(lines[done:])))
