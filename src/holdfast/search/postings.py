"""The inverted index in memory: packed terms as stored with a record, and postings built from them.

Postings grow by immutable segments; postings of dead rows are dropped when a view is rebuilt.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.domain.ranking import IntArray
from holdfast.ports import TERM_BYTES

HashArray = NDArray[np.uint64]
SmallArray = NDArray[np.int32]

MAX_COUNT = 65_535
_HASH_BYTES = 8
# Segments are merged while the older is less than this many times larger than the newer: a lookup reads few segments,
# and each entry is moved only a few times.
_MERGE_RATIO = 4


def pack_terms(counts: Mapping[int, int]) -> bytes:
    """Pack term hashes (u64, little-endian), then their counts (u16), for storage with a record."""
    size = len(counts)
    capped = [count if count < MAX_COUNT else MAX_COUNT for count in counts.values()]
    return struct.pack(f"<{size}Q{size}H", *counts.keys(), *capped)


def unpack_terms(packed: bytes) -> dict[int, int]:
    size = len(packed) // TERM_BYTES
    values = struct.unpack(f"<{size}Q{size}H", packed)
    return dict(zip(values[:size], values[size:], strict=True))


@dataclass(frozen=True, slots=True)
class Segment:
    """Postings sorted by hash: those of `hashes[i]` are at `starts[i]` to `starts[i + 1]`."""

    hashes: HashArray
    starts: IntArray
    records: SmallArray
    counts: NDArray[np.uint16]

    @classmethod
    def of(cls, hashes: HashArray, records: SmallArray, counts: NDArray[np.uint16]) -> Segment:
        # A stable sort is fast here: common terms repeat, and merged segments are already sorted.
        order = np.argsort(hashes, kind="stable")
        return cls._from_sorted(hashes[order], records[order], counts[order])

    @classmethod
    def _from_sorted(cls, hashes: HashArray, records: SmallArray, counts: NDArray[np.uint16]) -> Segment:
        first = np.ones(len(hashes), bool)
        np.not_equal(hashes[1:], hashes[:-1], out=first[1:])
        starts = np.append(np.flatnonzero(first), len(hashes))
        return cls(hashes[first], starts, records, counts)

    def renumber(self, moved: SmallArray) -> Segment:
        """Renumber records by `moved`; drop those that it maps to -1."""
        records = moved[self.records]
        keep = records >= 0
        return self._from_sorted(self._hash_per_posting()[keep], records[keep], self.counts[keep])

    def merge(self, other: Segment) -> Segment:
        return Segment.of(
            np.concatenate((self._hash_per_posting(), other._hash_per_posting())),
            np.concatenate((self.records, other.records)),
            np.concatenate((self.counts, other.counts)),
        )

    def _hash_per_posting(self) -> HashArray:
        return np.repeat(self.hashes, np.diff(self.starts))

    @property
    def bytes(self) -> int:
        return self.hashes.nbytes + self.starts.nbytes + self.records.nbytes + self.counts.nbytes


@dataclass(frozen=True, slots=True)
class Postings:
    """Maps a term to its records and counts: a few sorted segments, the oldest and largest first."""

    segments: tuple[Segment, ...] = ()

    def with_segment(self, segment: Segment) -> Postings:
        if not len(segment.records):
            return self  # from texts without words; an empty segment would never be merged
        segments = list(self.segments)
        while segments and len(segments[-1].records) < _MERGE_RATIO * len(segment.records):
            segment = segments.pop().merge(segment)
        return Postings((*segments, segment))

    def renumber(self, moved: SmallArray) -> Postings:
        return Postings(tuple(segment.renumber(moved) for segment in self.segments))

    def lookup(self, term: int) -> tuple[IntArray, IntArray]:
        """The records that contain a term, and their counts."""
        _, records, counts = self.lookup_all(np.array([term], np.uint64))
        return records.astype(np.int64), counts.astype(np.int64)

    def lookup_all(self, terms: HashArray) -> tuple[IntArray, SmallArray, NDArray[np.uint16]]:
        """Look up several terms: the term's index in `terms`, the record and the count of each posting."""
        which: list[int] = []
        sizes: list[int] = []
        records: list[SmallArray] = []
        counts: list[NDArray[np.uint16]] = []
        for segment in self.segments:
            found = np.searchsorted(segment.hashes, terms)
            for place, at in enumerate(found.tolist()):
                if at < len(segment.hashes) and segment.hashes[at] == terms[place]:
                    start, end = segment.starts[at : at + 2].tolist()
                    which.append(place)
                    sizes.append(end - start)
                    records.append(segment.records[start:end])
                    counts.append(segment.counts[start:end])
        if not which:
            return np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.uint16)
        return np.repeat(which, sizes), np.concatenate(records), np.concatenate(counts)

    @property
    def bytes(self) -> int:
        return sum(segment.bytes for segment in self.segments)


def segment_of(terms: Sequence[bytes], base: int) -> Segment:
    """The postings of new rows with these packed terms; the first row gets the number `base`."""
    sizes = [len(packed) // TERM_BYTES for packed in terms]
    both = list(zip(terms, sizes, strict=True))
    hashes = b"".join([packed[: size * _HASH_BYTES] for packed, size in both])
    counts = b"".join([packed[size * _HASH_BYTES : size * TERM_BYTES] for packed, size in both])
    records = np.repeat(np.arange(base, base + len(terms), dtype=np.int32), sizes)
    return Segment.of(np.frombuffer(hashes, "<u8"), records, np.frombuffer(counts, "<u2"))
