"""Open connections, all set up the same way, and wait for a server that is briefly unavailable."""

from __future__ import annotations

import logging
import random
import time
from typing import Any

import psycopg

from holdfast.errors import StoreBusy, StoreError, StoreReadOnly
from holdfast.stores.postgres import schema
from holdfast.stores.postgres.errors import is_transient, translate_connect_error, translate_error
from holdfast.stores.postgres.location import PostgresLocation
from holdfast.stores.postgres.locks import store_key
from holdfast.stores.postgres.session import PostgresSession
from holdfast.stores.sql.copy_endpoint import refuse_unfinished

# Per attempt: a server that does not answer by then counts as down.
CONNECT_SECONDS = 10.0
# A client that hangs within a transaction must not hold its locks forever.
_IDLE_SECONDS = 300
log = logging.getLogger("holdfast.store")

_SET_UP = (
    "SELECT set_config('search_path', %s, false), set_config('lock_timeout', %s, false),"
    " set_config('idle_in_transaction_session_timeout', %s, false), set_config('jit', 'off', false),"
    " set_config('client_min_messages', 'warning', false),"
    # Checksums are of rows as text.
    " set_config('bytea_output', 'hex', false), set_config('extra_float_digits', '1', false),"
    # Acknowledged writes are durable, whatever the server's default.
    " set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'"
    " ELSE current_setting('synchronous_commit') END, false), pg_try_advisory_lock_shared(%s), pg_is_in_recovery()"
)
# Identifies one run of the server, on one timeline of its write-ahead log.
_LIFE = "SELECT pg_postmaster_start_time()::text || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)"


class RetryDeadline:
    """A retry deadline, with jittered exponential backoff."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        self._step = 0.005

    def wait(self) -> bool:
        """Sleep one step; return False if no time is left."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(left, self._step * random.uniform(0.5, 1.5)))  # noqa: S311 - jitter, not security
        self._step = min(self._step * 2, 0.5)
        return True


class Connector:
    """Opens sessions on one server and schema."""

    def __init__(self, place: PostgresLocation, busy_seconds: float) -> None:
        self.place = place
        self.busy_seconds = busy_seconds
        self._path = ""

    def prepare(self, *, whole: bool = True) -> PostgresSession:
        """Open the first session: check the server, and migrate its schema.

        A server that is down is reported at once, not waited for. With `whole`, an unfinished copy is refused.
        """
        connection = self._open_connection(RetryDeadline(self.busy_seconds), patient=False)
        try:
            connection.execute("SELECT set_config('lock_timeout', %s, false)", (self._lock_timeout,))
            schema.prepare(connection, self.place)
            home = schema.find_vector_extension(connection)
            self._path = f'"{self.place.schema}"' + (f', "{home[1]}"' if home else "")
            self._warn(connection)
            session = self._set_up(connection)
            if whole:
                refuse_unfinished(session, self.place.shown)
        except psycopg.Error as error:
            connection.close()
            raise translate_error(error, self.place) from error
        except BaseException:
            connection.close()
            raise
        return session

    def session(self, patience: RetryDeadline | None = None) -> PostgresSession:
        """Open a session; wait for a server that is unavailable."""
        patience = patience or RetryDeadline(self.busy_seconds)
        while True:
            connection = self._open_connection(patience, patient=True)
            try:
                return self._set_up(connection)
            except psycopg.Error as error:
                connection.close()
                if not patience.wait():
                    raise translate_error(error, self.place) from error
            except StoreReadOnly:
                connection.close()
                if not patience.wait():
                    raise

    def _open_connection(self, patience: RetryDeadline, *, patient: bool) -> psycopg.Connection[Any]:
        while True:
            try:
                return psycopg.connect(self.place.conninfo, autocommit=True)
            except psycopg.Error as error:
                ours: StoreError = translate_connect_error(error, self.place)
                # A server that is starting is always waited for.
                worth_it = is_transient(ours) and (patient or "starting" in str(ours))
                if not worth_it or not patience.wait():
                    raise ours from None

    @property
    def _lock_timeout(self) -> str:
        return str(max(1, int(self.busy_seconds * 1000)))

    def _set_up(self, connection: psycopg.Connection[Any]) -> PostgresSession:
        values = (self._path, self._lock_timeout, str(_IDLE_SECONDS * 1000), store_key(self.place.schema))
        row = connection.execute(_SET_UP, values).fetchone()
        assert row is not None
        if not row[-2]:
            raise StoreBusy(f"{self.place.shown} is being filled by a copy; wait for it to end")
        if row[-1]:
            raise StoreReadOnly(
                f"{self.place.shown} is a replica, which takes no writes; give the address of the primary, or all"
                " addresses with target_session_attrs=read-write"
            )
        return PostgresSession(connection, self.place.schema, _server_run_id(connection))

    def _warn(self, connection: psycopg.Connection[Any]) -> None:
        row = connection.execute("SELECT current_setting('fsync')").fetchone()
        if row is not None and row[0] == "off":
            log.warning("%s runs with fsync = off: a power failure loses acknowledged writes", self.place.shown)


def _server_run_id(connection: psycopg.Connection[Any]) -> str | None:
    """Return an id of this run of the server; None if this variant of PostgreSQL has none."""
    try:
        row = connection.execute(_LIFE).fetchone()
    except psycopg.Error:
        if connection.closed:
            raise
        return None
    return str(row[0]) if row else None
