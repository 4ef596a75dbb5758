"""Examine a store on a server before it is opened: nothing is created, migrated or written."""

from __future__ import annotations

from typing import Any

import psycopg

from holdfast.domain.results import StoreExamination
from holdfast.stores.postgres.connection import CONNECT_SECONDS
from holdfast.stores.postgres.errors import translate_connect_error, translate_error
from holdfast.stores.postgres.location import PostgresLocation, parse_location
from holdfast.stores.postgres.schema import check_server, check_vector, find_vector_extension, migrations, read_version
from holdfast.stores.sql.copy_endpoint import NOTE

_SIZE = (
    "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c"
    " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind = 'r'"
)


def examine(location: str, busy_seconds: float) -> StoreExamination | None:
    """Return None if the schema does not exist."""
    place = parse_location(location, min(CONNECT_SECONDS, busy_seconds))
    try:
        connection = psycopg.connect(place.conninfo, autocommit=True)
    except psycopg.Error as error:
        raise translate_connect_error(error, place) from None
    try:
        with connection:
            return _examine_schema(connection, place)
    except psycopg.Error as error:
        raise translate_error(error, place) from error


def _examine_schema(connection: psycopg.Connection[Any], place: PostgresLocation) -> StoreExamination | None:
    check_server(connection.info.server_version, place)
    newest = migrations()[-1][0]
    schema = read_version(connection, place, newest)
    if schema == 0:
        return None
    check_vector(connection, place)
    home = find_vector_extension(connection)
    return StoreExamination(
        store=place.shown,
        engine=f"PostgreSQL {_format_version(connection.info.server_version)} with pgvector {home[0] if home else '?'}",
        schema=schema,
        newest=newest,
        unfinished=_fetch_int(connection, f'SELECT count(*) FROM "{place.schema}".meta WHERE key = %s', NOTE) > 0,
        bytes=_fetch_int(connection, _SIZE, place.schema),
    )


def _fetch_int(connection: psycopg.Connection[Any], statement: str, value: str) -> int:
    row = connection.execute(statement.encode(), (value,)).fetchone()
    return int(row[0]) if row else 0


def _format_version(number: int) -> str:
    return f"{number // 10_000}.{number % 10_000}"
