"""Reads HTML: the visible text of the page. Scripts, styles and hidden elements are left out.

The parser reports elements while it reads, and no tree is built: what nests too deeply, or holds too much text, is
refused as soon as it does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

from lxml import etree

from holdfast.documents.blocks import (
    MAX_TITLE_CHARS,
    PARAGRAPH,
    DocumentBlock,
    ParsedDocument,
    build_document,
    clean_title,
)
from holdfast.errors import InvalidDocument

_UNSEEN = frozenset(
    "head script style template noscript iframe object embed svg math canvas audio video datalist input".split()
)
_BLOCKS = frozenset(
    "html body address article aside blockquote details dialog dd div dl dt fieldset figcaption figure footer form"
    " header hgroup hr li main menu nav ol option p pre search section select summary table caption tbody thead tfoot"
    " tr ul textarea legend".split()
)
_CELLS = frozenset(("td", "th"))
# Elements without content, which need no end tag; the parser does not know all of them.
_VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_HIDING = re.compile(r"display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden", re.IGNORECASE)
_SPACE = re.compile(r"[ \t\n\f\r]+")
_BETWEEN_CELLS = " | "
_SLICE_BYTES = 64 * 1024
# Browsers nest at most 512. An end tag costs the parser time in the number of open elements.
MAX_DEPTH = 1_000


def read_html(text: str, max_characters: int) -> ParsedDocument:
    page = _Page()
    document = build_document(None, _blocks(page, text.encode("utf-8", "replace")), max_characters)
    return document._replace(title=clean_title(page.title))


def _blocks(page: _Page, content: bytes) -> Iterator[DocumentBlock]:
    parser = etree.HTMLParser(target=page, encoding="utf-8", huge_tree=True)
    for start in range(0, len(content), _SLICE_BYTES):
        parser.feed(content[start : start + _SLICE_BYTES])
        yield from page.take_blocks()
    with suppress(etree.XMLSyntaxError):  # there was no element
        parser.close()
    yield from page.take_blocks()


class _Page:
    """Collects blocks from what the parser reports. Holds the current block's text and heading level."""

    def __init__(self) -> None:
        self._done: list[DocumentBlock] = []
        self._parts: list[str] = []
        self._level = PARAGRAPH
        self._preformatted = 0
        self._open = 0
        # The number of elements around the outermost hidden one, if any.
        self._hidden_from: int | None = None
        self._title: list[str] | None = None
        self._in_title = False

    @property
    def title(self) -> str:
        return "".join(self._title or ())

    def take_blocks(self) -> list[DocumentBlock]:
        done, self._done = self._done, []
        return done

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._open += 1
        if self._open > MAX_DEPTH:
            raise InvalidDocument("content", f"nests elements more than {MAX_DEPTH:,} deep, which no page does")
        if tag == "title" and self._title is None:
            self._title, self._in_title = [], True
        if self._hidden_from is not None:
            return
        if tag not in _VOID and _is_hidden(tag, attributes):
            self._hidden_from = self._open
        elif tag == "br":
            self._parts.append("\n")
        elif tag in _CELLS:
            if self._parts:
                self._parts.append(_BETWEEN_CELLS)
        elif tag in _BLOCKS or tag in _HEADINGS:
            self._end_block()
            self._level = _HEADINGS.get(tag, PARAGRAPH)
            self._preformatted += tag == "pre"

    def end(self, tag: str) -> None:
        self._open -= 1
        self._in_title = self._in_title and tag != "title"
        if self._hidden_from is not None:
            if self._open < self._hidden_from:
                self._hidden_from = None
        elif tag in _BLOCKS or tag in _HEADINGS:
            self._end_block()
            self._level = PARAGRAPH
            self._preformatted -= tag == "pre"

    def data(self, text: str) -> None:
        if self._in_title and self._title is not None and len(self._title) < MAX_TITLE_CHARS:
            self._title.append(text)
        if self._hidden_from is None:
            self._parts.append(text if self._preformatted else _SPACE.sub(" ", text))

    def close(self) -> None:
        self._end_block()

    def _end_block(self) -> None:
        if not self._parts:
            return
        text = "".join(self._parts)
        self._parts = []
        if not self._preformatted:
            text = "\n".join(" ".join(line.split()) for line in text.split("\n")).strip()
        if text.strip(" |\n"):
            self._done.append(DocumentBlock(text, self._level))


def _is_hidden(tag: str, attributes: Mapping[str, str]) -> bool:
    return (
        tag in _UNSEEN
        or "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or (tag == "dialog" and "open" not in attributes)
        or bool(_HIDING.search(attributes.get("style") or ""))
    )
