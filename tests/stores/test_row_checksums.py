"""Checksums of rows: a change of any column is found, and nothing that Holdfast writes looks changed."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from damage import Place

import holdfast
from holdfast.domain.manifest import ROWS
from holdfast.domain.results import UNCHECKED
from holdfast.errors import StoreCorrupt
from holdfast.stores.postgres.connection import Connector
from holdfast.stores.postgres.dialect import POSTGRES
from holdfast.stores.postgres.location import parse_location
from holdfast.stores.sql.checksums import VECTORS, RowLayout
from holdfast.stores.sqlite.connection import connect
from holdfast.stores.sqlite.dialect import INSERTED, SQLITE, checksum

_OTHER = {"text": "{0} || 'x'", "bytea": "{0} || '\\x00'", "blob": "CAST({0} || 'x' AS BLOB)"}


def test_a_checksum_is_the_same_in_every_version_of_python() -> None:
    assert checksum((1, None, "Zoë", b"\0\xff", 1 << 40, -1, 0.5)) == 0x1006DFE3692


@contextmanager
def connected(place: Place) -> Iterator[tuple[Any, Any]]:
    """A connection that bypasses triggers and foreign keys, as damage does."""
    if place.server is None:
        with closing(connect(place.location, 1)) as connection:
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.execute("PRAGMA ignore_check_constraints = ON")
            yield connection, SQLITE
        return
    with closing(Connector(parse_location(place.location, 5), 5).prepare()) as session:
        session.execute("SET session_replication_role = replica")
        yield session, POSTGRES


def changed(kind: str, column: str) -> str:
    return _OTHER.get(kind.lower(), "{0} + 1000").format(column)


def damage(database: Any, layout: RowLayout, column: str) -> bool:
    """Change a column of the first row that has a value there; return whether there is one."""
    kinds = {SQLITE: "typeof({})", POSTGRES: "pg_typeof({})::text"}
    dialect = SQLITE if isinstance(database, sqlite3.Connection) else POSTGRES
    found = database.execute(
        f"SELECT {kinds[dialect].format(column)}, {', '.join(layout.keys)} FROM {layout.table}"
        f" WHERE {column} IS NOT NULL LIMIT 1"
    ).fetchone()
    if found is None or found[0] == "halfvec":
        return False
    key = " AND ".join(f"{name} = ?" for name in layout.keys)
    database.execute(f"UPDATE {layout.table} SET {column} = {changed(found[0], column)} WHERE {key}", found[1:])
    return True


def test_any_column_of_any_row_that_changed_is_found(place: Place) -> None:
    with holdfast.open(place.location, embedder="fake", work=False) as memory:
        memory.add("canary five", subject="ana")  # for a row of `operations`, and one of `events`
    unlike, tables = 0, set()
    with connected(place) as (database, dialect):
        for layout in dialect.layouts(database):
            for column in layout.columns:
                if place.server is not None and column in ("status", "kind"):
                    continue  # the server checks their values, also then
                if dialect is SQLITE and (layout.table, column) == ("texts", "number"):
                    continue  # the text is of no record then, which another check finds
                database.execute("BEGIN")
                if damage(database, layout, column):
                    found = dialect.check_rows(database, layout, 5)
                    assert (found.total, found.unchecked) == (1, 0), (layout.table, column)
                    unlike += 1
                    tables.add(layout.table)
                database.execute("ROLLBACK")
    assert unlike > 60
    assert {*INSERTED, "partitions", "scopes", "conversations", "evidence"} <= tables


def test_a_damaged_row_does_not_become_sound_when_it_is_updated(place: Place) -> None:
    place.damage("UPDATE records SET trust = trust + 1 WHERE position = 0 AND kind = 0")
    before = [finding for finding in place.all_findings() if finding.check == ROWS]
    assert before
    with holdfast.open(place.location, embedder="fake") as memory:
        memory.rebuild()
        assert [finding for finding in memory.verify().findings if finding.check == ROWS] == before


def test_a_rebuild_makes_damaged_vectors_and_terms_sound(place: Place) -> None:
    with holdfast.open(place.location, embedder="fake") as memory:
        memory.rebuild()
        assert memory.verify().ok
    other = "x'0001'" if place.server is None else "'\\x00010000'::bytea"
    place.damage(
        f"UPDATE records SET terms = {other}, length = length + 1 WHERE kind = 0 AND position = 0",
        "UPDATE vectors SET piece = piece + 7 WHERE number = (SELECT min(number) FROM vectors)",
    )
    assert {ROWS, VECTORS} <= {finding.check for finding in place.all_findings()}
    with holdfast.open(place.location, embedder="fake") as memory:
        memory.rebuild()
        assert memory.verify().findings == ()


def test_a_finding_names_the_table_and_the_record(place: Place) -> None:
    place.damage(
        f"UPDATE texts SET text = 'x' WHERE number = (SELECT number FROM records WHERE id = '{place.message}')"
    )
    (finding,) = place.all_findings()
    assert finding.problem.startswith("texts number=")
    assert f"(record {place.message}) was changed; restore the store from a copy" in finding.problem


def test_a_damaged_store_is_not_copied_as_sound(place: Place, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    holdfast.copy(place.location, target)
    with holdfast.open(target, embedder="fake") as memory:
        verified = memory.verify()
    assert verified.ok
    assert UNCHECKED not in verified.checked
    place.damage("UPDATE records SET trust = trust + 1 WHERE position = 0 AND kind = 0")
    with pytest.raises(StoreCorrupt, match=r"records number=.* was changed"):
        holdfast.copy(place.location, tmp_path / "other.db")


def test_no_checksum_of_a_forgotten_text_is_left_in_any_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with holdfast.open(path, embedder="fake", work=False) as memory:
        ids = [str(memory.add(f"PIN {n:04}", subject=f"s{n % 3}").message_ids[0]) for n in range(60)]

        def stored() -> dict[str, bytes]:
            with closing(sqlite3.connect(path)) as database:
                found = database.execute(
                    "SELECT r.id, coalesce(t.checksum, c.checksum) FROM records r JOIN texts t ON t.number = r.number"
                    " LEFT JOIN text_checksums c ON c.number = t.number"
                )
                return {record_id: value.to_bytes(6, "big") for record_id, value in found}

        before = stored()
        gone = ids[::2]
        for record_id in gone:
            assert memory.forget(record_id, subject=f"s{ids.index(record_id) % 3}").scrubbed
        left = b"\n\n".join(each.read_bytes() for each in sorted(tmp_path.iterdir()))
        assert [record_id for record_id in gone if before[record_id] in left] == []
        assert all(before[record_id] in left for record_id in ids[1::2])
        assert memory.verify().ok


def test_every_kind_of_row_is_written_with_a_checksum(tmp_path: Path) -> None:
    async def write() -> None:
        async with holdfast.open_async(tmp_path / "memory.db", embedder="fake", work=False) as memory:
            added = await memory.add({"text": "I live in Lisbon.", "id": "m1"}, subject="ana", idempotency_key="k")
            evidence = [str(added.message_ids[0])]
            first = await memory.remember("Ana likes tea.", subject="ana", evidence=evidence)
            await memory.correct(first.id, "Ana likes coffee.", subject="ana")
            await memory.add_resource("A long story.", name="story", subject="ana")
            await memory.search("tea", subject="ana")
            await memory.flush(subject="ana")
            await memory.drain()
            await memory.forget(evidence[0], subject="ana")
            found = await memory.verify()
            assert found.findings == ()
            assert UNCHECKED not in found.checked

    asyncio.run(write())
