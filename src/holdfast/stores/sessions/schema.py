"""The session file: its tables, its version, and an application id that tells it from a memory store."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from holdfast.errors import StoreUnusable
from holdfast.private_files import make_private_folder
from holdfast.stores.sqlite.busy_retry import committing
from holdfast.stores.sqlite.connection import open_writer
from holdfast.stores.sqlite.schema import FileKind, check_version

# "HLDS"
SESSIONS = FileKind(0x484C4453, "does not hold an agent's sessions; give the path of such a file or a new one")

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
    folder = Path(location).parent
    try:
        make_private_folder(folder)
    except OSError as error:
        raise StoreUnusable(f"{folder} cannot be created: {error.strerror}; check the path and its disk") from error
    return open_writer(
        location, busy_seconds, SESSIONS, lambda connection: _migrate(connection, location, busy_seconds)
    )


def _migrate(connection: sqlite3.Connection, location: str, busy_seconds: float) -> None:
    if check_version(connection, location, len(STEPS), SESSIONS) == len(STEPS):
        return
    with committing(connection, busy_seconds):
        # Another process may have migrated the file meanwhile.
        for number in range(check_version(connection, location, len(STEPS), SESSIONS), len(STEPS)):
            for statement in STEPS[number]:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {SESSIONS.application_id}")
        connection.execute(f"PRAGMA user_version = {len(STEPS)}")
