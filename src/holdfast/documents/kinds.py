"""What a file is: by its first bytes, then by what was said of it, then by its name. It never opens it."""

from __future__ import annotations

import re
from enum import StrEnum

from holdfast.errors import InvalidDocument


class Kind(StrEnum):
    """What can be read. The value is its media type."""

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
# What senders say when they do not know.
_UNKNOWN = {"", "application/octet-stream", "binary/octet-stream", "application/x-www-form-urlencoded", "*/*"}
_TEXTS = {Kind.TEXT, Kind.MARKDOWN, Kind.HTML}
# None of these is how a text begins, whatever it is about.
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
    """What it is, or `InvalidDocument`: it is nothing that can be read, or not what was said."""
    said = _said(media_type)
    by_name = _BY_SUFFIX.get(name.rpartition(".")[2].lower()) if "." in name else None
    if found := _by_magic(content):
        if said not in (None, found):
            raise _mismatch("media_type", said, f"is {NAMES[found]}; say so, or leave the media type out")
        return found
    if said is not None and said not in _TEXTS:
        raise _mismatch("media_type", said, "is none; send the file itself, whole and unchanged")
    if said is None and by_name is not None and by_name not in _TEXTS:
        raise _mismatch("name", by_name, "is none; send the file itself, whole and unchanged")
    # Many senders call every text plain; its name may know better.
    if said in (None, Kind.TEXT) and by_name in _TEXTS:
        return by_name
    if said is not None:
        return said
    return Kind.HTML if _HTML.match(content.removeprefix(b"\xef\xbb\xbf")) else Kind.TEXT


def _by_magic(content: bytes) -> Kind | None:
    at = content.find(b"%PDF-", 0, _PDF_WITHIN)
    # Some writers put something before it; a text that only speaks of it does not end like a PDF.
    if at >= 0 and (not content[:at].strip(b"\xef\xbb\xbf \t\r\n\x00") or b"startxref" in content[-_PDF_END:]):
        return Kind.PDF
    if content.startswith(b"PK\x03\x04") and b"[Content_Types].xml" in content and b"word/" in content:
        return Kind.DOCX
    for magic, what in _REFUSED:
        if content.startswith(magic):
            raise InvalidDocument("content", f"is {what}; what can be read is {READABLE}")
    return None


def _said(media_type: str | None) -> Kind | None:
    said = (media_type or "").partition(";")[0].strip().lower()
    if said in _UNKNOWN:
        return None
    if kind := _SAID.get(said):
        return kind
    if said.startswith("text/") and said != "text/rtf":
        return Kind.TEXT
    raise InvalidDocument("media_type", f"there is no reader for {said!r:.80}; {READABLE} can be read")


def _mismatch(field: str, said: Kind | None, problem: str) -> InvalidDocument:
    what = NAMES[said] if said else "something else"
    return InvalidDocument(field, f"promises {what}, but the content {problem}")
