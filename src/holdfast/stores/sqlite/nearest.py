"""Approximate indexes of a SQLite store: build, publish, read and blank them.

A row of the table `nearest` makes a graph valid. Files without a row are orphans, and removed. A forget leaves the
graph as it is; `scrub` then overwrites the forgotten vectors in the files, and records its progress in the row. If it
is interrupted, the job that was queued with the forget finishes it.
"""

from __future__ import annotations

import logging
import secrets
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.domain.ranking import FloatArray, IntArray
from holdfast.domain.scope import Partition
from holdfast.domain.times import from_micros, to_micros
from holdfast.errors import HoldfastError
from holdfast.ports import NearestState, VectorBlock
from holdfast.private_files import make_private_folder
from holdfast.stores.sql.rows import HIDDEN
from holdfast.stores.sqlite import graphs
from holdfast.stores.sqlite.busy_retry import committing
from holdfast.stores.sqlite.graphs import BadGraph, Graph, OpenGraph

log = logging.getLogger("holdfast.store")
GoOn = Callable[[int, int], bool]  # called with (done, total); returns whether to go on
_READ = 10_000
# An index is dropped when more than this share of it was forgotten.
_MOST_FORGOTTEN = 0.5
_COLUMNS = (
    "partition_id", "embedder_id", "name", "change", "forgotten", "records", "vectors", "dimensions", "bytes",
    "digest", "recall", "built_at",
)  # fmt: skip
# Deletes indexes of embedders that have no vectors left in the partition.
_OUTLIVED = (
    "DELETE FROM nearest WHERE partition_id = ? AND embedder_id <> ? AND NOT EXISTS (SELECT 1 FROM vectors v"
    " WHERE v.partition_id = nearest.partition_id AND v.embedder_id = nearest.embedder_id)"
)
_ROW = f"SELECT {', '.join(f'n.{column}' for column in _COLUMNS)} FROM nearest n"


@dataclass(frozen=True, slots=True)
class _Row:
    partition_id: int
    embedder_id: int
    change: int
    forgotten: int
    records: int
    recall: float
    built_at: datetime
    graph: Graph

    @classmethod
    def of(cls, row: Sequence[Any]) -> _Row:
        partition, embedder, name, change, forgotten, records, vectors, dimensions, size, digest, recall, built_at = row
        graph = Graph(name, vectors, dimensions, size, bytes(digest))
        return cls(partition, embedder, change, forgotten, records, recall, from_micros(built_at), graph)


class GraphNearest:
    """Implements `ports.NearestIndex`."""

    def __init__(self, state: NearestState, graph: OpenGraph) -> None:
        self.state = state
        self._graph = graph

    def search(self, vector: FloatArray, limit: int, depth: int) -> Callable[[], IntArray]:
        if len(vector) != self._graph.graph.dimensions:
            return lambda: np.empty(0, np.int64)
        return lambda: self._graph.search(vector, limit, depth)

    def vectors(self, numbers: IntArray) -> VectorBlock:
        return self._graph.vectors(numbers)


