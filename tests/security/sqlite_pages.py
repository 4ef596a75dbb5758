"""Where live bytes are in a SQLite file: headers, cell pointers, cells and overflow pages of all b-trees."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

_FILE_HEADER = 100  # of page 1: facts about the file, and no record
_LEAVES, _INDEXES = (10, 13), (2, 10)


class LivePages:
    """Ranges of live bytes by page number. Unused parts of pages, and pages of the freelist, are not in it."""

    def __init__(self, path: Path) -> None:
        self._raw = path.read_bytes()
        self._size = struct.unpack_from(">H", self._raw, 16)[0]
        self._usable = self._size - self._raw[20]
        self.ranges: dict[int, list[tuple[int, int]]] = {}
        with closing(sqlite3.connect(path)) as database:
            roots = [root for (root,) in database.execute("SELECT rootpage FROM sqlite_master WHERE rootpage > 0")]
        for root in [1, *roots]:
            self._walk(root)

    def bytes_of(self, page: int) -> list[int]:
        """Return the offsets in the file of the live bytes of a page."""
        return [offset for start, end in self.ranges[page] for offset in range(start, end)]

    def _walk(self, page: int) -> None:
        base = (page - 1) * self._size
        head = base + (_FILE_HEADER if page == 1 else 0)
        kind = self._raw[head]
        length = 8 if kind in _LEAVES else 12
        (count,) = struct.unpack_from(">H", self._raw, head + 3)
        pointers = head + length
        ranges = [(head, pointers + 2 * count)]
        for place in range(count):
            (offset,) = struct.unpack_from(">H", self._raw, pointers + 2 * place)
            at = base + offset
            end, child = self._cell(at, kind)
            ranges.append((at, end))
            if child:
                self._walk(child)
        self.ranges[page] = ranges
        if kind not in _LEAVES:
            self._walk(struct.unpack_from(">I", self._raw, head + 8)[0])

    def _cell(self, at: int, kind: int) -> tuple[int, int]:
        """Return the end of a cell on its page, and the child page. Overflow pages are noted."""
        child = 0
        if kind not in _LEAVES:
            (child,) = struct.unpack_from(">I", self._raw, at)
            at += 4
        if kind == 5:
            return self._varint(at)[1], child
        payload, at = self._varint(at)
        if kind == 13:
            at = self._varint(at)[1]
        local = self._local(payload, kind)
        if local == payload:
            return at + local, child
        (overflow,) = struct.unpack_from(">I", self._raw, at + local)
        for page, used in self._overflow(overflow, payload - local):
            start = (page - 1) * self._size
            self.ranges[page] = [(start, start + 4 + used)]
        return at + local + 4, child

    def _local(self, payload: int, kind: int) -> int:
        usable = self._usable
        most = (usable - 12) * 64 // 255 - 23 if kind in _INDEXES else usable - 35
        if payload <= most:
            return payload
        least = (usable - 12) * 32 // 255 - 23
        local = least + (payload - least) % (usable - 4)
        return local if local <= most else least

    def _overflow(self, page: int, rest: int) -> Iterator[tuple[int, int]]:
        while rest:
            used = min(rest, self._usable - 4)
            yield page, used
            rest -= used
            (page,) = struct.unpack_from(">I", self._raw, (page - 1) * self._size)

    def _varint(self, at: int) -> tuple[int, int]:
        value = 0
        for place in range(8):
            byte = self._raw[at + place]
            value = value << 7 | byte & 0x7F
            if byte < 0x80:
                return value, at + place + 1
        return value << 8 | self._raw[at + 8], at + 9
