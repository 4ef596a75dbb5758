"""The session file: its tables, its version, and an application id that tells it from a memory store."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from holdfast.errors import SchemaTooNew, StoreUnusable
from holdfast.stores.sqlite.busy_retry import begin_immediate, retry_while_busy
from holdfast.stores.sqlite.connection import check_path, connect

# "HLDS"
APPLICATION_ID = 0x484C4453

# Times are microseconds since the epoch, in UTC. `meta` holds pending work ("scrub").
_FIRST = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """
    CREATE TABLE sessions (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        title TEXT NOT NULL,
        started_at INTEGER NOT NULL,
        last_at INTEGER NOT NULL,
        messages INTEGER NOT NULL,
        events INTEGER NOT NULL
    )
    """,
    "CREATE INDEX sessions_by_time ON sessions (last_at)",
    """
    CREATE TABLE events (
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions (id),
        number INTEGER NOT NULL,
        run TEXT NOT NULL,
        at INTEGER NOT NULL,
        kind TEXT NOT NULL,
        content TEXT NOT NULL,
        role TEXT,
        data TEXT NOT NULL,
        visible INTEGER NOT NULL,
        UNIQUE (session, number)
    )
    """,
    # The index keeps its own copy of the words, so that a delete removes exactly what was inserted.
    "CREATE VIRTUAL TABLE said USING fts5 (words, tokenize = 'porter unicode61 remove_diacritics 2')",
)
STEPS: tuple[tuple[str, ...], ...] = (_FIRST,)


def open_file(location: str, busy_seconds: float) -> sqlite3.Connection:
    """Open the writer's connection; creates a missing file, readable by this user only."""
    _make(Path(location))
    check_path(Path(location))
    connection = connect(location, busy_seconds)
    try:
        _check_ours(connection, location)
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            retry_while_busy(lambda: connection.execute("PRAGMA journal_mode = WAL"), busy_seconds)
        connection.execute("PRAGMA synchronous = FULL")
        _migrate(connection, location, busy_seconds)
        # From here on the writer waits by `waiting`, not by SQLite's timeout.
        connection.execute("PRAGMA busy_timeout = 0")
    except BaseException:
        connection.close()
        raise
    return connection


def _make(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite gives the write-ahead log and its index the permissions of the file.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise StoreUnusable(f"{path} cannot be created: {error.strerror}; check the path and its disk") from error


def _migrate(connection: sqlite3.Connection, location: str, busy_seconds: float) -> None:
    if _version(connection, location) == len(STEPS):
        return
    begin_immediate(connection, busy_seconds)
    try:
        # Another process may have migrated the file meanwhile.
        for number in range(_version(connection, location), len(STEPS)):
            for statement in STEPS[number]:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(STEPS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, location: str) -> int:
    _check_ours(connection, location)
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > len(STEPS):
        raise SchemaTooNew(
            f"{location} has schema {version}, and this Holdfast knows up to {len(STEPS)}; upgrade Holdfast to open it"
        )
    return version


def _check_ours(connection: sqlite3.Connection, location: str) -> None:
    # In this order: a process that is creating the file commits tables and application id together.
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    if application != APPLICATION_ID and (tables or application):
        raise StoreUnusable(f"{location} does not hold an agent's sessions; give the path of such a file or a new one")
