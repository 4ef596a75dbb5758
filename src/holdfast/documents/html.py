"""Reads HTML: the visible text of the page. Scripts, styles and hidden elements are left out.

The tree is walked without recursion, so that deep nesting costs only time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from holdfast.documents.blocks import PARAGRAPH, DocumentBlock, ParsedDocument, build_document
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
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_HIDING = re.compile(r"display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden", re.IGNORECASE)
_SPACE = re.compile(r"[ \t\n\f\r]+")
_BETWEEN_CELLS = " | "
# Elements that need an end tag. The parser takes quadratic time in their depth.
_NESTING = re.compile(
    r"<(/?)(?:div|span|section|article|aside|main|nav|header|footer|blockquote|[uod]l|table|details|figure|form|fieldset"
    r"|pre|code|center|font|big|small|strong|em|sub|sup|[abiqsu])[\s>]",
    re.IGNORECASE,
)
MAX_DEPTH = 4_000


def read_html(text: str, max_characters: int) -> ParsedDocument:
    if _is_too_deep(text):
        raise InvalidDocument("content", f"nests elements more than {MAX_DEPTH:,} deep, which no page does")
    page = LexborHTMLParser(text)
    title = page.css_first("title")
    blocks = _BlockCollector().blocks(page.root) if page.root is not None else iter(())
    return build_document(title.text() if title is not None else None, blocks, max_characters)


def _is_too_deep(text: str) -> bool:
    depth = 0
    for tag in _NESTING.finditer(text):
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth > MAX_DEPTH:
            return True
    return False


class _BlockCollector:
    """Collects blocks from a page. Holds the current block's text and heading level."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._level = PARAGRAPH
        self._preformatted = 0

    def blocks(self, root: LexborNode) -> Iterator[DocumentBlock]:
        node: LexborNode | None = root
        ancestors: list[tuple[LexborNode, str]] = []
        while node is not None:
            tag = node.tag or ""
            below = None
            if node.is_text_node:
                self._take(node.text_content or "")
            elif node.is_element_node and not _is_hidden(node, tag):
                yield from self._enter(tag)
                below = node.child
                if below is None:
                    yield from self._leave(tag)
                else:
                    ancestors.append((node, tag))
            node = below or node.next
            while node is None and ancestors:
                left, tag = ancestors.pop()
                yield from self._leave(tag)
                node = left.next
        yield from self._end_block()

    def _enter(self, tag: str) -> Iterator[DocumentBlock]:
        if tag == "br":
            self._parts.append("\n")
        elif tag in _CELLS:
            if self._parts:
                self._parts.append(_BETWEEN_CELLS)
        elif tag in _BLOCKS or tag in _HEADINGS:
            yield from self._end_block()
            self._level = _HEADINGS.get(tag, PARAGRAPH)
            self._preformatted += tag == "pre"

    def _leave(self, tag: str) -> Iterator[DocumentBlock]:
        if tag in _BLOCKS or tag in _HEADINGS:
            yield from self._end_block()
            self._level = PARAGRAPH
            self._preformatted -= tag == "pre"

    def _take(self, text: str) -> None:
        self._parts.append(text if self._preformatted else _SPACE.sub(" ", text))

    def _end_block(self) -> Iterator[DocumentBlock]:
        if not self._parts:
            return
        text = "".join(self._parts)
        self._parts = []
        if not self._preformatted:
            text = "\n".join(" ".join(line.split()) for line in text.split("\n")).strip()
        if text.strip(" |\n"):
            yield DocumentBlock(text, self._level)


def _is_hidden(node: LexborNode, tag: str) -> bool:
    if tag in _UNSEEN:
        return True
    attributes = node.attributes
    return bool(attributes) and (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or (tag == "dialog" and "open" not in attributes)
        or bool(_HIDING.search(attributes.get("style") or ""))
    )
