"""The vectors of records in memory: a row per piece of a text, and how the rows of one record belong together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from holdfast.domain.ranking import FloatArray, IntArray
from holdfast.ports import VectorRow


@dataclass(frozen=True, slots=True)
class Vectors:
    """Unit vectors, a row per piece of a text; a text of several pieces has one more row, for the whole.

    `whole[i]` is the row of record i's whole text, -1 if it has none. `many` are the records with several pieces,
    whose pieces lie in the rows from `first` to, not including, `last`.
    """

    rows: FloatArray
    whole: IntArray
    many: IntArray
    first: IntArray
    last: IntArray

    @property
    def bytes(self) -> int:
        return self.rows.nbytes + self.whole.nbytes + self.many.nbytes * 3


NO_VECTORS = Vectors(
    np.empty((0, 0), np.float32),
    *(np.empty(0, np.int64) for _ in range(4)),
)


def _unit(rows: FloatArray) -> FloatArray:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    unit: FloatArray = rows / np.maximum(lengths, np.float32(1e-12))
    return unit


def read_vectors(given: Sequence[VectorRow], numbers: IntArray) -> Vectors:
    """The vectors of records with these numbers, in this order."""
    whole = np.full(len(numbers), -1, np.int64)
    if not given:
        return replace(NO_VECTORS, whole=whole)
    # A model that was exchanged under its old name leaves vectors of another length: only the newest kind is compared.
    given = [row for row in given if len(row.vector) == len(given[-1].vector)]
    rows = np.frombuffer(b"".join([row.vector for row in given]), "<f2").reshape(len(given), -1)
    order = np.argsort(numbers, kind="stable")
    owner = order[np.searchsorted(numbers[order], np.fromiter((row.number for row in given), np.int64, len(given)))]
    pieces = np.fromiter((row.piece for row in given), np.int64, len(given))
    if np.any((np.diff(owner) < 0) | ((np.diff(owner) == 0) & (np.diff(pieces) < 0))):
        sequence = np.lexsort((pieces, owner))
        rows, owner = rows[sequence], owner[sequence]
    unit = _unit(rows.astype(np.float32))
    owners, first, sizes = np.unique(owner, return_index=True, return_counts=True)
    whole[owners] = first
    several = sizes > 1
    if not several.any():
        return replace(NO_VECTORS, rows=unit, whole=whole)
    sums = np.add.reduceat(unit, first, axis=0)[several]
    whole[owners[several]] = len(unit) + np.arange(len(sums))
    return Vectors(
        np.concatenate((unit, _unit(sums))), whole, owners[several], first[several], (first + sizes)[several]
    )


def products_of(rows: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
    result = np.zeros(len(left), np.float32)
    both = np.flatnonzero((left >= 0) & (right >= 0))
    for some in np.array_split(both, len(both) // 4096 + 1):
        result[some] = np.einsum("ij,ij->i", rows[left[some]], rows[right[some]])
    return result
