"""Nearest-neighbour graphs in files: built in memory, written at once, opened memory-mapped, and verified before use.

A graph is a usearch file, which begins with its vectors as one matrix in insertion order, and a file with the record
number of each vector. A digest covers the numbers and all of the usearch file except the matrix, where a forgotten
record's vectors are overwritten with zeros in place. A file that does not match its digest is not opened: a broken
graph could make usearch read any address in memory.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.domain.ranking import NEAREST_DEPTH, BoolArray, FloatArray, HalfArray, IntArray
from holdfast.ports import VectorBlock
from holdfast.private_files import create_private_file, sync_folder

if TYPE_CHECKING:
    from usearch.index import Index

# Neighbours per vector, and width of the search for them: more finds more, and takes longer.
CONNECTIVITY = 16
BUILD_EXPANSION = 128
_CHUNK = 1_000
_SAMPLE, _NEAREST = 100, 10
_HEAD = struct.Struct("<II")  # rows of the matrix, and bytes of each
_COPY_BYTES = 1 << 22


class BadGraph(Exception):
    """A graph's files are invalid; the message says why."""


def is_installed() -> bool:
    """True if usearch, an optional dependency, is installed."""
    return importlib.util.find_spec("usearch") is not None


def _index(dimensions: int) -> Index:
    from usearch.index import Index

    return Index(
        ndim=dimensions,
        metric="ip",
        dtype="f16",
        connectivity=CONNECTIVITY,
        expansion_add=BUILD_EXPANSION,
        enable_key_lookups=False,
    )


@dataclass(frozen=True, slots=True)
class Graph:
    """Expected properties of a graph's files, as stored in the database."""

    name: str
    vectors: int
    dimensions: int
    size: int
    digest: bytes


