"""Detects a file's type: by its first bytes, then by its declared media type, then by its name. Never parses it."""

from __future__ import annotations

import re
from enum import StrEnum

from holdfast.errors import InvalidDocument


class Kind(StrEnum):
    """The file types that can be read. The value is the media type."""

    TEXT = "text/plain"
    MARKDOWN = "text/markdown"
    HTML = "text/html"
    PDF = "application/pdf"
    DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


NAMES = {
    Kind.TEXT: "plain text",
    Kind.MARKDOWN: "markdown",
    Kind.HTML: "HTML",
    Kind.PDF: "a PDF",
    Kind.DOCX: "a Word file (DOCX)",
}
READABLE = "text, markdown, HTML, PDF or DOCX"
_BY_SUFFIX = {
    "txt": Kind.TEXT, "text": Kind.TEXT, "log": Kind.TEXT, "md": Kind.MARKDOWN, "markdown": Kind.MARKDOWN,
    "html": Kind.HTML, "htm": Kind.HTML, "xhtml": Kind.HTML, "pdf": Kind.PDF, "docx": Kind.DOCX,
}  # fmt: skip
_SAID = {
    **{str(kind): kind for kind in Kind},
    "text/x-markdown": Kind.MARKDOWN, "application/xhtml+xml": Kind.HTML, "application/x-pdf": Kind.PDF,
    "application/json": Kind.TEXT, "application/xml": Kind.TEXT, "application/yaml": Kind.TEXT,
    "application/x-yaml": Kind.TEXT, "application/toml": Kind.TEXT,
}  # fmt: skip
# Media types that senders use when they do not know the type.
_UNKNOWN = {"", "application/octet-stream", "binary/octet-stream", "application/x-www-form-urlencoded", "*/*"}
_TEXTS = {Kind.TEXT, Kind.MARKDOWN, Kind.HTML}
# No text begins with any of these.
_REFUSED: tuple[tuple[bytes, str], ...] = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file, or one with a password: save it as DOCX without one"),
    (b"{\\rtf", "an RTF file: save it as DOCX"),
    (b"PK\x03\x04", "an archive: unpack it and send the files in it"),
    (b"PK\x05\x06", "an empty archive"),
    (b"PK\x07\x08", "a part of an archive: unpack it and send the files in it"),
    (b"\x1f\x8b", "a gzip archive: unpack it"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it"),
    (b"Rar!\x1a\x07", "a RAR archive: unpack it"),
    (b"\xfd7zXZ", "an xz archive: unpack it"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive: unpack it"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\x00", "a database"),
)
_PDF_WITHIN = 1024
_PDF_END = 2048
_HTML = re.compile(
    rb"\s{0,100}(?:<\?xml[^>]{0,200}>\s{0,100})?<(?:!doctype\s{1,9}html|html|head|body)[\s>]", re.IGNORECASE
)


def kind_of(content: bytes, media_type: str | None, name: str) -> Kind:
    """Detect the type, or raise `InvalidDocument` if it cannot be read or contradicts the media type."""
    declared = _said(media_type)
    by_name = _BY_SUFFIX.get(name.rpartition(".")[2].lower()) if "." in name else None
    if found := _by_magic(content):
        if declared not in (None, found):
            raise _mismatch("media_type", declared, f"is {NAMES[found]}; correct the media type, or leave it out")
        return found
    if declared is not None and declared not in _TEXTS:
        raise _mismatch("media_type", declared, "is none; send the file itself, whole and unchanged")
    if declared is None and by_name is not None and by_name not in _TEXTS:
        raise _mismatch("name", by_name, "is none; send the file itself, whole and unchanged")
    # Many senders declare every text as plain; its name may be more specific.
    if declared in (None, Kind.TEXT) and by_name in _TEXTS:
        return by_name
    if declared is not None:
        return declared
    return Kind.HTML if _HTML.match(content.removeprefix(b"\xef\xbb\xbf")) else Kind.TEXT


def _by_magic(content: bytes) -> Kind | None:
    at = content.find(b"%PDF-", 0, _PDF_WITHIN)
    # Some writers put bytes before the header; a text that only mentions it does not end like a PDF.
    if at >= 0 and (not content[:at].strip(b"\xef\xbb\xbf \t\r\n\x00") or b"startxref" in content[-_PDF_END:]):
        return Kind.PDF
    if content.startswith(b"PK\x03\x04") and b"[Content_Types].xml" in content and b"word/" in content:
        return Kind.DOCX
    for magic, what in _REFUSED:
        if content.startswith(magic):
            raise InvalidDocument("content", f"is {what}; supported are {READABLE}")
    return None


def _said(media_type: str | None) -> Kind | None:
    declared = (media_type or "").partition(";")[0].strip().lower()
    if declared in _UNKNOWN:
        return None
    if kind := _SAID.get(declared):
        return kind
    if declared.startswith("text/") and declared != "text/rtf":
        return Kind.TEXT
    raise InvalidDocument("media_type", f"there is no reader for {declared!r:.80}; supported are {READABLE}")


def _mismatch(field: str, declared: Kind | None, problem: str) -> InvalidDocument:
    what = NAMES[declared] if declared else "something else"
    return InvalidDocument(field, f"promises {what}, but the content {problem}")
