"""Bring a store into an earlier schema: into tables of the earlier migrations, with all rows that these can hold.

No earlier version wrote these rows, so this works for schemas that later ones only add to. It reads the tables and
columns from both schemas. A new table whose rows name their space in no known way fails here: say in `_owner` how.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg

from holdfast.stores.postgres import schema as postgres_schema
from holdfast.stores.postgres.location import parse_location
from holdfast.stores.sqlite import schema as sqlite_schema

# The first schema with turns and events, without which no fixture can be held.
FIRST = 7
# Tables of the store itself, or derived from others.
_APART = {"migrations", "text_checksums", "nearest"}
# The later columns of these repeat their scope.
_AUDIT = {"operations", "jobs"}

Columns = Mapping[str, Mapping[str, str]]


def earlier_versions() -> list[int]:
    """Return the schemas before the newest, which has the same number on both stores."""
    newest, on_postgres = (module.migrations()[-1][0] for module in (sqlite_schema, postgres_schema))
    assert newest == on_postgres
    return list(range(FIRST, newest))


@contextlib.contextmanager
def _until(module: Any, version: int) -> Iterator[None]:
    """Let a schema end with this version."""
    every = module.migrations
    module.migrations = lambda: [step for step in every() if step[0] <= version]
    try:
        yield
    finally:
        module.migrations = every


def downgrade_sqlite(source: Path, target: Path, version: int) -> set[str]:
    """Make a file of an earlier schema; return the spaces of which it cannot hold everything."""
    with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as database:
        with _until(sqlite_schema, version):
            assert sqlite_schema.migrate(database, str(target), 5.0) == version
        database.execute("PRAGMA foreign_keys = OFF")
        database.execute("ATTACH ? AS newer", (str(source),))
        old, new = _sqlite_columns(database, "main"), _sqlite_columns(database, "newer")
        return _copy_rows(database, ("main", old), ("newer", new))


def _sqlite_columns(database: sqlite3.Connection, schema: str) -> Columns:
    tables = database.execute(
        f"SELECT name FROM {schema}.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    ).fetchall()
    found = {}
    for (table,) in tables:
        rows = database.execute("SELECT name, dflt_value FROM pragma_table_info(?, ?)", (table, schema)).fetchall()
        found[table] = {name: default or "NULL" for name, default in rows}
    return found


def downgrade_postgres(url: str, version: int) -> tuple[str, set[str]]:
    """Make another schema in the database of a store; return its URL, and the spaces that it cannot hold."""
    place = parse_location(url, 5.0)
    older = parse_location(url.replace(f"schema={place.schema}", f"schema=older_{version}"), 5.0)
    with psycopg.connect(place.conninfo, autocommit=True) as database:
        with _until(postgres_schema, version):
            postgres_schema.prepare(database, older)
        # Neither triggers nor references: the rows are copied as they are.
        database.execute("SET session_replication_role = replica")
        old, new = _postgres_columns(database, older.schema), _postgres_columns(database, place.schema)
        lost = _copy_rows(database, (older.schema, old), (place.schema, new))
        database.execute(
            f"SELECT setval('{older.schema}.' || sequencename, last_value) FROM pg_sequences"
            f" WHERE schemaname = '{place.schema}' AND last_value IS NOT NULL AND sequencename IN"
            f" (SELECT sequencename FROM pg_sequences WHERE schemaname = '{older.schema}')"
        )
    return url.replace(f"schema={place.schema}", f"schema={older.schema}"), lost


def _postgres_columns(database: psycopg.Connection[Any], schema: str) -> Columns:
    found: dict[str, dict[str, str]] = {}
    rows = database.execute(
        "SELECT table_name, column_name, coalesce(column_default, 'NULL') FROM information_schema.columns"
        " WHERE table_schema = %s ORDER BY ordinal_position",
        (schema,),
    )
    for table, column, default in rows:
        found.setdefault(table, {})[column] = default
    return found


def _copy_rows(database: Any, older: tuple[str, Columns], newer: tuple[str, Columns]) -> set[str]:
    """Copy what the older tables can hold; return the spaces that lose a row, or a value, by it."""
    (target, old), (source, new) = older, newer
    lost: set[str] = set()
    for table, columns in new.items():
        if table in _APART:
            continue
        shared = [name for name in columns if name in old.get(table, ())]
        if not shared:
            lost |= _spaces(database, source, table, columns, "TRUE")
            continue
        for name in set(columns) - {*shared, "checksum"} if table not in _AUDIT else ():
            lost |= _spaces(database, source, table, columns, f"t.{name} IS DISTINCT FROM {columns[name]}")
        database.execute(f"DELETE FROM {target}.{table}")
        named = ", ".join(f'"{name}"' for name in shared)
        database.execute(f"INSERT INTO {target}.{table} ({named}) SELECT {named} FROM {source}.{table}")
    return lost


def _spaces(database: Any, source: str, table: str, columns: Mapping[str, str], condition: str) -> set[str]:
    space, joined = _owner(source, table, columns)
    rows: Sequence[tuple[str]] = database.execute(
        f"SELECT DISTINCT {space} FROM {source}.{table} t {joined} WHERE {condition}"
    ).fetchall()
    return {each for (each,) in rows}


def _owner(source: str, table: str, columns: Mapping[str, str]) -> tuple[str, str]:
    """Return the column with the space of a row `t`, and the tables to join for it."""
    of_partition = f"JOIN {source}.partitions p ON p.id ="
    if "space" in columns:
        return "t.space", ""
    if "partition_id" in columns:
        return "p.space", f"{of_partition} t.partition_id"
    if "memory_number" in columns:
        return "p.space", f"JOIN {source}.records r ON r.number = t.memory_number {of_partition} r.partition_id"
    if table == "proposal_records":
        return "p.space", f"JOIN {source}.proposals q ON q.words = t.words {of_partition} q.partition_id"
    raise AssertionError(f"say whose the rows of {table} are")
