"""The location of a store: a PostgreSQL URL plus `schema`. It is always shown without its password."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast.domain.location import redact_location
from holdfast.errors import StoreUnusable

DEFAULT_SCHEMA = "holdfast"
_SCHEMA = re.compile(r"(?!pg_)[A-Za-z_][A-Za-z0-9_]{0,62}")
_PORT = re.compile(r"\d{0,5}")
_EXAMPLE = "postgresql://user:password@host:5432/database"
# Defaults that the URL overrides: a silently lost peer is detected within a minute.
_DEFAULTS = {
    "application_name": "holdfast",
    "keepalives": "1",
    "keepalives_idle": "20",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "client_encoding": "UTF8",
}


@dataclass(frozen=True, slots=True)
class PostgresLocation:
    """A parsed location. `conninfo` holds the password: only for libpq. `shown` is for people."""

    conninfo: str = field(repr=False)
    schema: str
    shown: str
    secrets: tuple[str, ...] = field(repr=False)

    def redact(self, message: str) -> str:
        """Redact our secrets in a message of the server or of libpq."""
        for secret in self.secrets:
            message = message.replace(secret, "***")
        return message


def parse_location(location: str, connect_seconds: float) -> PostgresLocation:
    name = redact_location(location)
    address, schema = _split_schema(location, name)
    try:
        options = conninfo_to_dict(address)
    except psycopg.Error as error:
        # libpq may quote the URL, and the password with it.
        problem = str(error).strip().replace(address, name).replace(location, name)
        if (secret := urlsplit(address).password) is not None:
            problem = problem.replace(secret, "***")
        raise StoreUnusable(f"{name} is not a PostgreSQL URL: {problem}; it looks like {_EXAMPLE}") from None
    if wrong := [port for port in str(options.get("port") or "").split(",") if not _PORT.fullmatch(port)]:
        raise StoreUnusable(f"{name} is not a PostgreSQL URL: {wrong[0]!r:.40} is not a port; it looks like {_EXAMPLE}")
    settings = {**_DEFAULTS, "connect_timeout": str(max(2, round(connect_seconds))), **options}
    secrets = tuple(str(options[key]) for key in ("password", "sslpassword") if options.get(key))
    return PostgresLocation(make_conninfo("", **settings), schema, name, secrets)


def _split_schema(location: str, name: str) -> tuple[str, str]:
    """Split the location into the URL for libpq and the schema."""
    try:
        parts = urlsplit(location)
    except ValueError as error:
        raise StoreUnusable(f"{name} is not a PostgreSQL URL: {error}; it looks like {_EXAMPLE}") from None
    query = parse_qsl(parts.query, keep_blank_values=True)
    schemas = [value for key, value in query if key == "schema"]
    schema = schemas[-1] if schemas else DEFAULT_SCHEMA
    if not _SCHEMA.fullmatch(schema):
        raise StoreUnusable(
            f"{name}: schema must be a plain name of letters, digits and underscores, not beginning with pg_"
        )
    remaining = "&".join(f"{key}={quote(value, safe='')}" for key, value in query if key != "schema")
    return urlunsplit(parts._replace(query=remaining)), schema
