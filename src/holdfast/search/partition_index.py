"""The indexes of a partition in memory: an inverted index of terms, and vectors.

Postings grow by immutable segments; postings of dead rows are dropped when a view is rebuilt. Vectors have a row per
piece of a text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from holdfast.domain.ranking import BoolArray, FloatArray, HalfArray, IntArray
from holdfast.ports import TERM_BYTES, VectorBlock, VectorRow, columns_of

HashArray = NDArray[np.uint64]
SmallArray = NDArray[np.int32]

_HASH_BYTES = 8
# Segments are merged while the older is less than this many times larger than the newer: a lookup reads few segments,
# and each entry is moved only a few times.
_MERGE_RATIO = 4


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


def segment_of(terms: Sequence[bytes], base: int) -> Segment:
    """The postings of new rows with these packed terms; the first row gets the number `base`."""
    sizes = [len(packed) // TERM_BYTES for packed in terms]
    both = list(zip(terms, sizes, strict=True))
    hashes = b"".join([packed[: size * _HASH_BYTES] for packed, size in both])
    counts = b"".join([packed[size * _HASH_BYTES : size * TERM_BYTES] for packed, size in both])
    records = np.repeat(np.arange(base, base + len(terms), dtype=np.int32), sizes)
    return Segment.of(np.frombuffer(hashes, "<u8"), records, np.frombuffer(counts, "<u2"))


@dataclass(frozen=True, slots=True)
class Vectors:
    """Unit vectors, a row per piece of a text; a text of several pieces has one more row, for the whole.

    `whole[i]` is the row of record i's whole text, -1 if it has none. `many` are the records with several pieces,
    whose rows are from `first` up to `last`, exclusive.
    """

    rows: FloatArray
    whole: IntArray
    many: IntArray
    first: IntArray
    last: IntArray

    @property
    def index_bytes(self) -> int:
        """Bytes besides those of `rows`."""
        return self.whole.nbytes + self.many.nbytes + self.first.nbytes + self.last.nbytes


NO_VECTORS = Vectors(
    np.empty((0, 0), np.float32),
    *(np.empty(0, np.int64) for _ in range(4)),
)


def _unit(rows: FloatArray) -> FloatArray:
    """Normalize the rows in place."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    with np.errstate(invalid="ignore"):
        rows /= np.maximum(lengths, np.float32(1e-12))
    # Damaged bytes may read as NaN or infinity: use zeros instead, because such scores cannot be compared.
    rows[~np.isfinite(lengths[:, 0])] = 0
    return rows


def read_vectors(given: Sequence[VectorRow], numbers: IntArray) -> Vectors:
    """Read the vectors of records with these numbers, in this order."""
    # A model replaced under the same name, or damage, leaves vectors of different lengths. Only the most common length
    # is compared, the newest on a tie; records with another length are found by words only.
    number, piece, vector = columns_of(given) if given else ((), (), ())
    if (usual := _usual_length(vector)) is None:
        return replace(NO_VECTORS, whole=np.full(len(numbers), -1, np.int64))
    if set(map(len, vector)) != {usual}:
        number, piece, vector = columns_of([row for row in given if len(row.vector) == usual])
    rows = np.frombuffer(b"".join(vector), "<f2").reshape(len(vector), -1)
    owner = _places(np.array(number, np.int64), numbers)
    pieces = np.array(piece, np.int64)
    if np.any((np.diff(owner) < 0) | ((np.diff(owner) == 0) & (np.diff(pieces) < 0))):
        sequence = np.lexsort((pieces, owner))
        rows, owner = rows[sequence], owner[sequence]
    return _arrange_rows(rows, owner, len(numbers))


def _usual_length(vectors: Sequence[bytes]) -> int | None:
    lengths = Counter(map(len, reversed(vectors)))
    return max((length for length in lengths if length and length % 2 == 0), key=lengths.__getitem__, default=None)


def has_other_length(vectors: Vectors, given: Sequence[VectorRow]) -> bool:
    """True if some new vectors have another length: then the view must be rebuilt to choose the most common one."""
    return len(vectors.rows) > 0 and any(len(row.vector) != 2 * vectors.rows.shape[1] for row in given)


def block_vectors(block: VectorBlock, numbers: IntArray) -> Vectors:
    """Convert vectors from an index, which must all belong to these records."""
    owner = _places(block.numbers, numbers)
    rows = block.rows
    if np.any(np.diff(owner) < 0):
        sequence = np.argsort(owner, kind="stable")
        rows, owner = rows[sequence], owner[sequence]
    return _arrange_rows(rows, owner, len(numbers))


def _places(wanted: IntArray, numbers: IntArray) -> IntArray:
    order = np.argsort(numbers, kind="stable")
    places: IntArray = order[np.searchsorted(numbers[order], wanted)]
    return places


def _arrange_rows(rows: HalfArray, owner: IntArray, size: int) -> Vectors:
    """Build the vectors of `size` records from rows sorted by owner."""
    whole = np.full(size, -1, np.int64)
    unit = _unit(rows.astype(np.float32))
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    owners, sizes = owner[first], np.diff(first, append=len(owner))
    whole[owners] = first
    several = sizes > 1
    if not several.any():
        return replace(NO_VECTORS, rows=unit, whole=whole)
    sums = np.add.reduceat(unit, first, axis=0)[several]
    whole[owners[several]] = len(unit) + np.arange(len(sums))
    return Vectors(
        np.concatenate((unit, _unit(sums))), whole, owners[several], first[several], (first + sizes)[several]
    )


def select_vectors(vectors: Vectors, records: IntArray) -> Vectors:
    """Select the vectors of these records, in this order. All must have vectors."""
    at = np.searchsorted(vectors.many, records) if len(vectors.many) else np.zeros(len(records), np.int64)
    several = np.zeros(len(records), bool)
    if len(vectors.many):
        several = vectors.many[np.minimum(at, len(vectors.many) - 1)] == records
    whole = vectors.whole[records]
    many = np.flatnonzero(several)
    spans = [np.arange(vectors.first[one], vectors.last[one]) for one in at[many].tolist()]
    sizes = np.array([len(span) for span in spans], np.int64)
    first = len(records) + np.cumsum(sizes) - sizes
    return Vectors(vectors.rows[np.concatenate((whole, *spans))], np.arange(len(records)), many, first, first + sizes)


def cosines_of(vectors: Vectors, query: FloatArray, there: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Per record, the cosine of its whole text, and its score: the mean of the whole and its best piece.

    Both are 0 for records that are not `there`.
    """
    # einsum, not matmul: a row's product must not depend on its position in the matrix.
    products = np.einsum("ij,j->i", vectors.rows, query)
    whole = np.where(there, products[vectors.whole], 0) if len(products) else np.zeros(len(there), np.float32)
    own = whole.copy()
    if len(vectors.many):
        bounds = np.stack((vectors.first, vectors.last), axis=1).ravel()
        best = np.maximum.reduceat(np.append(products, np.float32(-1)), bounds)[::2]
        own[vectors.many] = np.where(there[vectors.many], (own[vectors.many] + best) / 2, 0)
    return whole, own


def products_of(rows: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
    result = np.zeros(len(left), np.float32)
    both = np.flatnonzero((left >= 0) & (right >= 0))
    for some in np.array_split(both, len(both) // 4096 + 1):
        result[some] = np.einsum("ij,ij->i", rows[left[some]], rows[right[some]])
    return result
