"""Archives before they are opened: what one would become is read off its directory, and bombs are refused."""

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
# Small parts of styles and settings shrink far more than texts do, and harm nobody.
_RATIO_FROM_BYTES = 8 * MEGABYTE
_ENCRYPTED = 0x1
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError)
_MARKUP = (".xml", ".rels")
_DOCTYPE = re.compile(rb"<\x00?!\x00?D\x00?O\x00?C\x00?T\x00?Y\x00?P\x00?E")


def checked_archive(content: bytes) -> None:
    """Refuse an archive that would explode, by its size or by entities in its markup.

    A directory may lie: entries are never read beyond the size it names, so believing it is safe.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            _check_directory(entries, len(content))
            for entry in entries:
                # Office formats have no document types; only what defines entities needs one.
                if entry.filename.lower().endswith(_MARKUP) and _DOCTYPE.search(archive.read(entry)):
                    raise InvalidDocument("content", "defines entities in its XML, as no Word file does; save it anew")
    except DAMAGED as error:
        kind = type(error).__name__
        raise InvalidDocument("content", f"is a damaged Word file ({kind}); send it whole, or save it anew") from None


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
        raise InvalidDocument("content", f"grows more than {MAX_RATIO}-fold when it is unpacked; it is no document")
