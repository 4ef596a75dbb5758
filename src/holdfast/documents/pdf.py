"""Reads PDF: the text of its pages, which are counted before any is read. Scanned pages have none."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from pypdf import PasswordType, PdfReader
from pypdf.errors import DependencyError, PyPdfError
from pypdf.generic import ArrayObject, DictionaryObject

from holdfast.documents.blocks import DocumentBlock, ParsedDocument, build_document, lines_of, paragraphs
from holdfast.errors import InvalidDocument

_END = 2048
# Two million characters, the most of a document, are fewer pages.
MAX_PAGES = 5_000
# Of the tree of pages, with the groups that hold them.
_MAX_NODES = 4 * MAX_PAGES
# Rejoin words that were hyphenated at line ends.
_DIVIDED = re.compile(r"(?<=[^\W\d_])(?:\u00ad|(?<=[a-zß-ÿ])-)\n(?=[a-zß-ÿ])")


def read_pdf(content: bytes, max_characters: int) -> ParsedDocument:
    if b"startxref" not in content[-_END:]:
        raise InvalidDocument("content", "ends in the middle of the PDF; send the whole file")
    try:
        reader = PdfReader(io.BytesIO(content))
        _unlock(reader)
        _check_pages(reader)
        return build_document(_title(reader), _blocks(reader), max_characters)
    except PyPdfError as error:
        kind = type(error).__name__
        raise InvalidDocument("content", f"is a damaged PDF ({kind}); print it to a new PDF and send that") from None


def _unlock(reader: PdfReader) -> None:
    """Decrypt with an empty password, which many PDFs have, only to forbid printing."""
    if not reader.is_encrypted:
        return
    problem = "is an encrypted PDF; remove its password and send it again"
    try:
        opened = reader.decrypt("")
    except DependencyError:
        raise InvalidDocument("content", problem) from None
    if opened is PasswordType.NOT_DECRYPTED:
        raise InvalidDocument("content", problem)


def _check_pages(reader: PdfReader) -> None:
    """Refuse a document with too many pages. Its own number of them may be wrong, so they are counted."""
    pages = nodes = 0
    waiting = [iter([reader.root_object.get("/Pages")])]
    while waiting:
        node = next(waiting[-1], None)
        if node is None:
            waiting.pop()
            continue
        node = node.get_object()
        kids = node.get("/Kids") if isinstance(node, DictionaryObject) else None
        kids = kids.get_object() if kids is not None else None
        nodes += 1
        pages += kids is None
        if pages > MAX_PAGES or nodes > _MAX_NODES:
            raise InvalidDocument("content", f"has more than {MAX_PAGES:,} pages; split it")
        if isinstance(kids, ArrayObject):
            waiting.append(iter(kids))


def _title(reader: PdfReader) -> str | None:
    return reader.metadata.title if reader.metadata is not None else None


def _blocks(reader: PdfReader) -> Iterator[DocumentBlock]:
    for page in reader.pages:
        for paragraph in paragraphs(lines_of(page.extract_text())):
            yield DocumentBlock(_DIVIDED.sub("", paragraph))
