"""Examine a store on a server before it is opened: nothing is created, migrated or written."""

from __future__ import annotations

from typing import Any

import psycopg

from holdfast.domain.results import StoreExamination
from holdfast.stores.postgres.connection import CONNECT_SECONDS
from holdfast.stores.postgres.errors import translated, unreached
from holdfast.stores.postgres.location import Place, place_of
from holdfast.stores.postgres.schema import check_server, check_vector, migrations, vector_home, version_of
from holdfast.stores.sql.archive import NOTE

_SIZE = (
    "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c"
    " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind = 'r'"
)


def examine(location: str, busy_seconds: float) -> StoreExamination | None:
    """Return None if the schema does not exist."""
    place = place_of(location, min(CONNECT_SECONDS, busy_seconds))
    try:
        connection = psycopg.connect(place.conninfo, autocommit=True)
    except psycopg.Error as error:
        raise unreached(error, place) from None
    try:
        with connection:
            return _examined(connection, place)
    except psycopg.Error as error:
        raise translated(error, place) from error


def _examined(connection: psycopg.Connection[Any], place: Place) -> StoreExamination | None:
    check_server(connection.info.server_version, place)
    newest = migrations()[-1][0]
    schema = version_of(connection, place, newest)
    if schema == 0:
        return None
    check_vector(connection, place)
    home = vector_home(connection)
    return StoreExamination(
        store=place.shown,
        engine=f"PostgreSQL {_version(connection.info.server_version)} with pgvector {home[0] if home else '?'}",
        schema=schema,
        newest=newest,
        unfinished=_one(connection, f'SELECT count(*) FROM "{place.schema}".meta WHERE key = %s', NOTE) > 0,
        bytes=_one(connection, _SIZE, place.schema),
    )


def _one(connection: psycopg.Connection[Any], statement: str, value: str) -> int:
    row = connection.execute(statement.encode(), (value,)).fetchone()
    return int(row[0]) if row else 0


def _version(number: int) -> str:
    return f"{number // 10_000}.{number % 10_000}"
