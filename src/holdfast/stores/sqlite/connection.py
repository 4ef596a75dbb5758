"""Open connections, all set up the same way."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from holdfast.errors import StoreReadOnly, StoreUnusable
from holdfast.private_files import create_private_file
from holdfast.stores.sql.copy_endpoint import refuse_unfinished
from holdfast.stores.sqlite.busy_retry import retry_while_busy
from holdfast.stores.sqlite.checksums import install
from holdfast.stores.sqlite.errors import translating
from holdfast.stores.sqlite.schema import STORE, FileKind, check_application_id, migrate

MEMORY = ":memory:"


def connect(location: str, busy_seconds: float) -> sqlite3.Connection:
    """Open a connection in autocommit mode: transactions are begun and ended explicitly."""
    connection = connect_plainly(location, busy_seconds)
    for pragma in (
        "foreign_keys = ON",
        "secure_delete = ON",  # freed bytes are overwritten: forgetting is real
        "temp_store = MEMORY",  # and no copy of them reaches the disk
        "cache_size = -16384",
    ):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def connect_plainly(location: str, busy_seconds: float) -> sqlite3.Connection:
    """Open a connection without settings. Nothing of the file is read yet: it may be damaged."""
    # Never creates a file: SQLite would create one that others may read.
    place = location if location == MEMORY else f"{Path(location).absolute().as_uri()}?mode=rw"
    return sqlite3.connect(place, timeout=busy_seconds, isolation_level=None, check_same_thread=False, uri=True)


def open_store(location: str, busy_seconds: float, *, whole: bool = True, alone: bool = False) -> sqlite3.Connection:
    """Open the writer's connection, and migrate the schema. With `whole`, an unfinished copy is refused.

    With `alone`, no other process can open the file until this is closed; `StoreBusy` if one has it open now.
    """

    def prepare(connection: sqlite3.Connection) -> None:
        migrate(connection, location, busy_seconds)
        if whole:
            refuse_unfinished(connection, location)
        install(connection)

    return open_writer(location, busy_seconds, STORE, prepare, alone=alone)


def open_writer(
    location: str,
    busy_seconds: float,
    kind: FileKind,
    prepare: Callable[[sqlite3.Connection], None],
    *,
    alone: bool = False,
) -> sqlite3.Connection:
    """Open the writer's connection of a file of this kind; `prepare` migrates it."""
    if location != MEMORY:
        _create_missing(Path(location))
    with translating(location):
        connection = connect(location, busy_seconds)
        try:
            if alone:
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            check_application_id(connection, location, kind)
            _use_wal(connection, busy_seconds)
            prepare(connection)
            # From here on the writer does its own waiting: see `begin_immediate`.
            connection.execute("PRAGMA busy_timeout = 0")
        except BaseException:
            connection.close()
            raise
    return connection


def _use_wal(connection: sqlite3.Connection, busy_seconds: float) -> None:
    # SQLite's busy timeout does not cover a mode change; a store in WAL mode already must not wait at all.
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        retry_while_busy(lambda: connection.execute("PRAGMA journal_mode = WAL"), busy_seconds)
    connection.execute("PRAGMA synchronous = FULL")


def _create_missing(path: Path) -> None:
    check_path(path)
    try:
        # SQLite gives the write-ahead log and its index the mode of the file.
        create_private_file(path)
    except OSError as error:
        raise StoreUnusable(f"{path} cannot be created: {error.strerror}; check the folder and its disk") from error


def check_path(path: Path) -> None:
    try:
        _check_path(path)
    except OSError as error:
        raise StoreUnusable(f"{path} cannot be accessed: {error.strerror}; check the path and its disk") from error


def _check_path(path: Path) -> None:
    if path.is_dir():
        raise StoreUnusable(f"{path} is a directory; give the path of a file in it, such as {path / 'memory.db'}")
    if not path.parent.is_dir():
        raise StoreUnusable(f"{path.parent} does not exist; create the folder first")
    if path.exists() and not os.access(path, os.R_OK):
        raise StoreUnusable(f"{path} cannot be read; check the permissions of the file")
    # A read-only store could not record its audit trail.
    if path.exists() and not os.access(path, os.W_OK):
        raise StoreReadOnly(f"{path} cannot be written; check the permissions of the file, or open a copy of it")
    if path.exists() and not path.is_file():
        raise StoreUnusable(f"{path} is not a file, but a device, a pipe or a socket; give the path of a file")
    # SQLite refuses files that are not databases, except a file of one byte, which it treats as empty. Do not read the
    # file to check: closing it would release the locks that this process's SQLite holds on it.
    if path.exists() and path.stat().st_size == 1:
        raise StoreUnusable(f"{path} is not a Holdfast store; give the path of one, or of a new file")
