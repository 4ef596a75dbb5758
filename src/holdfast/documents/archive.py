"""Checks ZIP archives before they are unpacked: reads sizes from the directory, and refuses ZIP bombs."""

from __future__ import annotations

import contextlib
import io
import zipfile
import zlib
from typing import IO

from lxml import etree

from holdfast.documents.limits import MEGABYTE
from holdfast.errors import InvalidDocument

MAX_ENTRIES = 4_000
MAX_UNPACKED_BYTES = 128 * MEGABYTE
MAX_MARKUP_BYTES = 48 * MEGABYTE
MAX_RATIO = 200
# Small parts for styles and settings compress far better than text, and are harmless.
_RATIO_FROM_BYTES = 8 * MEGABYTE
_ENCRYPTED = 0x1
_PIECE_BYTES = 64 * 1024
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError)


def check_archive(content: bytes) -> None:
    """Refuse an archive that would expand too far, by its size or by XML entities.

    Its directory may be wrong, but entries are never read beyond the size it names, so trusting it is safe.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            _check_directory(entries, len(content))
            # A part is parsed by its relation to others, whatever its name is.
            markup = sum(entry.file_size for entry in entries if _is_markup(archive.open(entry)))
    except DAMAGED as error:
        kind = type(error).__name__
        raise InvalidDocument(
            "content", f"is a damaged Word file ({kind}); send the whole file, or save it again"
        ) from None
    if markup > MAX_MARKUP_BYTES:
        size, most = markup // MEGABYTE, MAX_MARKUP_BYTES // MEGABYTE
        raise InvalidDocument(
            "content", f"is {size:,} MB of text unpacked; at most {most} are read: split the document"
        )


def _is_markup(part: IO[bytes]) -> bool:
    """True if its parser takes a part for XML, whatever its name and encoding are."""
    beginning = _Beginning()
    parser = etree.XMLParser(target=beginning, resolve_entities=False, no_network=True)
    with part, contextlib.suppress(etree.XMLSyntaxError):
        while not beginning.has_element and (piece := part.read(_PIECE_BYTES)):
            parser.feed(piece)
    return beginning.has_element


class _Beginning:
    """Collects what a parser reports of a part's beginning."""

    has_element = False

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        # Office formats have none; only entity definitions need one.
        raise InvalidDocument("content", "defines XML entities, which no Word file does; save it again")

    def start(self, tag: str, attributes: object) -> None:
        self.has_element = True

    def close(self) -> None:
        """Do nothing: nothing is built."""


def _check_directory(entries: list[zipfile.ZipInfo], packed: int) -> None:
    unpacked = sum(entry.file_size for entry in entries)
    if len(entries) > MAX_ENTRIES:
        raise InvalidDocument("content", f"holds {len(entries):,} files; a Word file has at most {MAX_ENTRIES:,}")
    if any(entry.flag_bits & _ENCRYPTED for entry in entries):
        raise InvalidDocument("content", "is encrypted; remove its password and send it again")
    if unpacked > MAX_UNPACKED_BYTES:
        size, most = unpacked // MEGABYTE, MAX_UNPACKED_BYTES // MEGABYTE
        raise InvalidDocument("content", f"is {size:,} MB unpacked; at most {most} are read: split the document")
    if unpacked > _RATIO_FROM_BYTES and unpacked > MAX_RATIO * packed:
        raise InvalidDocument("content", f"grows more than {MAX_RATIO}-fold when unpacked, which no document does")
