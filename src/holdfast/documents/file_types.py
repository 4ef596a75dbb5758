"""Detects a file's type: by its first bytes, then by its declared media type, then by its name. Never parses it."""

from __future__ import annotations

import re
from enum import StrEnum

from holdfast.errors import InvalidDocument


class FileType(StrEnum):
    """The file types that can be read. The value is the media type."""

    TEXT = "text/plain"
    MARKDOWN = "text/markdown"
    HTML = "text/html"
    PDF = "application/pdf"
    DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


NAMES = {
    FileType.TEXT: "plain text",
    FileType.MARKDOWN: "markdown",
    FileType.HTML: "HTML",
    FileType.PDF: "a PDF",
    FileType.DOCX: "a Word file (DOCX)",
}
READABLE = "text, markdown, HTML, PDF or DOCX"
_BY_SUFFIX = {
    "txt": FileType.TEXT, "text": FileType.TEXT, "log": FileType.TEXT,
    "md": FileType.MARKDOWN, "markdown": FileType.MARKDOWN,
    "html": FileType.HTML, "htm": FileType.HTML, "xhtml": FileType.HTML, "pdf": FileType.PDF, "docx": FileType.DOCX,
}  # fmt: skip
_SAID = {
    **{str(kind): kind for kind in FileType},
    "text/x-markdown": FileType.MARKDOWN, "application/xhtml+xml": FileType.HTML, "application/x-pdf": FileType.PDF,
    "application/json": FileType.TEXT, "application/xml": FileType.TEXT, "application/yaml": FileType.TEXT,
    "application/x-yaml": FileType.TEXT, "application/toml": FileType.TEXT,
}  # fmt: skip
# Media types that senders use when they do not know the type.
_UNKNOWN = {"", "application/octet-stream", "binary/octet-stream", "application/x-www-form-urlencoded", "*/*"}
_TEXTS = {FileType.TEXT, FileType.MARKDOWN, FileType.HTML}
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


def detect_type(content: bytes, media_type: str | None, name: str) -> FileType:
    """Detect the type, or raise `InvalidDocument` if it cannot be read or contradicts the media type."""
    declared = _declared_type(media_type)
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
    if declared in (None, FileType.TEXT) and by_name in _TEXTS:
        return by_name
    if declared is not None:
        return declared
    return FileType.HTML if _HTML.match(content.removeprefix(b"\xef\xbb\xbf")) else FileType.TEXT


def _by_magic(content: bytes) -> FileType | None:
    at = content.find(b"%PDF-", 0, _PDF_WITHIN)
    # Some writers put bytes before the header; a text that only mentions it does not end like a PDF.
    if at >= 0 and (not content[:at].strip(b"\xef\xbb\xbf \t\r\n\x00") or b"startxref" in content[-_PDF_END:]):
        return FileType.PDF
    if content.startswith(b"PK\x03\x04") and b"[Content_Types].xml" in content and b"word/" in content:
        return FileType.DOCX
    for magic, what in _REFUSED:
        if content.startswith(magic):
            raise InvalidDocument("content", f"is {what}; supported are {READABLE}")
    return None


def _declared_type(media_type: str | None) -> FileType | None:
    declared = (media_type or "").partition(";")[0].strip().lower()
    if declared in _UNKNOWN:
        return None
    if kind := _SAID.get(declared):
        return kind
    if declared.startswith("text/") and declared != "text/rtf":
        return FileType.TEXT
    raise InvalidDocument("media_type", f"there is no reader for {declared!r:.80}; supported are {READABLE}")


def _mismatch(field: str, declared: FileType | None, problem: str) -> InvalidDocument:
    what = NAMES[declared] if declared else "something else"
    return InvalidDocument(field, f"promises {what}, but the content {problem}")