def paths(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"{name}.usearch", folder / f"{name}.numbers"


# --- building -------------------------------------------------------------------------------------------------------


def build_graph(
    folder: Path, name: str, block: VectorBlock, gone: Callable[[], IntArray], go_on: Callable[[int], bool]
) -> tuple[Graph, float] | None:
    """Write the graph of these vectors, and measure its recall: the share of the nearest ten that it finds.

    The records' numbers must ascend. `gone` returns those forgotten meanwhile. `go_on` is called with the number of
    vectors done, and stops the build by returning False.
    """
    rows = _to_writable(block.rows)
    index = _index(rows.shape[1])
    for start in range(0, len(rows), _CHUNK):
        chunk = rows[start : start + _CHUNK]
        # One thread: keeps the vectors in this order in the file, and leaves the other cores free.
        index.add(np.arange(start, start + len(chunk), dtype=np.uint64), chunk, copy=False, threads=1)
        if not go_on(start + len(chunk)):
            return None
    recall = _measure_recall(index, rows)
    rows[np.isin(block.numbers, gone())] = 0
    file, numbers = paths(folder, name)
    _write(numbers, lambda: block.numbers.astype("<i8").tofile(numbers))
    _write(file, lambda: index.save(str(file)))
    sync_folder(folder)
    if not np.array_equal(_map_matrix(file, *rows.shape), rows):
        raise BadGraph("usearch did not write the vectors where they were expected")
    graph = Graph(name, len(rows), rows.shape[1], file.stat().st_size, _digest(file, numbers, rows.nbytes))
    return graph, recall


def _to_writable(rows: HalfArray) -> HalfArray:
    return rows if rows.flags.writeable and rows.flags.c_contiguous else np.array(rows, np.float16, order="C")


def _measure_recall(index: Index, rows: HalfArray) -> float:
    chance = np.random.default_rng(len(rows))
    queries = rows[np.sort(chance.choice(len(rows), min(_SAMPLE, len(rows)), replace=False))].astype(np.float32)
    count = min(_NEAREST, len(rows))
    found = np.zeros(len(queries))
    exact = np.concatenate(
        [queries @ some.astype(np.float32).T for some in np.array_split(rows, len(rows) // 65_536 + 1)], 1
    )
    for at, query in enumerate(queries):
        # Equal vectors are equally near: compare similarities, not keys.
        least = np.partition(exact[at], -count)[-count]
        keys = _search_index(index, query, min(NEAREST_DEPTH, len(rows)), NEAREST_DEPTH)
        found[at] = min(int(np.count_nonzero(exact[at][keys] >= least - 1e-4)), count)
    return float(found.mean() / count)


def _search_index(index: Index, vector: FloatArray, limit: int, depth: int) -> IntArray:
    index.expansion_search = depth  # type: ignore[misc]  # its stub lacks the setter
    keys: IntArray = np.asarray(index.search(vector, limit, threads=1).keys, np.int64)
    return keys


def _write(path: Path, write: Callable[[], Any]) -> None:
    create_private_file(path)  # its writer does not care about modes
    write()
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _digest(file: Path, numbers: Path, matrix_bytes: int) -> bytes:
    digest = hashlib.blake2b(numbers.read_bytes(), digest_size=16)
    with file.open("rb") as source:
        digest.update(source.read(_HEAD.size))
        source.seek(_HEAD.size + matrix_bytes)
        while some := source.read(_COPY_BYTES):
            digest.update(some)
    return digest.digest()


# --- reading --------------------------------------------------------------------------------------------------------


def _map_matrix(file: Path, vectors: int, dimensions: int) -> HalfArray:
    return np.memmap(file, "<f2", "r", offset=_HEAD.size, shape=(vectors, dimensions))


class OpenGraph:
    """A verified graph, opened for search. Safe to use from several threads."""

    def __init__(self, folder: Path, graph: Graph) -> None:
        """Verify and open the files; `BadGraph` if they are invalid."""
        check(folder, graph)
        file, numbers = paths(folder, graph.name)
        self.graph = graph
        self._numbers: IntArray = np.fromfile(numbers, "<i8").astype(np.int64, copy=False)
        self._matrix = _map_matrix(file, graph.vectors, graph.dimensions)
        self._lock = threading.Lock()
        self._index = _index(graph.dimensions)
        self._index.view(str(file))

    def search(self, vector: FloatArray, limit: int, depth: int) -> IntArray:
        # One at a time: usearch does not document concurrent searches as safe.
        with self._lock:
            keys = _search_index(self._index, vector, min(limit, self.graph.vectors), depth)
        found = self._numbers[keys]
        _, first = np.unique(found, return_index=True)
        return found[np.sort(first)]

    def vectors(self, numbers: IntArray) -> VectorBlock:
        first = np.searchsorted(self._numbers, numbers, "left")
        sizes = np.searchsorted(self._numbers, numbers, "right") - first
        places = np.repeat(first - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        return VectorBlock(np.repeat(numbers, sizes), self._matrix[places])


def blank_vectors(folder: Path, graph: Graph, numbers: IntArray) -> None:
    """Overwrite the vectors of these records with zeros. The graph still leads through them, and nothing to them."""
    file, _ = paths(folder, graph.name)
    places = np.flatnonzero(_match_numbers(folder, graph, numbers))
    row = graph.dimensions * 2
    with file.open("rb+") as target:
        for place in places.tolist():
            target.seek(_HEAD.size + place * row)
            target.write(bytes(row))
        target.flush()
        os.fsync(target.fileno())


def share_of(folder: Path, graph: Graph, numbers: IntArray) -> float:
    """Return the share of the vectors that belongs to these records."""
    return float(_match_numbers(folder, graph, numbers).mean())


def _match_numbers(folder: Path, graph: Graph, numbers: IntArray) -> BoolArray:
    return np.isin(np.fromfile(paths(folder, graph.name)[1], "<i8"), numbers)


def check(folder: Path, graph: Graph) -> None:
    """Raise `BadGraph` if the files are not as they were written."""
    file, numbers = paths(folder, graph.name)
    try:
        if file.stat().st_size != graph.size or numbers.stat().st_size != graph.vectors * 8:
            raise BadGraph("its files have the wrong size")
        with file.open("rb") as source:
            head = _HEAD.unpack(source.read(_HEAD.size))
        if head != (graph.vectors, graph.dimensions * 2):
            raise BadGraph("its file holds the wrong vectors")
        if _digest(file, numbers, graph.vectors * graph.dimensions * 2) != graph.digest:
            raise BadGraph("its files do not match their digest")
    except OSError as error:
        raise BadGraph(f"its files cannot be read: {error.strerror or type(error).__name__}") from None
