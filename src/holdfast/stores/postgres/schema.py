"""Migrate a database to the newest schema; safe with several starting processes and after a crash midway."""

from __future__ import annotations

from importlib import resources
from typing import Any

import psycopg

from holdfast.errors import SchemaTooNew, StoreUnusable
from holdfast.failpoints import reach
from holdfast.stores.postgres.location import PostgresLocation
from holdfast.stores.postgres.locks import MIGRATION

OLDEST_SERVER = 14
OLDEST_VECTOR = (0, 7)  # the first with halfvec
_HOW_TO = "see docs/how-to/run-on-postgresql.md"


def migrations() -> list[tuple[int, str]]:
    """Return (version, SQL) of each step."""
    folder = resources.files(__package__) / "migrations"
    steps = [(int(entry.name[:4]), entry.read_text("utf-8")) for entry in folder.iterdir() if entry.name[:4].isdigit()]
    return sorted(steps)


def prepare(connection: psycopg.Connection[Any], place: PostgresLocation) -> None:
    """Check the server, and apply missing steps, each in one transaction."""
    check_server(connection.info.server_version, place)
    newest = migrations()[-1][0]
    if read_version(connection, place, newest) == newest:
        check_vector(connection, place)
        return
    # Held by the session, so that a process that dies midway releases it.
    connection.execute("SELECT pg_advisory_lock(%s)", (MIGRATION,))
    try:
        _install_vector(connection, place)
        for version, script in migrations():
            # Another process may have applied it meanwhile.
            if read_version(connection, place, newest) < version:
                _apply(connection, place, version, script)
    finally:
        if not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s)", (MIGRATION,))


def _apply(connection: psycopg.Connection[Any], place: PostgresLocation, version: int, script: str) -> None:
    with connection.transaction():
        reach("migration.before")
        if not _exists(connection, place.schema):
            connection.execute(f'CREATE SCHEMA "{place.schema}"')
        connection.execute(_search_path(connection, place.schema))
        connection.execute(script)
        connection.execute("INSERT INTO migrations (version) VALUES (%s)", (version,))
        reach("migration.after")


def check_server(version: int, place: PostgresLocation) -> None:
    if version // 10_000 < OLDEST_SERVER:
        raise StoreUnusable(
            f"{place.shown} runs PostgreSQL {version // 10_000}; Holdfast needs {OLDEST_SERVER} or newer: upgrade the"
            " server, or name another"
        )


def read_version(connection: psycopg.Connection[Any], place: PostgresLocation, newest: int) -> int:
    """Return the schema's version, 0 if it does not exist. Another program's tables are refused."""
    tables = {
        name
        for (name,) in connection.execute(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace ="
            " (SELECT oid FROM pg_namespace WHERE nspname = %s)",
            (place.schema,),
        )
    }
    if not tables:
        return 0
    if not {"migrations", "partitions", "records"} <= tables:
        raise StoreUnusable(
            f"{place.shown}: the schema {place.schema} holds another program's tables; choose another with ?schema="
        )
    row = connection.execute(f'SELECT max(version) FROM "{place.schema}".migrations').fetchone()
    version = int(row[0] or 0) if row else 0
    if version > newest:
        raise SchemaTooNew(
            f"{place.shown} has schema {version}, and this Holdfast knows up to {newest}; upgrade Holdfast to open it"
        )
    return version


def find_vector_extension(connection: psycopg.Connection[Any]) -> tuple[str, str] | None:
    """Return the version of pgvector in this database, and its schema."""
    row = connection.execute(
        "SELECT e.extversion, n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace"
        " WHERE e.extname = 'vector'"
    ).fetchone()
    return (row[0], row[1]) if row else None


def check_vector(connection: psycopg.Connection[Any], place: PostgresLocation) -> None:
    found = find_vector_extension(connection)
    if found is None:
        raise StoreUnusable(
            f"{place.shown} has no pgvector; run CREATE EXTENSION vector in this database as an administrator:"
            f" {_HOW_TO}"
        )
    if tuple(int(part) for part in found[0].split(".")[:2]) < OLDEST_VECTOR:
        oldest = ".".join(map(str, OLDEST_VECTOR))
        raise StoreUnusable(
            f"{place.shown} has pgvector {found[0]}; Holdfast needs {oldest} or newer: install it on the server and run"
            " ALTER EXTENSION vector UPDATE"
        )


def _install_vector(connection: psycopg.Connection[Any], place: PostgresLocation) -> None:
    if find_vector_extension(connection) is None:
        try:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except psycopg.errors.InsufficientPrivilege:
            raise StoreUnusable(
                f"{place.shown} has no pgvector yet, and this user may not create it; run CREATE EXTENSION vector in"
                " this database as an administrator, then open it again"
            ) from None
        except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile):
            raise StoreUnusable(
                f"{place.shown}: pgvector is not installed on this server; install the package for its version"
                f" (postgresql-NN-pgvector), or use a server that has it: {_HOW_TO}"
            ) from None
    check_vector(connection, place)


def _search_path(connection: psycopg.Connection[Any], schema: str) -> bytes:
    home = find_vector_extension(connection)
    path = f'"{schema}"' + (f', "{home[1]}"' if home else "")
    return f"SET LOCAL search_path = {path}".encode()


def _exists(connection: psycopg.Connection[Any], schema: str) -> bool:
    return connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone() is not None
