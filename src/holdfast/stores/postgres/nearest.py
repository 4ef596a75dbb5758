"""Approximate indexes on PostgreSQL: a partial HNSW index of `vectors` for each large partition and embedder.

The server maintains it, so it lacks nothing that is committed. It is built without blocking writes; a row of the table
`nearest` marks it as complete, and an invalid index is never used. Queries name the partition as a constant and rule
out other plans: results depend on whether the index is used, so the planner must not decide.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import psycopg

from holdfast.domain.ranking import NEAREST_DEPTH, FloatArray, IntArray
from holdfast.domain.scope import Partition
from holdfast.domain.times import from_micros, to_micros
from holdfast.errors import StoreError
from holdfast.ports import NearestState, VectorBlock
from holdfast.stores.postgres.dialect import HEADER, POSTGRES
from holdfast.stores.postgres.pipeline import StatementResult
from holdfast.stores.postgres.session import PostgresSession
from holdfast.stores.sql.dialect import Database

CONNECTIVITY, BUILD_EXPANSION = 16, 128
# The server's maximum of hnsw.ef_search.
_WIDEST = 1_000
_SAMPLE, _NEAREST = 30, 10
_LOOK_SECONDS = 0.5
# Memory per vector while an index is built, besides the vector itself.
_GRAPH_BYTES = 500
_LEAST_MEMORY, _MOST_MEMORY = 64, 1_024  # megabytes
_ROW = (
    "SELECT n.partition_id, n.embedder_id, n.name, n.dimensions, n.records, n.change, n.recall, n.built_at"
    " FROM nearest n JOIN embedders e ON e.id = n.embedder_id"
    " JOIN pg_class c ON c.relname = n.name AND c.relnamespace = current_schema()::regnamespace"
    " JOIN pg_index i ON i.indexrelid = c.oid AND i.indisvalid"
    " WHERE n.partition_id = ? AND e.fingerprint = ?"
)
# Set in a read-only transaction for the next statement; `_FREE` resets them.
_PINNED = (
    "SELECT set_config('hnsw.ef_search', ?, true), set_config('hnsw.iterative_scan', ?, true),"
    " set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),"
    " set_config('enable_sort', 'off', true)"
)
_FREE = (
    "SELECT set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'on', true),"
    " set_config('enable_sort', 'on', true)"
)


@dataclass(frozen=True, slots=True)
class PartitionIndex:
    """The indexed vectors of one partition and embedder."""

    partition: int
    embedder: int
    dimensions: int

    @property
    def name(self) -> str:
        return f"nearest_{self.partition:d}_{self.embedder:d}_{self.dimensions:d}"

    @property
    def condition(self) -> str:
        """Contains constants: a partial index serves no other statement."""
        return (
            f"partition_id = {self.partition:d} AND embedder_id = {self.embedder:d}"
            f" AND vector_dims(vector) = {self.dimensions:d}"
        )

    @property
    def vector_expression(self) -> str:
        return f"(vector::halfvec({self.dimensions:d}))"

    @property
    def search_statement(self) -> str:
        """The search statement; its parameters are the vector and the limit."""
        return (
            f"SELECT number FROM vectors WHERE {self.condition}"
            f" ORDER BY {self.vector_expression} <#> ?::halfvec({self.dimensions:d}) LIMIT ?"
        )

    @property
    def fetch_statement(self) -> str:
        """Selects the vectors of these numbers as one value: a row for each would take longer than the search."""
        return (
            "SELECT string_agg(int8send(number) || halfvec_send(vector), '') FROM (SELECT number, vector FROM vectors"
            f" WHERE {self.condition} AND number = ANY (?::bigint[]) ORDER BY number, piece) AS found"
        )

    def unpack_vectors(self, packed: bytes) -> VectorBlock:
        row = np.dtype([("number", ">i8"), ("head", f"V{HEADER}"), ("vector", ">f2", (self.dimensions,))])
        found = np.frombuffer(packed, row)
        return VectorBlock(found["number"].astype(np.int64), found["vector"].astype(np.float16))


class ServerNearest:
    """Implements `ports.NearestIndex`."""

    def __init__(self, session: PostgresSession, place: PartitionIndex, state: NearestState) -> None:
        self._session = session
        self._place = place
        self.state = state

    def search(self, vector: FloatArray, limit: int, depth: int) -> Callable[[], IntArray]:
        if len(vector) != self._place.dimensions:
            return lambda: np.empty(0, np.int64)
        return start_search(self._session, self._place, vector, limit, depth)

    def vectors(self, numbers: IntArray) -> VectorBlock:
        # In chunks, since one value must stay below a gigabyte.
        parts = np.split(numbers, range(POSTGRES.chunk, len(numbers), POSTGRES.chunk))
        answers = [self._session.execute(self._place.fetch_statement, (part.tolist(),)) for part in parts]
        return self._place.unpack_vectors(b"".join([answer.fetchone()[0] or b"" for answer in answers]))


def start_search(
    session: PostgresSession, place: PartitionIndex, vector: FloatArray, limit: int, depth: int
) -> Callable[[], IntArray]:
    """Start a search on the server; the returned function waits for the result."""
    # A candidate costs more here than in memory, and half the depth finds the same in the end (decision 6).
    width = min(max(limit, depth // 2, 1), _WIDEST)
    enough = limit <= width
    answer = _send_search(session, place, vector, limit, width, again=not enough)
    session.push()

    def wait() -> IntArray:
        rows = answer.fetchall()
        if enough and len(rows) < limit // 2:
            # Most near rows are deleted and not yet vacuumed.
            rows = _send_search(session, place, vector, limit, width, again=True).fetchall()
        found = np.array([row[0] for row in rows], np.int64)
        _, first = np.unique(found, return_index=True)
        return found[np.sort(first)]

    return wait


def _send_search(
    session: PostgresSession, place: PartitionIndex, vector: FloatArray, limit: int, width: int, *, again: bool
) -> StatementResult:
    """Send a search. `again` continues if one pass finds too few rows, which makes every pass slower."""
    session.execute(_PINNED, (str(width), "strict_order" if again else "off"))
    answer = session.execute(place.search_statement, (_to_parameter(vector), limit))
    session.execute(_FREE)
    return answer


def _to_parameter(vector: FloatArray) -> bytes:
    return POSTGRES.vector(vector.astype("<f2").tobytes())


def find_index(session: PostgresSession, partition: int, embedder: str) -> ServerNearest | None:
    row = session.execute(_ROW, (partition, embedder)).fetchone()
    if row is None:
        return None
    number, embedder_id, name, dimensions, records, change, recall, built_at = row
    place = PartitionIndex(number, embedder_id, dimensions)
    if name != place.name:
        return None
    return ServerNearest(session, place, NearestState(records, change, True, recall, from_micros(built_at)))


# --- building -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ServerIndexBuild:
    place: PartitionIndex
    records: int
    change: int
    recall: float


def build(
    session: PostgresSession,
    watch: Callable[[], PostgresSession],
    partition: Partition,
    embedder: str,
    go_on: Callable[[int, int], bool],
) -> ServerIndexBuild | None:
    """Build the index on a session without a transaction; None if there is nothing to build, or it was stopped."""
    row = session.execute(
        "SELECT p.id, p.change, e.id, (SELECT count(*) FROM records r WHERE r.partition_id = p.id)"
        " FROM partitions p, embedders e WHERE p.space = ? AND p.kind = ? AND p.owner = ? AND e.fingerprint = ?",
        (partition.space, partition.kind, partition.owner, embedder),
    ).fetchone()
    if row is None:
        return None
    number, change, embedder_id, records = row
    usual = session.execute(
        "SELECT vector_dims(vector) FROM vectors WHERE partition_id = ? AND embedder_id = ?"
        " GROUP BY vector_dims(vector) ORDER BY count(*) DESC, max(number) DESC LIMIT 1",
        (number, embedder_id),
    ).fetchone()
    if usual is None:
        return None
    place = PartitionIndex(number, embedder_id, usual[0])
    if not go_on(0, records) or not _create_index(session, watch, place, records, go_on):
        return None
    return ServerIndexBuild(place, records, change, _measure_recall(session, place))


def _create_index(
    session: PostgresSession,
    watch: Callable[[], PostgresSession],
    place: PartitionIndex,
    records: int,
    go_on: Callable[[int, int], bool],
) -> bool:
    """Create the index unless it exists; return False if it was stopped."""
    valid = session.execute(
        "SELECT i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        " WHERE c.relname = ? AND c.relnamespace = current_schema()::regnamespace",
        (place.name,),
    ).fetchone()
    if valid is not None and valid[0]:
        return True
    if valid is not None:
        session.connection.execute(f"DROP INDEX CONCURRENTLY {place.name}".encode())
    memory = min(max(records * (place.dimensions * 2 + _GRAPH_BYTES) >> 20, _LEAST_MEMORY), _MOST_MEMORY)
    # No lock timeout: older transactions may take long, and nobody waits for this.
    session.execute(
        "SELECT set_config('maintenance_work_mem', ?, false), set_config('lock_timeout', '0', false)", (f"{memory}MB",)
    )
    statement = (
        f"CREATE INDEX CONCURRENTLY {place.name} ON vectors USING hnsw ({place.vector_expression} halfvec_ip_ops)"
        f" WITH (m = {CONNECTIVITY}, ef_construction = {BUILD_EXPANSION}) WHERE {place.condition}"
    )
    with _BuildMonitor(session, watch, records, go_on) as watched:
        try:
            # Not in a pipeline, where it would run in a transaction.
            session.connection.execute(statement.encode())
        except psycopg.errors.QueryCanceled:
            if not watched.stopped:
                raise
            # The server still writes to a half-built index, which would retain forgotten vectors.
            session.connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {place.name}".encode())
            return False
    return True


class _BuildMonitor:
    """Watches the progress of a statement, and cancels it when `go_on` returns False.

    If no connection is available for this, the statement runs unwatched.
    """

    def __init__(
        self,
        session: PostgresSession,
        watch: Callable[[], PostgresSession],
        total: int,
        go_on: Callable[[int, int], bool],
    ) -> None:
        self._session = session
        self._open = watch
        self._total = total
        self._go_on = go_on
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="holdfast-nearest", daemon=True)
        self.stopped = False

    def __enter__(self) -> _BuildMonitor:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        process = self._session.connection.info.backend_pid
        with contextlib.suppress(psycopg.Error, StoreError), contextlib.closing(self._open()) as session:
            while not self._over.wait(_LOOK_SECONDS):
                row = session.execute(
                    "SELECT tuples_done FROM pg_stat_progress_create_index WHERE pid = ?", (process,)
                ).fetchone()
                done = min(int(row[0]), self._total) if row else 0
                if not self._go_on(done, self._total):
                    self.stopped = True
                    self._session.connection.cancel()


def _measure_recall(session: PostgresSession, place: PartitionIndex) -> float:
    """Measure recall on a sample: the share of the ten nearest that a search finds."""
    sample = session.execute(
        f"SELECT vector FROM vectors WHERE {place.condition} ORDER BY hashint8(number) LIMIT {_SAMPLE}"
    ).fetchall()
    exactly = place.search_statement.replace(f"{place.vector_expression} <#>", "vector <#>")
    shares = []
    for (raw,) in sample:
        vector = np.frombuffer(raw[4:], ">f2").astype(np.float32)
        best = [row[0] for row in session.execute(exactly, (_to_parameter(vector), _NEAREST))]
        with session.transaction("BEGIN READ ONLY"):
            near = set(start_search(session, place, vector, NEAREST_DEPTH, NEAREST_DEPTH)().tolist())
        shares.append(sum(number in near for number in best) / max(len(best), 1))
    return float(np.mean(shares)) if shares else 1.0


def publish(database: Database, built: ServerIndexBuild, at: datetime) -> None:
    values: tuple[Any, ...] = (
        built.place.partition, built.place.embedder, built.place.name, built.place.dimensions, built.records,
        built.change, str(built.recall), to_micros(at),
    )  # fmt: skip
    database.execute("DELETE FROM nearest WHERE partition_id = ? AND embedder_id = ?", values[:2])
    database.execute(
        "INSERT INTO nearest (partition_id, embedder_id, name, dimensions, records, change, recall, built_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        values,
    )
