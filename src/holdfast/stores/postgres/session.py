"""One connection to the server, set up as the store needs it: the handle that shared statements run on.

Statements of a transaction travel in a pipeline: what nobody has looked at yet goes to the server together with the
next question. Parameters are sent without a type, for the server to infer: a value that is missing now and then does
not make another statement to prepare.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format, TransactionStatus
from psycopg.rows import tuple_row

from holdfast.domain.scope import Partition
from holdfast.stores.postgres.locks import partition_key, space_key
from holdfast.stores.sql.known import Known

PREPARED = 500


class _Number(Dumper):
    oid = 0

    def dump(self, obj: int) -> bytes:
        return b"%d" % obj


class _Bytes(Dumper):
    oid = 0
    format = Format.BINARY

    def dump(self, obj: bytes) -> bytes:
        return obj


class HalfVector(bytes):
    """A vector in the form in which pgvector reads it."""


class _Answer(psycopg.RawCursor[Any]):
    """A cursor whose count of rows is waited for, too."""

    pipeline: psycopg.Pipeline | None = None

    @property
    def rowcount(self) -> int:
        if self.pipeline is not None:
            self.pipeline.sync()
        return super().rowcount


@lru_cache(maxsize=2_000)
def numbered(statement: str) -> bytes:
    """`?` as PostgreSQL writes it: $1, $2, …"""
    first, *rest = statement.split("?")
    return (first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))).encode()


def adapt(connection: psycopg.Connection[Any]) -> None:
    connection.prepare_threshold = 1
    connection.prepared_max = PREPARED
    connection.cursor_factory = _Answer
    connection.row_factory = tuple_row
    connection.adapters.register_dumper(int, _Number)
    connection.adapters.register_dumper(bytes, _Bytes)
    connection.adapters.register_dumper(HalfVector, _Bytes)


class Session:
    """Implements `Database`. `timeline` tells one history of the server from another, after a failover."""

    def __init__(self, connection: psycopg.Connection[Any], schema: str, timeline: str | None) -> None:
        self.connection = connection
        self.timeline = timeline
        self.known = Known()
        self.transaction_id: str | None = None
        self._schema = schema
        self._pipeline: psycopg.Pipeline | None = None
        self._held: set[int] = set()

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> _Answer:
        cursor = self.connection.cursor(binary=True)
        assert isinstance(cursor, _Answer)
        cursor.pipeline = self._pipeline
        cursor.execute(numbered(statement), values or None)
        return cursor

    def executemany(self, statement: str, values: Sequence[Sequence[Any]], /) -> object:
        if values:
            self.connection.cursor().executemany(numbered(statement), values)
        return None

    def sync(self) -> None:
        """Wait for everything that was sent; the first error of it."""
        if self._pipeline is not None:
            self._pipeline.sync()

    # --- transactions ---

    @contextlib.contextmanager
    def transaction(self, begin: str) -> Iterator[None]:
        """Whatever is not committed by hand within is rolled back."""
        self._held.clear()
        self.transaction_id = None
        try:
            with self.connection.pipeline() as pipeline:
                self._pipeline = pipeline
                try:
                    self.execute(begin)
                    yield
                finally:
                    self._pipeline = None
        finally:
            self._end()

    def _end(self) -> None:
        if not self.connection.closed and self.connection.info.transaction_status is not TransactionStatus.IDLE:
            self.connection.execute(b"ROLLBACK")

    def commit(self) -> None:
        answer = self.execute("COMMIT")
        self.sync()
        # A transaction that failed on the way is ended by COMMIT, and not committed.
        if answer.statusmessage != "COMMIT":
            raise psycopg.errors.InFailedSqlTransaction("the transaction was rolled back")

    def savepoint(self) -> frozenset[int]:
        """Begin a part that can be rolled back alone; what to give to `roll_back_to`."""
        self.execute("SAVEPOINT request")
        return frozenset(self._held)

    def release(self) -> None:
        """End that part well."""
        self.execute("RELEASE SAVEPOINT request")

    def roll_back_to(self, held: frozenset[int]) -> None:
        self.execute("ROLLBACK TO SAVEPOINT request")
        self.execute("RELEASE SAVEPOINT request")
        # Locks taken since then are given back with it, and so is what was learned.
        self._held = set(held)
        self.known.drop()

    def close(self) -> None:
        with contextlib.suppress(psycopg.Error):
            self.connection.close()

    # --- locks: each is held until the transaction ends ---

    def lock_space(self, space: str, *, exclusive: bool = False) -> bool:
        """Whether that was not held yet."""
        return self._lock(space_key(self._schema, space), shared=not exclusive)

    def lock_partition(self, partition: Partition) -> bool:
        return self._lock(partition_key(self._schema, partition), shared=False)

    def _lock(self, key: int, *, shared: bool) -> bool:
        if key in self._held:
            return False
        self._held.add(key)
        self.execute(_SHARED if shared else _EXCLUSIVE, (key,))
        return True


_SHARED = "SELECT pg_advisory_xact_lock_shared(?::bigint)"
_EXCLUSIVE = "SELECT pg_advisory_xact_lock(?::bigint)"
