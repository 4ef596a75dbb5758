"""Opening a PostgreSQL store: schemas and migrations, unsuitable servers, and several processes at once."""

from __future__ import annotations

import multiprocessing
import signal
import socket
import time
from collections.abc import Callable, Iterator
from importlib import resources
from typing import Any

import openers
import psycopg
import pytest
from openers import used

from holdfast.errors import (
    HoldfastError,
    SchemaTooNew,
    StoreBusy,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnusable,
)
from holdfast.stores.postgres import PostgresStore, schema
from holdfast.stores.postgres.location import parse_location
from postgres import DATABASE, PASSWORD, AnyServer, Server, new_schema, schema_of

NEWEST = schema.migrations()[-1][0]
_COLUMNS = (
    "SELECT table_name, ordinal_position, column_name, data_type, udt_name, collation_name, is_nullable, column_default"
    " FROM information_schema.columns WHERE table_schema = %s ORDER BY 1, 2"
)
_INDEXES = "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = %s ORDER BY 1, 2"
_CONSTRAINTS = (
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE connamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s) ORDER BY 1, 2"
)


def described(server: AnyServer, name: str) -> list[str]:
    """All objects of a schema, without its name."""
    rows = [row for query in (_COLUMNS, _INDEXES, _CONSTRAINTS) for row in server.execute(query, (name,))]
    return [str(row).replace(f"{name}.", "") for row in rows]


# --- migrations -------------------------------------------------------------------------------------------------------


def test_the_schema_file_equals_all_migrations_applied(postgres: AnyServer, postgres_url: str) -> None:
    used(postgres_url)
    written = new_schema()
    script = (resources.files("holdfast.stores.postgres") / "schema.sql").read_text("utf-8")
    postgres.execute(f"CREATE SCHEMA {written}; SET search_path = {written}, public; {script}")
    try:
        assert described(postgres, written) == described(postgres, schema_of(postgres_url))
        assert len(described(postgres, written)) > 100
    finally:
        postgres.execute(f"DROP SCHEMA {written} CASCADE")


def test_migrations_are_numbered_from_one_without_gaps() -> None:
    assert [version for version, _ in schema.migrations()] == list(range(1, NEWEST + 1))


def test_a_store_is_migrated_once(postgres: AnyServer, postgres_url: str) -> None:
    used(postgres_url)
    applied = postgres.execute(f"SELECT * FROM {schema_of(postgres_url)}.migrations")
    used(postgres_url)
    assert postgres.execute(f"SELECT * FROM {schema_of(postgres_url)}.migrations") == applied
    assert [row[0] for row in applied] == list(range(1, NEWEST + 1))


def test_a_newer_schema_is_refused_and_left_alone(postgres: AnyServer, postgres_url: str) -> None:
    used(postgres_url)
    name = schema_of(postgres_url)
    postgres.execute(f"INSERT INTO {name}.migrations (version) VALUES ({NEWEST + 1})")
    before = described(postgres, name)
    with pytest.raises(SchemaTooNew, match=rf"schema {NEWEST + 1}.*up to {NEWEST}.*upgrade"):
        PostgresStore(postgres_url)
    assert described(postgres, name) == before


