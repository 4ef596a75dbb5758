"""SQLite's differences in the shared statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any

from holdfast.stores.sql.dialect import Database, Dialect, NewRows, insert_statement, prepend_numbers

_TEXT_COLUMNS = ("sender", "source", "external_id", "author", "reason", "metadata", "text")

_ROWS = 100  # in one statement


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
    # A blank of the same length stays in place, so that nothing around it moves (`docs/decisions/0004`).
    blank_texts = "UPDATE texts SET " + ", ".join(
        f"{column} = iif({column} IS NULL, NULL, zeroblob(length(CAST({column} AS BLOB))))" for column in _TEXT_COLUMNS
    )
    has_text_condition = f"'text' IN ({', '.join(f'typeof(t.{column})' for column in _TEXT_COLUMNS)})"
    vector_bytes = "length(v.vector)"

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

    def insert(self, database: Database, table: str, columns: tuple[str, ...], values: Sequence[Sequence[Any]]) -> None:
        """Insert many rows some at a time: each statement gives up the interpreter, and must then wait to get it back
        from threads that compute."""
        whole = len(values) - len(values) % _ROWS
        for start in range(0, whole, _ROWS):
            flat = list(chain.from_iterable(values[start : start + _ROWS]))
            database.execute(_insert_rows(table, columns), flat)
        if whole < len(values):
            super().insert(database, table, columns, values[whole:])

    def add_records(self, database: Any, drawn: None, records: NewRows, texts: NewRows) -> Sequence[int]:
        first = int(database.execute(insert_statement("texts", texts.columns), texts.values[0]).lastrowid)
        if len(texts.values) > 1:
            # There is one writer, so the numbers are consecutive.
            self.insert(database, "texts", texts.columns, texts.values[1:])
        numbers = range(first, first + len(texts.values))
        self.insert(database, "records", *prepend_numbers(numbers, records))
        return numbers

    def add_text(self, database: Any, drawn: None, text: NewRows) -> int:
        return int(database.execute(insert_statement("texts", text.columns), text.values[0]).lastrowid)

    def check(self, database: Database) -> list[tuple[str, str]]:
        found = [("file", row[0]) for row in database.execute("PRAGMA integrity_check(20)") if row[0] != "ok"]
        found += [("foreign keys", f"a row of {row[0]}") for row in database.execute("PRAGMA foreign_key_check")]
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
