"""Migrate a file to the newest schema; safe with several starting processes and after a crash midway."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib import resources
from typing import NamedTuple

from holdfast.errors import SchemaTooNew, StoreCorrupt, StoreUnusable
from holdfast.failpoints import reach
from holdfast.stores.sqlite.busy_retry import committing


class FileKind(NamedTuple):
    """A kind of our files: the application id that marks it, so that no other database is written to, and an error."""

    application_id: int
    refusal: str


# "HLDF"
APPLICATION_ID = 0x484C4446
# "HLDB"
BACKUP_APPLICATION_ID = 0x484C4442
STORE = FileKind(APPLICATION_ID, "is another program's database; give the path of a Holdfast store or a new file")


def migrations() -> list[tuple[int, str]]:
    """Return (version, SQL) of each step."""
    folder = resources.files(__package__) / "migrations"
    steps = [(int(entry.name[:4]), entry.read_text("utf-8")) for entry in folder.iterdir() if entry.name[:4].isdigit()]
    return sorted(steps)


def migrate(connection: sqlite3.Connection, location: str, busy_seconds: float) -> int:
    """Apply missing steps, each in one transaction; return the schema's version."""
    newest = migrations()[-1][0]
    if check_version(connection, location, newest) == newest:
        return newest
    # A table that is rebuilt is missing for a moment; references to it are checked at the end of the step.
    connection.execute("PRAGMA foreign_keys = OFF")
    for version, script in migrations():
        with committing(connection, busy_seconds):
            # Another process may have applied it meanwhile.
            if check_version(connection, location, newest) < version:
                reach("migration.before")
                _apply(connection, location, version, script)
                reach("migration.after")
    connection.execute("PRAGMA foreign_keys = ON")
    return newest


def _apply(connection: sqlite3.Connection, location: str, version: int, script: str) -> None:
    for statement in _statements(script):
        connection.execute(statement)
    if (broken := connection.execute("PRAGMA foreign_key_check").fetchone()) is not None:
        raise StoreCorrupt(
            f"{location} cannot be migrated to schema {version}: a row of {broken[0]} refers to one of {broken[2]} that"
            " is not there; restore it from a backup"
        )
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {version}")


def check_application_id(connection: sqlite3.Connection, location: str, kind: FileKind = STORE) -> None:
    """Refuse another program's database before it is changed."""
    # In this order: a process that is creating the file commits tables and application id together.
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    if application == BACKUP_APPLICATION_ID:
        raise StoreUnusable(
            f"{location} is a backup; make a store of it: `holdfast store restore {location} --store PATH`"
        )
    if application != kind.application_id and (tables or application):
        raise StoreUnusable(f"{location} {kind.refusal}")


def check_version(connection: sqlite3.Connection, location: str, newest: int, kind: FileKind = STORE) -> int:
    """Return the schema's version, 0 for a new file."""
    check_application_id(connection, location, kind)
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > newest:
        raise SchemaTooNew(
            f"{location} has schema {version}, and this Holdfast knows up to {newest}; upgrade Holdfast to open it"
        )
    return version


def _statements(script: str) -> Iterator[str]:
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
