"""Checksums of rows: triggers that keep them, the check, and filling those of an older store.

Rows that `add` inserts come with their checksum (`dialect.py`). For all other inserts, and for every update, triggers
of the writer's connection set it. They are temporary: a change by anything else is found as damage is.

The checksum of a text goes when the text is forgotten. A text from before there were checksums has its own in
`text_checksums`, because its row must not grow. Both are replaced in place by that of the blank.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from typing import Any

from holdfast.stores.sql.checksums import RowCheck, RowLayout
from holdfast.stores.sqlite import schema
from holdfast.stores.sqlite.dialect import INSERTED, checksum

_FUNCTION = "holdfast_checksum"
_LAYOUTS = (
    "SELECT m.name, i.name, i.pk FROM main.sqlite_master m JOIN pragma_table_info(m.name) i"
    " WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' AND m.name <> 'text_checksums' ORDER BY m.name, i.cid"
)
_COUNTER = "change"


def layouts(database: Any) -> list[RowLayout]:
    columns: dict[str, list[str]] = {}
    keys: dict[str, list[tuple[int, str]]] = {}
    for table, column, place in database.execute(_LAYOUTS).fetchall():
        columns.setdefault(table, []).append(column)
        if place:
            keys.setdefault(table, []).append((place, column))
    return [
        RowLayout(table, tuple(name for _, name in sorted(keys[table])), tuple(of[:-1]))
        for table, of in columns.items()
        if of[-1] == "checksum"
    ]


def _checked_columns(layout: RowLayout) -> tuple[str, ...]:
    """Return the columns that a row's checksum is computed from."""
    if layout.table in INSERTED:
        return INSERTED[layout.table]  # that of a text is without the number, which it gets when it is inserted
    if layout.table == "partitions":
        return tuple(column for column in layout.columns if column != _COUNTER)
    return layout.columns


def _checksum_sql(layout: RowLayout, row: str = "") -> str:
    """Return the SQL of a row's checksum. The counter of a partition is added to it, so that an add can raise both."""
    prefix = f"{row}." if row else ""
    called = f"{_FUNCTION}({', '.join(prefix + column for column in _checked_columns(layout))})"
    return f"{called} + {prefix}{_COUNTER}" if layout.table == "partitions" else called


def install(connection: sqlite3.Connection) -> None:
    """Add the function and the triggers to a connection that writes."""
    connection.create_function(_FUNCTION, -1, lambda *values: checksum(values), deterministic=True)
    for layout in layouts(connection):
        for statement in _triggers(layout):
            connection.execute(statement)


def _triggers(layout: RowLayout) -> Iterator[str]:
    table = layout.table
    this_row = " AND ".join(f"{key} = NEW.{key}" for key in layout.keys)
    if table not in INSERTED:
        yield (
            f"CREATE TEMP TRIGGER {table}_inserted AFTER INSERT ON main.{table} BEGIN"
            f" UPDATE {table} SET checksum = {_checksum_sql(layout, 'NEW')} WHERE {this_row}; END"
        )
    columns = ", ".join(_checked_columns(layout))
    head = f"CREATE TEMP TRIGGER {table}_updated AFTER UPDATE OF {columns} ON main.{table} BEGIN UPDATE"
    if table == "texts":
        blank = f"SET checksum = {_checksum_sql(layout, 'NEW')} WHERE {this_row}"
        yield f"{head} texts {blank} AND checksum IS NOT NULL; UPDATE text_checksums {blank}; END"
        return
    # A row that was damaged before must not become sound: it keeps its checksum, which fits again if the update
    # restores what was there. That of deleted content must go.
    bad = "iif(NEW.status = 'raw_deleted', 0, OLD.checksum)" if table == "records" else "0"
    yield (
        f"{head} {table} SET checksum = iif(OLD.checksum IS NULL OR OLD.checksum = {_checksum_sql(layout, 'OLD')},"
        f" {_checksum_sql(layout, 'NEW')}, {bad}) WHERE {this_row}; END"
    )


def check_rows(database: Any, layout: RowLayout, limit: int) -> RowCheck:
    """Compare every row with its checksum; return the keys of the first `limit` that differ."""
    covered = _checked_columns(layout)
    stored, source = "checksum", layout.table
    if layout.table == "texts":
        stored = "coalesce(x.checksum, (SELECT c.checksum FROM text_checksums c WHERE c.number = x.number))"
    counter = _COUNTER if layout.table == "partitions" else "0"
    # Damaged text may not be UTF-8.
    before, database.text_factory = database.text_factory, _decode
    damaged: list[Sequence[Any]] = []
    total = unchecked = 0
    try:
        found = database.execute(
            f"SELECT {stored}, {counter}, {', '.join(layout.keys)}, {', '.join(covered)} FROM {source} x"
        )
        first = 2 + len(layout.keys)
        for row in found:
            if row[0] is None:
                unchecked += 1
            elif not isinstance(row[1], int) or row[0] != checksum(row[first:]) + row[1]:
                total += 1
                if len(damaged) < limit:
                    damaged.append(row[2:first])
    finally:
        database.text_factory = before
    return RowCheck(damaged, total, unchecked)


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def changed_schema(database: Any) -> list[str]:
    """Return the names of tables and indexes that are missing, or differ from the schema; more may be there."""
    expected, there = _expected_schema(tuple(script for _, script in schema.migrations())), _schema(database)
    return sorted(name for name, definition in expected.items() if there.get(name) != definition)


@cache
def _expected_schema(scripts: tuple[str, ...]) -> dict[str, tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as database:
        for script in scripts:
            database.executescript(script)
        return _schema(database)


def _schema(database: Any) -> dict[str, tuple[str, str, str]]:
    found = database.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM main.sqlite_master").fetchall()
    # SQLite adds a table of its own where an old schema used it.
    return {name: (kind, table, sql) for kind, name, table, sql in found if name != "sqlite_sequence"}


def fill(database: Any, layout: RowLayout, after: Sequence[Any] | None, last: Sequence[Any]) -> None:
    """Add the checksums that are missing, of the rows with keys up to `last`."""
    within, values = layout.range(after, last)
    if layout.table == "texts":
        # In the order of their numbers: rows are appended, and never move.
        database.execute(
            f"INSERT INTO text_checksums (number, checksum) SELECT number, {_checksum_sql(layout)} FROM texts"
            f" WHERE {within} AND checksum IS NULL ORDER BY number ON CONFLICT DO NOTHING",
            values,
        )
        return
    database.execute(
        f"UPDATE {layout.table} SET checksum = {_checksum_sql(layout)} WHERE {within} AND checksum IS NULL", values
    )
