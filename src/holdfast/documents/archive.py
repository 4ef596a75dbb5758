"""Checks ZIP archives before they are unpacked: reads sizes from the directory, and refuses ZIP bombs."""

from __future__ import annotations

import io
import re
import zipfile
import zlib

from holdfast.documents.limits import MEGABYTE
from holdfast.errors import InvalidDocument

MAX_ENTRIES = 4_000
MAX_UNPACKED_BYTES = 128 * MEGABYTE
MAX_MARKUP_BYTES = 48 * MEGABYTE
MAX_RATIO = 200
# Small parts for styles and settings compress far better than text, and are harmless.
_RATIO_FROM_BYTES = 8 * MEGABYTE
_ENCRYPTED = 0x1
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError)
_MARKUP = (".xml", ".rels")
_DOCTYPE = re.compile(rb"<\x00?!\x00?D\x00?O\x00?C\x00?T\x00?Y\x00?P\x00?E")


def check_archive(content: bytes) -> None:
    """Refuse an archive that would expand too far, by its size or by XML entities.

    Its directory may be wrong, but entries are never read beyond the size it names, so trusting it is safe.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            _check_directory(entries, len(content))
            for entry in entries:
                # Office formats have no DOCTYPE; only entity definitions need one.
                if entry.filename.lower().endswith(_MARKUP) and _DOCTYPE.search(archive.read(entry)):
                    raise InvalidDocument("content", "defines XML entities, which no Word file does; save it again")
    except DAMAGED as error:
        kind = type(error).__name__
        raise InvalidDocument(
            "content", f"is a damaged Word file ({kind}); send the whole file, or save it again"
        ) from None


def _check_directory(entries: list[zipfile.ZipInfo], packed: int) -> None:
    unpacked = sum(entry.file_size for entry in entries)
    markup = sum(entry.file_size for entry in entries if entry.filename.lower().endswith(_MARKUP))
    if len(entries) > MAX_ENTRIES:
        raise InvalidDocument("content", f"holds {len(entries):,} files; a Word file has at most {MAX_ENTRIES:,}")
    if any(entry.flag_bits & _ENCRYPTED for entry in entries):
        raise InvalidDocument("content", "is encrypted; remove its password and send it again")
    if unpacked > MAX_UNPACKED_BYTES or markup > MAX_MARKUP_BYTES:
        size = f"{unpacked // MEGABYTE:,} MB unpacked, {markup // MEGABYTE:,} of it text"
        most = f"{MAX_UNPACKED_BYTES // MEGABYTE} and {MAX_MARKUP_BYTES // MEGABYTE}"
        raise InvalidDocument("content", f"is {size}; at most {most} are read: split the document")
    if unpacked > _RATIO_FROM_BYTES and unpacked > MAX_RATIO * packed:
        raise InvalidDocument("content", f"grows more than {MAX_RATIO}-fold when unpacked, which no document does")