@pytest.fixture
def two_steps(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Gives the next opening one more migration with this SQL."""

    def set_second(script: str) -> None:
        steps = [*schema.migrations(), (NEWEST + 1, script)]
        monkeypatch.setattr(schema, "migrations", lambda: steps)

    return set_second


def test_a_migration_that_fails_leaves_the_old_schema_and_is_resumed(
    postgres: AnyServer, postgres_url: str, two_steps: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    used(postgres_url)
    name = schema_of(postgres_url)
    before = described(postgres, name)
    good = "CREATE TABLE extra (value TEXT);\nCREATE INDEX extra_value ON extra (value);\n"
    two_steps(good + "INSERT INTO no_such_table VALUES (1);\n")
    with pytest.raises(HoldfastError):
        used(postgres_url)
    assert described(postgres, name) == before
    monkeypatch.undo()
    two_steps(good)
    used(postgres_url)
    assert any("extra_value" in line for line in described(postgres, name))


@pytest.mark.parametrize("existing", [False, True], ids=["new store", "existing store"])
def test_a_migration_killed_half_way_is_resumed(postgres: AnyServer, postgres_url: str, existing: bool) -> None:
    if existing:
        used(postgres_url)
    process = multiprocessing.get_context("spawn").Process(
        target=openers.killed_within_a_server_migration, args=(postgres_url,)
    )
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    used(postgres_url)
    lines = described(postgres, schema_of(postgres_url))
    assert any("records" in line for line in lines)
    assert not any("extra" in line for line in lines)


def test_processes_that_create_the_same_stores_at_once_all_succeed(postgres: AnyServer) -> None:
    context = multiprocessing.get_context("spawn")
    urls = [postgres.store_url() for _ in range(5)]
    start, answers = context.Barrier(4), context.Queue()
    started = [context.Process(target=openers.use_all, args=(urls, start, answers)) for _ in range(4)]
    for process in started:
        process.start()
    assert [answers.get(timeout=120) for _ in started] == ["opened"] * 4
    for process in started:
        process.join(60)
    for url in urls:
        made = postgres.execute(f"SELECT version FROM {schema_of(url)}.migrations ORDER BY version")
        assert made == [(version,) for version in range(1, NEWEST + 1)]
        postgres.drop(url)


# --- not a store ------------------------------------------------------------------------------------------------------


def test_another_programs_schema_is_refused_and_not_touched(postgres: AnyServer, postgres_url: str) -> None:
    name = schema_of(postgres_url)
    postgres.execute(f"CREATE SCHEMA {name}; CREATE TABLE {name}.contacts (name TEXT)")
    with pytest.raises(StoreUnusable, match=r"another program's tables; choose another with \?schema="):
        PostgresStore(postgres_url)
    assert postgres.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (name,)) == [("contacts",)]


def test_an_empty_schema_that_an_administrator_made_becomes_a_store(postgres: AnyServer, postgres_url: str) -> None:
    postgres.execute(f"CREATE SCHEMA {schema_of(postgres_url)}")
    used(postgres_url)


@pytest.mark.parametrize("schema", ["", "pg_mine", "1st", "a-b", "a.b", 'a"b', "x" * 64, "naïve", "a;b", "%00"])
def test_a_schema_that_is_no_plain_name_is_refused(schema: str) -> None:
    with pytest.raises(StoreUnusable, match="schema must be a plain name"):
        parse_location(f"postgresql://me:hush@localhost/memory?schema={schema}", 5)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hush@localhost:port/memory",
        "postgresql://me:hush@localhost/memory?nonsense=1",
        "postgresql://me:hush@[::1/memory",
        "postgresql://me:hu%zzsh@localhost/memory",
    ],
)
def test_a_wrong_url_is_told_without_its_password(url: str) -> None:
    with pytest.raises(StoreUnusable) as told:
        PostgresStore(url)
    assert "postgresql://" in str(told.value)
    assert "hush" not in str(told.value)
    assert "hu%zzsh" not in str(told.value)


# --- unsuitable servers -----------------------------------------------------------------------------------------------


def refused(url: str, kind: type[HoldfastError], *words: str) -> None:
    """Assert that opening fails soon, with these words and without the password."""
    started = time.monotonic()
    with pytest.raises(kind) as told:
        PostgresStore(url, busy_seconds=2)
    assert time.monotonic() - started < 30, "it must not be waited for without bound"
    for word in words:
        assert word in str(told.value)
    assert PASSWORD not in str(told.value)
    assert PASSWORD not in repr(told.value.__cause__ or "")


def own(server: AnyServer) -> Server:
    if not isinstance(server, Server):
        pytest.skip("needs a server of the tests' own")
    return server


def test_a_host_that_is_unknown(postgres: AnyServer) -> None:
    refused(f"postgresql://me:{PASSWORD}@no-such-host.invalid/memory", StoreUnavailable, "host name is unknown")


def test_a_server_that_is_down() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"postgresql://me:{PASSWORD}@127.0.0.1:{taken.getsockname()[1]}/memory"
        refused(url, StoreUnavailable, "nothing answers there; check host and port", "me:***@127.0.0.1")


def test_a_server_that_accepts_and_says_nothing() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        refused(f"postgresql://me:{PASSWORD}@127.0.0.1:{silent.getsockname()[1]}/memory", StoreUnavailable)


def test_a_wrong_password(postgres: AnyServer) -> None:
    refused(own(postgres).url(password="hush-hush"), StoreUnusable, "refuses this user or password")


def test_a_database_that_does_not_exist(postgres: AnyServer) -> None:
    refused(own(postgres).url(database="nowhere"), StoreUnusable, "no such database", "createdb")


def test_a_user_without_rights(postgres: AnyServer) -> None:
    server = own(postgres)
    server.execute(f"CREATE ROLE guest LOGIN PASSWORD '{PASSWORD}'")
    try:
        refused(server.url(user="guest"), StoreUnusable, "permission denied", "rights")
    finally:
        server.execute("DROP ROLE guest")


@pytest.fixture
def database(postgres: AnyServer) -> Iterator[str]:
    """A separate database without pgvector."""
    server = own(postgres)
    name = f"db_{new_schema()}"
    server.execute(f"CREATE DATABASE {name}")
    yield name
    server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_pgvector_is_created_where_the_user_may(postgres: AnyServer, database: str) -> None:
    server = own(postgres)
    used(server.url(database=database))
    assert server.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'", database=database)


def test_pgvector_that_the_user_may_not_create(postgres: AnyServer, database: str) -> None:
    server = own(postgres)
    server.execute(f"CREATE ROLE tenant LOGIN PASSWORD '{PASSWORD}'")
    server.execute(f"GRANT CREATE ON DATABASE {database} TO tenant")
    try:
        # Any role that may create in the database can create a trusted extension; on many servers pgvector is not one.
        control = server._bin.parent / "share" / "extension" / "vector.control"
        if "trusted = true" in control.read_text():
            server.execute(f"REVOKE CREATE ON DATABASE {database} FROM tenant")
        words = "may not create it; run CREATE EXTENSION vector"
        refused(server.url(user="tenant", database=database), StoreUnusable, words)
    finally:
        server.execute(f"REVOKE ALL ON DATABASE {database} FROM tenant")
        server.execute("DROP ROLE tenant")


def test_pgvector_that_is_not_installed(postgres: AnyServer, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = psycopg.Connection.execute

    def without(self: Any, query: Any, *given: Any, **more: Any) -> Any:
        # The server's real answer to a missing extension.
        asked = "CREATE EXTENSION IF NOT EXISTS vectorless" if query == _CREATE else query
        return real(self, asked, *given, **more)

    monkeypatch.setattr(psycopg.Connection, "execute", without)
    refused(own(postgres).url(database=database), StoreUnusable, "pgvector is not installed on this server")


_CREATE = "CREATE EXTENSION IF NOT EXISTS vector"


def test_a_pgvector_that_is_too_old(postgres: AnyServer, database: str) -> None:
    server = own(postgres)
    used(server.url(database=database))
    server.execute("UPDATE pg_extension SET extversion = '0.6.2' WHERE extname = 'vector'", database=database)
    words = ("pgvector 0.6.2", "0.7 or newer", "ALTER EXTENSION vector UPDATE")
    refused(server.url(database=database), StoreUnusable, *words)


def test_a_server_that_is_too_old(postgres: AnyServer) -> None:
    place = parse_location(postgres.url(), 5)
    schema.check_server(140_000, place)
    with pytest.raises(StoreUnusable, match="runs PostgreSQL 13; Holdfast needs 14 or newer: upgrade"):
        schema.check_server(130_014, place)


def test_a_user_with_too_few_connections(postgres: AnyServer, database: str) -> None:
    server = own(postgres)
    server.execute(f"CREATE ROLE few LOGIN PASSWORD '{PASSWORD}' CONNECTION LIMIT 0")
    try:
        refused(server.url(user="few", database=database), StoreBusy, "no connection left", "POSTGRES_CONNECTIONS")
    finally:
        server.execute("DROP ROLE few")


def test_a_replica_is_refused_as_it_takes_no_writes() -> None:
    with Server() as primary:
        used(primary.url())
        with Server.replica_of(primary) as replica:
            with pytest.raises(StoreReadOnly, match="target_session_attrs=read-write"):
                used(replica.url(), busy_seconds=1)


def test_without_psycopg_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    import holdfast

    for name in [name for name in sys.modules if name.startswith(("psycopg", "holdfast.stores.postgres"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreUnusable, match=r"needs psycopg; install it with: .*pip install .*\[postgres\]") as told:
        holdfast.open(f"postgresql://me:hush@localhost/{DATABASE}", embedder="fake")
    assert "hush" not in str(told.value)
