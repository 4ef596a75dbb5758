"""Translate PostgreSQL's errors to Holdfast's; callers keep the cause."""

from __future__ import annotations

import re
from enum import Enum, auto

import psycopg

from holdfast.errors import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnusable,
)
from holdfast.stores.postgres.location import PostgresLocation


class FailureKind(Enum):
    """The effect of an error on its transaction."""

    LOST = auto()  # the connection is gone, or its server no longer accepts writes
    CONFLICT = auto()  # conflict with another transaction: a retry may succeed
    REFUSED = auto()  # the statement itself was rejected


# 26000: a prepared statement is gone, or no longer fits the tables.
_LOST = re.compile(r"08...|57P0[1235]|25P0[34]|25006|26000")
_CONFLICT = re.compile(r"40001|40P01|55P03")


def classify_error(error: psycopg.Error, connection: psycopg.Connection | None = None) -> FailureKind:
    state = error.sqlstate or ""
    if _LOST.fullmatch(state) or (connection is not None and (connection.closed or connection.broken)):
        return FailureKind.LOST
    if state == "0A000" and "cached plan" in str(error):
        return FailureKind.LOST
    if not state and isinstance(error, psycopg.OperationalError):
        return FailureKind.LOST
    return FailureKind.CONFLICT if _CONFLICT.fullmatch(state) else FailureKind.REFUSED


def translate_error(error: psycopg.Error, place: PostgresLocation) -> StoreError:
    """Translate the error of a statement. Nothing of its transaction is in the store."""
    state, where = error.sqlstate or "", place.shown
    detail = place.redact((error.diag.message_primary or str(error)).strip().splitlines()[0])
    if state == "25006":
        return StoreReadOnly(
            f"{where} takes no writes: it is a replica, or set to read only; give the address of the primary, or all"
            " addresses with target_session_attrs=read-write"
        )
    if classify_error(error) is FailureKind.LOST:
        return StoreUnavailable(f"the connection to {where} was lost ({detail}); nothing was changed, try again")
    if classify_error(error) is FailureKind.CONFLICT:
        return StoreBusy(f"{where} is being written by others ({detail}); nothing was changed, try again")
    for pattern, entry in _STATES.items():
        if re.fullmatch(pattern, state):
            kind, advice = entry
            return kind(f"{where}: {detail}; {advice}")
    return StoreError(f"{where}: {detail}; nothing was changed")


_STATES: dict[str, tuple[type[StoreError], str]] = {
    "53100|58030|53400": (StoreFull, "nothing was changed, make room on the server's disk and try again"),
    "53300": (StoreBusy, "nothing was changed; raise the server's connection limit"),
    "57014|53200": (StoreBusy, "nothing was changed, try again"),
    "XX00[12]": (StoreCorrupt, "restore the database from a backup, or run `holdfast store verify` on it"),
    "42501": (StoreUnusable, "give this user the rights that docs/how-to/run-on-postgresql.md lists"),
    "42P01|3F000": (StoreUnusable, "the store's tables are gone; open it again"),
}


# libpq reports a failed connection as text, without a code. If the server uses another language, its text is passed on
# as it is.
_UNREACHED: list[tuple[str, type[StoreError], str]] = [
    (
        r"translate host name|failed to resolve host|Name or service not known|nodename nor servname",
        StoreUnavailable,
        "its host name is unknown; check the spelling, and that this machine can resolve it",
    ),
    (
        r"password authentication failed|no password supplied|SCRAM|role \".*\" does not exist",
        StoreUnusable,
        "it refuses this user or password; check both in the URL",
    ),
    (
        r"no pg_hba\.conf entry|pg_hba\.conf rejects",
        StoreUnusable,
        "it rejects this connection; add this user, database and address to pg_hba.conf",
    ),
    (
        r"database \".*\" does not exist",
        StoreUnusable,
        "there is no such database on it; create it with `createdb`, or name another",
    ),
    (
        r"too many clients|remaining connection slots|too many connections",
        StoreBusy,
        "it has no connection left; raise max_connections (or the user's limit) on the server, or lower"
        " HOLDFAST_POSTGRES_CONNECTIONS",
    ),
    (
        r"starting up|shutting down|not yet accepting connections|recovery mode",
        StoreUnavailable,
        "it is starting or stopping; try again",
    ),
    (
        r"session is read-only|not accepting connections for writes|read-write",
        StoreReadOnly,
        "none of these servers accepts writes; wait until one is promoted, or give the primary's address",
    ),
    (
        r"Connection refused|No such file|No route|unreachable|timeout expired|timed out",
        StoreUnavailable,
        "nothing answers there; check host and port, and that the server is up",
    ),
    (r"SSL|certificate", StoreUnusable, "the TLS connection failed; check sslmode and the certificates in the URL"),
]


def translate_connect_error(error: psycopg.Error, place: PostgresLocation) -> StoreError:
    """Translate the error of a failed connection."""
    detail = place.redact(" ".join(str(error).split()))
    for pattern, kind, advice in _UNREACHED:
        if re.search(pattern, detail):
            return kind(f"{place.shown} cannot be opened: {advice} ({_shorten(detail)})")
    return StoreUnavailable(f"{place.shown} cannot be opened: {_shorten(detail)}; check the URL and the server")


def _shorten(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:297]}..."


def is_transient(error: StoreError) -> bool:
    """True if the connection may succeed a moment later."""
    return isinstance(error, StoreUnavailable | StoreBusy | StoreReadOnly)
