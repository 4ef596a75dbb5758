"""One connection to the server, set up for the store: the handle that shared statements run on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from holdfast.domain.scope import Partition
from holdfast.stores.postgres.locks import partition_key, space_key
from holdfast.stores.postgres.pipeline import StatementPipeline, StatementResult
from holdfast.stores.sql.write_scope import RowIdCache


class PostgresSession:
    """Implements `Database`. `life` identifies one run of the server."""

    def __init__(self, connection: psycopg.Connection[Any], schema: str, life: str | None) -> None:
        self.connection = connection
        self.life = life
        self.known = RowIdCache()
        self.transaction_id: str | None = None
        self._schema = schema
        self._wire = StatementPipeline(connection)
        self._held: set[int] = set()

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> StatementResult:
        if self._wire.open:
            return self._wire.send(statement, values)
        with self._pipeline():
            return self._wire.send(statement, values)

    def executemany(self, statement: str, values: Sequence[Sequence[Any]], /) -> object:
        with contextlib.nullcontext() if self._wire.open else self._pipeline():
            for each in values:
                self._wire.send(statement, each)
        return None

    def push(self) -> None:
        """Within a transaction: make the server start on what was sent, before a result is awaited."""
        self._wire.push()

    @contextlib.contextmanager
    def _pipeline(self) -> Iterator[None]:
        """Run a pipeline: at its end, the results of all statements sent within have arrived."""
        self._wire.enter()
        try:
            yield
        except BaseException:
            # The first error is the one to report.
            with contextlib.suppress(psycopg.Error):
                self._wire.leave()
            raise
        self._wire.leave()

    # --- transactions ---

    @contextlib.contextmanager
    def transaction(self, begin: str) -> Iterator[None]:
        """Begin a transaction, and roll it back unless it is explicitly committed within."""
        self._held.clear()
        self.transaction_id = None
        try:
            with self._pipeline():
                self.execute(begin)
                yield
        finally:
            if not self.is_lost and self.connection.info.transaction_status is not TransactionStatus.IDLE:
                self.connection.execute(b"ROLLBACK")

    @property
    def is_lost(self) -> bool:
        return self.connection.closed or self.connection.broken

    def commit(self) -> None:
        # COMMIT ends a failed transaction without committing it.
        if self.execute("COMMIT").tag != b"COMMIT":
            raise psycopg.errors.InFailedSqlTransaction("the transaction was rolled back")

    def savepoint(self) -> frozenset[int]:
        """Set a savepoint; return the argument for `roll_back_to`."""
        self.execute("SAVEPOINT request")
        return frozenset(self._held)

    def release(self) -> None:
        """Release the savepoint, and keep what was done since."""
        self.execute("RELEASE SAVEPOINT request")

    def roll_back_to(self, held: frozenset[int]) -> None:
        self.execute("ROLLBACK TO SAVEPOINT request")
        self.execute("RELEASE SAVEPOINT request")
        # The rollback also releases locks taken since, and invalidates cached row numbers.
        self._held = set(held)
        self.known.rollback()

    def close(self) -> None:
        with contextlib.suppress(psycopg.Error):
            self.connection.close()

    # --- locks: each is held until the transaction ends ---

    def lock_space(self, space: str, *, exclusive: bool = False) -> bool:
        """Lock a space; return True if it was not held yet."""
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