class GraphFolder:
    """The folder of a store's graphs, and its open graphs. Safe to use from several threads."""

    def __init__(self, location: str) -> None:
        self.folder = Path(f"{location}-nearest")
        self._open: dict[tuple[int, int], tuple[str, OpenGraph | None]] = {}
        self._lock = threading.Lock()

    @property
    def unavailable_reason(self) -> str | None:
        """The reason why approximate indexes are unavailable; None if they are available."""
        return None if graphs.is_installed() else "usearch is not installed; `holdfast doctor` says how to install it"

    def nearest(self, connection: sqlite3.Connection, partition: int, embedder: str) -> GraphNearest | None:
        found = connection.execute(
            f"{_ROW} WHERE n.partition_id = ? AND n.embedder_id = (SELECT id FROM embedders WHERE fingerprint = ?)",
            (partition, embedder),
        ).fetchone()
        if found is None or self.unavailable_reason:
            return None
        row = _Row.of(found)
        graph = self._open_graph(row)
        if graph is None:
            return None
        return GraphNearest(NearestState(row.records, row.change, False, row.recall, row.built_at), graph)

    def _open_graph(self, row: _Row) -> OpenGraph | None:
        """Return the open graph; None if it is invalid. An invalid file is checked only once."""
        key = (row.partition_id, row.embedder_id)
        with self._lock:
            name, graph = self._open.get(key, ("", None))
            if name != row.graph.name:
                try:
                    graph = OpenGraph(self.folder, row.graph)
                except BadGraph as error:
                    log.warning("an approximate index cannot be used, and will be rebuilt: %s", error)
                    graph = None
                self._open[key] = (row.graph.name, graph)
            return graph

    def findings(self, connection: sqlite3.Connection) -> tuple[int, list[str]]:
        """Return the number of indexes, and their problems."""
        rows = [_Row.of(row) for row in connection.execute(_ROW)]
        if self.unavailable_reason:
            return len(rows), []
        wrong = []
        for row in rows:
            try:
                graphs.check(self.folder, row.graph)
            except BadGraph as error:
                wrong.append(
                    f"{row.graph.name}: {error}; it will be rebuilt; until then its partition is searched exactly"
                )
        return len(rows), wrong

    # --- building ---

    def build(
        self, connect: Callable[[], sqlite3.Connection], partition: Partition, embedder: str, go_on: GoOn
    ) -> GraphBuild | None:
        """Build the graph of the partition's vectors; None if there is nothing to build, or it was stopped."""
        with closing(connect()) as connection:
            source = _read_source(connection, partition, embedder)
            if source is None:
                return None
            make_private_folder(self.folder)
            name = f"{source.partition_id}-{source.embedder_id}-{secrets.token_hex(8)}"
            total = len(source.block.numbers)
            made = graphs.build_graph(
                self.folder,
                name,
                source.block,
                lambda: _forgotten_numbers(connection, source.partition_id, source.change),
                lambda done: go_on(done, total),
            )
        return None if made is None else GraphBuild(source, *made)

    def publish(self, connection: sqlite3.Connection, built: GraphBuild, at: datetime) -> None:
        """Within a write transaction: make the graph the valid one, as of the commit."""
        source, graph = built.source, built.graph
        gone = _forgotten_numbers(connection, source.partition_id, source.change)
        try:
            # No forget can run while this transaction is open.
            graphs.blank_vectors(self.folder, graph, gone)
        except OSError:
            raise HoldfastError("the files of an approximate index were removed before it was complete") from None
        connection.execute(_OUTLIVED, (source.partition_id, source.embedder_id))
        (change,) = connection.execute("SELECT change FROM partitions WHERE id = ?", (source.partition_id,)).fetchone()
        values = (
            source.partition_id, source.embedder_id, graph.name, source.change, change, source.records, graph.vectors,
            graph.dimensions, graph.size, graph.digest, built.recall, to_micros(at),
        )  # fmt: skip
        connection.execute(
            f"INSERT OR REPLACE INTO nearest ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(values))})", values
        )

    # --- forgetting ---

    def scrub(self, connection: sqlite3.Connection, busy_seconds: float) -> None:
        """Outside any transaction: blank vectors forgotten since the last time, and remove orphaned files."""
        if not self.folder.is_dir() and connection.execute("SELECT 1 FROM nearest").fetchone() is None:
            return
        # The write lock keeps others from publishing or forgetting meanwhile.
        with committing(connection, busy_seconds):
            rows = [_Row.of(row) for row in connection.execute(_ROW)]
            valid = {row.graph.name for row in rows if self._blank_forgotten(connection, row)}
            self._remove_all_but(valid)

    def remove_all(self) -> None:
        """Remove the files of all graphs."""
        self._remove_all_but(set())

    def _remove_all_but(self, valid: set[str]) -> None:
        for file in self.folder.glob("*"):
            if file.stem not in valid:
                file.unlink(missing_ok=True)

    def _blank_forgotten(self, connection: sqlite3.Connection, row: _Row) -> bool:
        """Blank forgotten vectors; return whether the index is still useful."""
        gone = _forgotten_numbers(connection, row.partition_id, row.forgotten)
        if not len(gone):
            return True
        key = (row.partition_id, row.embedder_id)
        try:
            graphs.blank_vectors(self.folder, row.graph, gone)
            blank = graphs.share_of(
                self.folder, row.graph, _forgotten_numbers(connection, row.partition_id, row.change)
            )
        except OSError:
            blank = 1.0  # its files are gone
        if blank > _MOST_FORGOTTEN:
            connection.execute("DELETE FROM nearest WHERE partition_id = ? AND embedder_id = ?", key)
            return False
        (change,) = connection.execute("SELECT change FROM partitions WHERE id = ?", (row.partition_id,)).fetchone()
        connection.execute(
            "UPDATE nearest SET forgotten = ? WHERE partition_id = ? AND embedder_id = ?", (change, *key)
        )
        return True


