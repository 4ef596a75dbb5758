"""SQLite's differences in the shared statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain
from marshal import dumps
from operator import itemgetter
from typing import TYPE_CHECKING, Any
from zlib import crc32

from holdfast.stores.sql.dialect import Database, Dialect, NewRows, insert_statement, prepend_numbers

if TYPE_CHECKING:
    from holdfast.stores.sql.checksums import RowCheck, RowLayout

_TEXT_COLUMNS = ("sender", "source", "external_id", "author", "reason", "metadata", "text")
_ROWS = 100  # in one statement
# Added to every checksum: SQLite stores each in six bytes then, so that a blanked text stays in place.
BASE = 1 << 40
# The columns of the tables that `add` inserts into, as it names them. Their checksums are parameters of the
# INSERT: a trigger would cost a tenth of an add (`docs/decisions/0023`). A text gets its number when it is inserted.
INSERTED = {
    "texts": _TEXT_COLUMNS,
    "records": (
        "number", "partition_id", "change", "kind", "scope_id", "source_key", "recorded_at", "analyzer", "flags",
        "length", "embedder_id", "terms", "id", "revision", "position", "status", "trust", "said_at", "conversation_id",
        "turn_id", "role", "external_key", "content_key", "plane", "authority", "slot_key", "superseded_at",
        "valid_from", "valid_to",
    ),
    "vectors": ("partition_id", "number", "piece", "embedder_id", "vector"),
    "turns": (
        "conversation_id", "sequence", "id", "external_key", "state", "delivery", "first_position", "messages",
        "recorded_at", "words",
    ),
    "events": (
        "space", "id", "kind", "scope", "partition_id", "plane", "record_key", "content_hash", "at", "details",
    ),
    "operations": (
        "id", "space", "scope", "partition_id", "actor_kind", "actor_id", "action", "outcome", "error_code", "touched",
        "started_at", "duration_micros", "agent", "project", "issue", "run", "binding", "source_kind", "hook",
        "details",
    ),
}  # fmt: skip


_PLAIN = frozenset({str, int, float, bytes, type(None)})


def checksum(values: Sequence[Any]) -> int:
    """Return the checksum of a row. The encoding is version 2 of `marshal`, which is the same in every Python 3."""
    if not _PLAIN.issuperset(map(type, values)):
        values = [_plain(value) for value in values]
    return BASE + crc32(dumps(tuple(values), 2))


def _plain(value: Any) -> Any:
    """Return a value as the database reads it: one of a subclass, such as an enumeration, becomes plain."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, int):
        return int.__int__(value)
    # Anything else has no encoding: the database refuses it when it is bound.
    return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else None


@cache
def _with_checksum(
    table: str, columns: tuple[str, ...]
) -> tuple[tuple[str, ...], Callable[[Sequence[Any]], Sequence[Any]]]:
    """Return the columns with that of the checksum, and what makes a row of all that it covers."""
    every = INSERTED[table]
    if columns == every[: len(columns)]:
        missing = (None,) * (len(every) - len(columns))
        return (*columns, "checksum"), (lambda row: (*row, *missing)) if missing else tuple
    places = {column: place for place, column in enumerate(columns)}
    pick = itemgetter(*[places.get(column, -1) for column in every])
    return (*columns, "checksum"), lambda row: pick((*row, None))


@cache
def _insert_rows(table: str, columns: tuple[str, ...]) -> str:
    row = f"({_placeholders(len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * _ROWS)}"


@cache
def _placeholders(count: int) -> str:
    return ", ".join("?" * count)


