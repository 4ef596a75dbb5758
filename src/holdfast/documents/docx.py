"""Reads DOCX: the text of its body, then of its notes. Headers, footers and comments are left out.

python-docx opens the package and reads the styles. The body is walked here, because python-docx's paragraph lists omit
tracked insertions, forms, tables of contents and text boxes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

import docx
from docx.document import Document
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.exceptions import OpcError
from docx.oxml.ns import qn
from docx.oxml.parser import parse_xml
from lxml import etree

from holdfast.documents.archive import DAMAGED, check_archive
from holdfast.documents.blocks import DEEPEST_HEADING, PARAGRAPH, DocumentBlock, ParsedDocument, build_document
from holdfast.errors import InvalidDocument

_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_P, _R, _T, _TR, _TC = qn("w:p"), qn("w:r"), qn("w:t"), qn("w:tr"), qn("w:tc")
_TBL, _PPR, _RPR = qn("w:tbl"), qn("w:pPr"), qn("w:rPr")
_SIGNS = {qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
# Tracked deletions and moved text, properties, and content that only repeats the text beside it.
_SKIPPED = {qn("w:del"), qn("w:moveFrom"), _PPR, _RPR, _FALLBACK, qn("w:instrText")}
_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_BETWEEN_CELLS = " | "


def read_docx(content: bytes, max_characters: int) -> ParsedDocument:
    check_archive(content)
    try:
        document = docx.Document(io.BytesIO(content))
        return build_document(document.core_properties.title, _blocks(document), max_characters)
    except (*DAMAGED, OpcError, KeyError, AttributeError, etree.XMLSyntaxError) as error:
        if getattr(error, "code", None) == etree.ErrorTypes.ERR_NO_MEMORY:
            raise MemoryError from None
        kind = type(error).__name__
        raise InvalidDocument("content", f"is a damaged Word file ({kind}); save it again as DOCX") from None


def _blocks(document: Document) -> Iterator[DocumentBlock]:
    levels = _heading_levels(document)
    yield from _walk_blocks(document.element.body, levels)
    for kind in (RELATIONSHIP_TYPE.FOOTNOTES, RELATIONSHIP_TYPE.ENDNOTES):
        for relation in document.part.rels.values():
            if relation.reltype == kind and not relation.is_external:
                yield from _walk_blocks(parse_xml(relation.target_part.blob), levels)


def _heading_levels(document: Document) -> dict[str, int]:
    """Map the ids of heading styles to their levels."""
    levels: dict[str, int] = {}
    if all(relation.reltype != RELATIONSHIP_TYPE.STYLES for relation in document.part.rels.values()):
        return levels  # the library would read its own styles from a file
    for style in document.styles.element.style_lst:
        found = _HEADING.fullmatch(style.name_val or "")
        if found or (style.name_val or "").lower() == "title":
            levels[style.styleId] = min(int(found[1]), DEEPEST_HEADING) if found else 1
    return levels


def _walk_blocks(element: etree._Element, levels: dict[str, int]) -> Iterator[DocumentBlock]:
    """Yield its paragraphs and rows in order. Recursion is bounded by the parser's nesting limit, 256."""
    for child in element:
        if child.tag == _P:
            text, boxes = _paragraph(child)
            yield DocumentBlock(text, levels.get(_style(child), PARAGRAPH))
            for box in boxes:
                yield from _walk_blocks(box, levels)
        elif child.tag == _TR:
            yield DocumentBlock(_row(child))
        elif child.tag not in _SKIPPED:
            yield from _walk_blocks(child, levels)


def _row(row: etree._Element) -> str:
    cells = (cell for cell in row.iter(_TC) if next(cell.iterancestors(_TR)) is row)
    texts = (" ".join(block.text for block in _walk_blocks(cell, {}) if block.text.strip()) for cell in cells)
    return _BETWEEN_CELLS.join(text for text in texts if text)


def _style(paragraph: etree._Element) -> str:
    found = paragraph.find(f"{_PPR}/{qn('w:pStyle')}")
    return "" if found is None else found.get(qn("w:val")) or ""


def _paragraph(paragraph: etree._Element) -> tuple[str, list[etree._Element]]:
    """Its text, and the text boxes anchored to it."""
    parts: list[str] = []
    boxes: list[etree._Element] = []
    waiting = list(reversed(paragraph))
    while waiting:
        element = waiting.pop()
        if element.tag == _T:
            parts.append(element.text or "")
        elif element.tag in _SIGNS:
            parts.append(_SIGNS[element.tag])
        elif element.tag == qn("w:txbxContent"):
            boxes.append(element)
        elif element.tag not in _SKIPPED and not _is_hidden(element):
            waiting.extend(reversed(element))
    return "".join(parts), boxes


def _is_hidden(element: etree._Element) -> bool:
    """True if it is a run with hidden text."""
    if element.tag != _R:
        return False
    found = element.find(f"{_RPR}/{qn('w:vanish')}")
    return found is not None and found.get(qn("w:val")) not in ("0", "false", "off")