@dataclass(frozen=True, slots=True)
class _GraphSource:
    """The input of a graph: a partition's vectors at one change number."""

    partition_id: int
    embedder_id: int
    change: int
    records: int
    block: VectorBlock


@dataclass(frozen=True, slots=True)
class GraphBuild:
    """A graph that is written, but not yet valid."""

    source: _GraphSource
    graph: Graph
    recall: float


def _forgotten_numbers(connection: sqlite3.Connection, partition: int, since: int) -> IntArray:
    """Return the numbers of forgotten records, and of records whose content was deleted."""
    found = connection.execute(
        "SELECT number FROM tombstones WHERE partition_id = ? AND change > ? UNION ALL SELECT number FROM records"
        f" WHERE partition_id = ? AND change > ? AND {HIDDEN} AND status = 'raw_deleted'",
        (partition, since, partition, since),
    ).fetchall()
    return np.array([row[0] for row in found], np.int64)


def _read_source(connection: sqlite3.Connection, partition: Partition, embedder: str) -> _GraphSource | None:
    connection.execute("BEGIN")
    try:
        place = connection.execute(
            "SELECT p.id, p.change, e.id, (SELECT count(*) FROM records r WHERE r.partition_id = p.id)"
            " FROM partitions p, embedders e"
            " WHERE p.space = ? AND p.kind = ? AND p.owner = ? AND e.fingerprint = ?",
            (partition.space, partition.kind, partition.owner, embedder),
        ).fetchone()
        if place is None:
            return None
        number, change, embedder_id, records = place
        block = _read_vectors(connection, number, embedder_id)
        return None if block is None else _GraphSource(number, embedder_id, change, records, block)
    finally:
        connection.execute("ROLLBACK")


def _read_vectors(connection: sqlite3.Connection, partition: int, embedder: int) -> VectorBlock | None:
    of_embedder = "FROM vectors WHERE partition_id = ? AND embedder_id = ?"
    usual = connection.execute(
        f"SELECT length(vector), count(*) {of_embedder} AND length(vector) > 0 AND length(vector) % 2 = 0"
        " GROUP BY length(vector) ORDER BY count(*) DESC, max(number) DESC LIMIT 1",
        (partition, embedder),
    ).fetchone()
    if usual is None:
        return None
    # A model that was replaced under its old name, or damage, leaves vectors of another length: only the most common
    # length is used.
    length, count = usual
    condition = f"{of_embedder} AND length(vector) = ?"
    values = (partition, embedder, length)
    numbers, rows = np.empty(count, np.int64), np.empty((count, length // 2), "<f2")
    cursor = connection.execute(f"SELECT number, vector {condition} ORDER BY number, piece", values)
    done = 0
    while found := cursor.fetchmany(_READ):
        end = done + len(found)
        numbers[done:end] = [row[0] for row in found]
        rows[done:end] = np.frombuffer(b"".join([row[1] for row in found]), "<f2").reshape(len(found), -1)
        done = end
    return VectorBlock(numbers, rows)
