"""Examine a file before it is opened: nothing is created, migrated or written."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from holdfast.domain.results import StoreExamination
from holdfast.stores.sql.copy_endpoint import is_unfinished
from holdfast.stores.sqlite.connection import check_path
from holdfast.stores.sqlite.errors import translating
from holdfast.stores.sqlite.schema import check_version, migrations


def examine(location: str, busy_seconds: float) -> StoreExamination | None:
    """Return None if there is no file."""
    check_path(Path(location))
    if not os.path.exists(location):
        return None
    with translating(location), closing(open_read_only(location, busy_seconds)) as connection:
        newest = migrations()[-1][0]
        schema = check_version(connection, location, newest)
        return StoreExamination(
            store=location,
            engine=f"SQLite {sqlite3.sqlite_version}",
            schema=schema,
            newest=newest,
            unfinished=bool(schema) and is_unfinished(connection),
            bytes=sum(os.path.getsize(path) for path in (location, f"{location}-wal") if os.path.exists(path)),
        )


def open_read_only(location: str, busy_seconds: float) -> sqlite3.Connection:
    return sqlite3.connect(f"{Path(location).absolute().as_uri()}?mode=ro", timeout=busy_seconds, uri=True)
