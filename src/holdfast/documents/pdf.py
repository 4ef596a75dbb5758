"""Reads PDF: the text of its pages. Scanned pages have none."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from pypdf import PasswordType, PdfReader
from pypdf.errors import DependencyError, PyPdfError

from holdfast.documents.blocks import DocumentBlock, ParsedDocument, build_document, paragraphs
from holdfast.errors import InvalidDocument

_END = 2048
# Rejoin words that were hyphenated at line ends.
_DIVIDED = re.compile(r"(?<=[^\W\d_])(?:\u00ad|(?<=[a-zß-ÿ])-)\n(?=[a-zß-ÿ])")


def read_pdf(content: bytes, max_characters: int) -> ParsedDocument:
    if b"startxref" not in content[-_END:]:
        raise InvalidDocument("content", "ends in the middle of the PDF; send the whole file")
    try:
        reader = PdfReader(io.BytesIO(content))
        _unlock(reader)
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


def _title(reader: PdfReader) -> str | None:
    return reader.metadata.title if reader.metadata is not None else None


def _blocks(reader: PdfReader) -> Iterator[DocumentBlock]:
    for page in reader.pages:
        for paragraph in paragraphs(page.extract_text()):
            yield DocumentBlock(_DIVIDED.sub("", paragraph))
