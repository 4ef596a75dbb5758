"""Decodes bytes: Unicode by its BOM or as UTF-8; else the declared encoding; else Windows-1252."""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Iterable

from holdfast.errors import InvalidDocument

_MARKS = (  # longer ones first: the BOM of UTF-32 begins like that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Encodings used on the web. Not all of Python's codecs: some take quadratic time, some are not text.
_DECLARABLE = re.compile(
    r"utf-?8|us-ascii|ascii|iso-?8859-?(?:[1-9]|1[0-6])|latin-?1|windows-?(?:874|125[0-8])|cp125[0-8]|koi8-[ru]"
    r"|macintosh|shift[-_]jis|euc-(?:jp|kr)|gb2312|gbk|gb18030|big5(?:-hkscs)?"
)
_DECLARED_IN_HTML = re.compile(rb"""<meta[^>]{0,200}charset\s{0,9}=\s{0,9}["']?([\w-]{1,30})""", re.IGNORECASE)
_DECLARED_IN_TYPE = re.compile(r"""charset\s{0,9}=\s{0,9}["']?([\w-]{1,30})""", re.IGNORECASE)
_WESTERN = "cp1252"
_LOOKED_AT = 4096
_A_FEW = 4
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_HIGH_BYTES = bytes(range(0x80, 0x100))


def declared_encodings(content: bytes, media_type: str | None, *, html: bool) -> tuple[str, ...]:
    """Return the encodings that the sender and the page declare, without those that are not decoded here."""
    names = [found[1] for found in [_DECLARED_IN_TYPE.search(media_type or "")] if found]
    if html:
        names += [found[1].decode("ascii") for found in [_DECLARED_IN_HTML.search(content, 0, _LOOKED_AT)] if found]
    return tuple(_codec(name.lower()) for name in names if _DECLARABLE.fullmatch(name.lower()))


def load_codecs(names: Iterable[str]) -> None:
    """Load what `decode_text` needs from files."""
    for name in (*names, _WESTERN, *(name for _, name in _MARKS)):
        with contextlib.suppress(LookupError):
            codecs.lookup(name)


def decode_text(content: bytes, declared: Iterable[str]) -> str:
    """Decode the text, or raise `InvalidDocument` if it is none."""
    text = _as_unicode(content)
    if text is None:
        text = _as_declared(content, declared) or _as_western(content)
    if text is None or _is_binary(text):
        raise InvalidDocument(
            "content", "is not text that can be read; save it as UTF-8, or send it as HTML, PDF or DOCX if it is one"
        )
    return text


def _as_unicode(content: bytes) -> str | None:
    encoding = next((name for mark, name in _MARKS if content.startswith(mark)), "utf-8")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        return None


def _codec(name: str) -> str:
    # By the web's rules, Latin-1 means Windows-1252: its control bytes are quotes and dashes.
    return _WESTERN if re.fullmatch(r"iso-?8859-?1|latin-?1|(?:us-)?ascii", name) else name


def _as_declared(content: bytes, declared: Iterable[str]) -> str | None:
    for name in declared:
        with contextlib.suppress(UnicodeDecodeError, LookupError):
            return content.decode(name)
    return None


def _as_western(content: bytes) -> str | None:
    """Decode as Windows-1252 if most bytes are ASCII: other alphabets would decode to nonsense."""
    high = len(content) - len(content.translate(None, _HIGH_BYTES))
    if high * 4 > len(content):
        return None
    try:
        return content.decode(_WESTERN)
    except UnicodeDecodeError:
        return None


def _is_binary(text: str) -> bool:
    """True if it has a NUL, or more than a few other control characters."""
    return "\x00" in text or 100 * (sum(1 for _ in _CONTROL.finditer(text)) - _A_FEW) > len(text)