class SqliteDialect(Dialect):
    """Implements `Dialect`."""

    chunk = 500
    skip_locked = ""  # there is one writer
    operations_by_action = True
    # A blank of the same length stays in place, so that nothing around it moves (`docs/decisions/0004`). A row from
    # before there were checksums has none in it, and gets one byte for that column.
    blank_texts = "UPDATE texts SET " + ", ".join(
        f"{column} = iif({column} IS NULL, NULL, zeroblob(max(0, length(CAST({column} AS BLOB)){less})))"
        for column in _TEXT_COLUMNS
        for less in (" - (checksum IS NULL)" if column == "text" else "",)
    )
    has_text_condition = f"'text' IN ({', '.join(f'typeof(t.{column})' for column in _TEXT_COLUMNS)})"
    vector_bytes = "length(v.vector)"
    text_bytes = "length(CAST(t.text AS BLOB))"
    store_bytes = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    unreadable = (sqlite3.DatabaseError,)

    def among(self, column: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
        return f"{column} IN ({_placeholders(len(values))})", list(values)

    def part_of(self, column: str, part: str) -> str:
        return f"json_extract({column}, '$.{part}')"

    def use_index(self, index: str | None) -> str:
        # Without statistics it prefers the order of the primary key, and scans a whole space.
        return "" if index is None else f" INDEXED BY {index}"

    def vector(self, raw: bytes) -> bytes:
        return raw

    def vectors(self, found: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
        return found

    def reserve_numbers(self, database: Database, count: int) -> None:
        """Do nothing: inserting the texts assigns the numbers."""

    def insert(
        self, database: Database, table: str, columns: tuple[str, ...], values: Sequence[Sequence[Any]], tail: str = ""
    ) -> None:
        """Insert many rows some at a time: each statement gives up the interpreter, and must then wait to get it back
        from threads that compute."""
        if table in INSERTED:
            columns, complete = _with_checksum(table, columns)
            values = [(*row, checksum(complete(row))) for row in values]
        whole = len(values) - len(values) % _ROWS
        for start in range(0, whole, _ROWS):
            flat = list(chain.from_iterable(values[start : start + _ROWS]))
            database.execute(f"{_insert_rows(table, columns)}{tail}", flat)
        if whole < len(values):
            super().insert(database, table, columns, values[whole:], tail)

    def add_records(self, database: Any, drawn: None, records: NewRows, texts: NewRows) -> Sequence[int]:
        first = self.add_text(database, drawn, texts)
        if len(texts.values) > 1:
            # There is one writer, so the numbers are consecutive.
            self.insert(database, "texts", texts.columns, texts.values[1:])
        numbers = range(first, first + len(texts.values))
        self.insert(database, "records", *prepend_numbers(numbers, records))
        return numbers

    def add_text(self, database: Any, drawn: None, text: NewRows) -> int:
        columns, complete = _with_checksum("texts", text.columns)
        row = text.values[0]
        return int(database.execute(insert_statement("texts", columns), (*row, checksum(complete(row)))).lastrowid)

    # The module is imported where it is used, because it needs this one.

    def layouts(self, database: Database) -> Sequence[RowLayout]:
        from holdfast.stores.sqlite.checksums import layouts

        return layouts(database)

    def check_rows(self, database: Database, layout: RowLayout, limit: int) -> RowCheck:
        from holdfast.stores.sqlite.checksums import check_rows

        return check_rows(database, layout, limit)

    def fill_checksums(
        self, database: Database, layout: RowLayout, after: Sequence[Any] | None, last: Sequence[Any]
    ) -> None:
        from holdfast.stores.sqlite.checksums import fill

        fill(database, layout, after, last)

    def check(self, database: Database) -> list[tuple[str, str]]:
        from holdfast.stores.sqlite.checksums import changed_schema

        found = [("file", row[0]) for row in database.execute("PRAGMA integrity_check(20)") if row[0] != "ok"]
        found += [("foreign keys", f"a row of {row[0]}") for row in database.execute("PRAGMA foreign_key_check")]
        found += [("schema", f"{name} is not as Holdfast made it") for name in changed_schema(database)]
        return found + [
            ("types", f"{count} rows of {table} hold a value of the wrong type")
            for table, count in _count_mistyped(database)
            if count
        ]


def _count_mistyped(database: Database) -> Iterator[tuple[str, int]]:
    """Count rows per table with a value of the wrong type, which SQLite allows. Blanked texts have one: not counted."""
    tables = database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name <> 'texts'"
    ).fetchall()
    for (table,) in tables:
        columns = database.execute(f"PRAGMA table_info({table})").fetchall()
        wrong = " OR ".join(f"{row[1]} IS NOT NULL AND typeof({row[1]}) <> '{row[2].lower()}'" for row in columns)
        yield table, int(database.execute(f"SELECT count(*) FROM {table} WHERE {wrong}").fetchone()[0])


SQLITE = SqliteDialect()
