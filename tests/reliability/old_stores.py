"""Stores written by earlier versions: a dump per kind of store and schema, and its expected content.

`PYTHONPATH=tests python tests/reliability/old_stores.py` writes the missing dumps of the current schema.
Run it once, before a release; a dump is never rewritten.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import holdfast
from faults import points
from faults.places import Place, PostgresPlace, SqlitePlace
from faults.zygote import Tell
from holdfast.stores.postgres import schema as postgres_schema
from holdfast.stores.sqlite import schema as sqlite_schema
from holdfast.testing import CountingIds, FixedClock
from postgres import Server, schema_of

FOLDER = Path(__file__).parent / "schemas"
SCHEMAS: dict[str, Any] = {"sqlite": sqlite_schema, "postgres": postgres_schema}
_NAME = "a_store_of_another_time"
# Migrations that a later version might have.
EXTRA = (
    "CREATE TABLE extra_one (value TEXT);\nCREATE INDEX extra_one_value ON extra_one (value);\n",
    "CREATE TABLE extra_two (value TEXT);\nINSERT INTO extra_two SELECT id FROM records;\n",
)


def newest(kind: str) -> int:
    return int(SCHEMAS[kind].migrations()[-1][0])


def versions(kind: str) -> list[int]:
    """Versions that have a dump."""
    return sorted(int(path.stem.rpartition("-")[2]) for path in FOLDER.glob(f"{kind}-*.sql"))


async def fill(location: str) -> None:
    """Write the content of every dump: something in each table."""
    opening = holdfast.open_async(location, embedder="fake", clock=FixedClock(), new_ids=CountingIds(), work=False)
    async with opening as memory:
        said = [{"text": "I live in Lisbon.", "id": "m1", "metadata": {"k": "v"}}, "I work as a nurse."]
        added = await memory.add(said, subject="ana", conversation="home", source="chat", idempotency_key="key")
        await memory.add({"text": "Zoë said: 你好", "sender": "Zoë", "role": "assistant"}, app="app", channel="c")
        await memory.flush(subject="ana", conversation="home")
        await memory.drain()
        evidence = [str(added.message_ids[0])]
        first = await memory.remember("Ana likes tea.", subject="ana", evidence=evidence, idempotency_key="key2")
        await memory.correct(first.id, "Ana likes coffee.", subject="ana", reason="she said so")
        gone = await memory.add({"text": "to be forgotten", "id": "m2"}, subject="bob")
        await memory.forget(str(gone.message_ids[0]), subject="bob")
        await memory.add("still to be flushed", subject="bob")


def restore(kind: str, version: int, place: Place, server: Server | None = None) -> None:
    script = (FOLDER / f"{kind}-{version}.sql").read_text("utf-8")
    if kind == "sqlite":
        with contextlib.closing(sqlite3.connect(place.location)) as database:
            database.executescript(script)
    else:
        assert server is not None
        server.execute(script.replace(_NAME, schema_of(place.location)))


# --- in separate processes --------------------------------------------------------------------------------------------


def upgrade(tell: Tell, kind: str, location: str, point: str | None, passage: int) -> None:
    """Open the store as a version with two more migrations; die at the point if one is given."""
    schema = SCHEMAS[kind]
    steps = schema.migrations()
    more = [(steps[-1][0] + 1 + number, script) for number, script in enumerate(EXTRA)]
    schema.migrations = lambda: [*steps, *more]
    if point is not None:
        points.die_at(point, passage)
    with holdfast.open(location, embedder="fake", work=False) as memory:
        tell(ok=memory.verify().ok, texts=sorted(record.text for record in memory.list(limit=1_000).items))


# --- writing dumps ----------------------------------------------------------------------------------------------------


def _dumped_sqlite(path: Path) -> Iterator[str]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        lines = list(database.iterdump())
        # SQLite keeps this table, empty, once any table used AUTOINCREMENT; it cannot be created by hand.
        counted = any("AUTOINCREMENT" in line for line in lines)
        yield from (line for line in lines if counted or '"sqlite_sequence"' not in line)
        for pragma in ("application_id", "user_version"):
            (value,) = database.execute(f"PRAGMA {pragma}").fetchone()
            yield f"PRAGMA {pragma} = {value};"


def _dumped_postgres(server: Server, schema: str) -> str:
    command = [str(server._bin / "pg_dump"), "--inserts", "--no-owner", "-n", schema, server.url()]
    dumped = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    # Drop lines that only `psql` understands and lines that change the session they are restored in.
    lines = [line for line in dumped.splitlines() if line and not re.match(r"--|\\|SET |SELECT pg_catalog.set", line)]
    return "\n".join(lines).replace(schema, _NAME)


def _write() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, Server() as server:
        for place in (SqlitePlace(Path(folder)), PostgresPlace(server)):
            target = FOLDER / f"{place.kind}-{newest(place.kind)}.sql"
            if target.exists():
                continue
            asyncio.run(fill(place.location))
            if place.kind == "sqlite":
                dumped = "\n".join(_dumped_sqlite(Path(place.location)))
            else:
                dumped = _dumped_postgres(server, schema_of(place.location))
            target.write_text(dumped + "\n", "utf-8")


if __name__ == "__main__":
    _write()
