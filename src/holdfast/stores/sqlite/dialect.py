"""What is SQLite's own in the statements that the stores share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from holdfast.stores.sql.dialect import Database, NewRows, insertion, numbered

_TEXT_COLUMNS = ("sender", "source", "external_id", "author", "reason", "metadata", "text")


@cache
def _marks(count: int) -> str:
    return ", ".join("?" * count)


class SqliteDialect:
    """Implements `Dialect`."""

    chunk = 500
    skip_locked = ""  # there is one writer
    trail_by_action = True
    # A blank of the same length stays in its place, and so does everything around it (`docs/decisions/0004`).
    blank_texts = "UPDATE texts SET " + ", ".join(
        f"{column} = iif({column} IS NULL, NULL, zeroblob(length(CAST({column} AS BLOB))))" for column in _TEXT_COLUMNS
    )
    written = f"'text' IN ({', '.join(f'typeof(t.{column})' for column in _TEXT_COLUMNS)})"
    vector_bytes = "length(v.vector)"

    def among(self, column: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
        return f"{column} IN ({_marks(len(values))})", list(values)

    def part_of(self, column: str, part: str) -> str:
        return f"json_extract({column}, '$.{part}')"

    def by(self, index: str | None) -> str:
        # Without statistics it prefers the order of the primary key, and walks through all of a space.
        return "" if index is None else f" INDEXED BY {index}"

    def vector(self, raw: bytes) -> bytes:
        return raw

    def vectors(self, found: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
        return found

    def draw(self, database: Database, count: int) -> None:
        """Numbers come with the texts."""

    def add_records(self, database: Any, drawn: None, records: NewRows, texts: NewRows) -> Sequence[int]:
        statement = insertion("texts", texts.columns)
        first = int(database.execute(statement, texts.values[0]).lastrowid)
        if len(texts.values) > 1:
            # Nobody else writes now, so the numbers follow one another.
            database.executemany(statement, texts.values[1:])
        numbers = range(first, first + len(texts.values))
        self.insert(database, "records", *numbered(numbers, records))
        return numbers

    def add_text(self, database: Any, drawn: None, text: NewRows) -> int:
        return int(database.execute(insertion("texts", text.columns), text.values[0]).lastrowid)

    def insert(self, database: Database, table: str, columns: tuple[str, ...], values: Sequence[Sequence[Any]]) -> None:
        if len(values) == 1:
            database.execute(insertion(table, columns), values[0])
        else:
            database.executemany(insertion(table, columns), values)

    def check(self, database: Database) -> list[tuple[str, str]]:
        found = [("file", row[0]) for row in database.execute("PRAGMA integrity_check(20)") if row[0] != "ok"]
        found += [("foreign keys", f"a row of {row[0]}") for row in database.execute("PRAGMA foreign_key_check")]
        return found + [
            ("types", f"{count} rows of {table} hold another kind of value")
            for table, count in _mistyped(database)
            if count
        ]


def _mistyped(database: Database) -> Iterator[tuple[str, int]]:
    """Per table, the rows with a value of another kind than its column's, which SQLite takes. Texts are blanked so."""
    tables = database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name <> 'texts'"
    ).fetchall()
    for (table,) in tables:
        columns = database.execute(f"PRAGMA table_info({table})").fetchall()
        wrong = " OR ".join(f"{row[1]} IS NOT NULL AND typeof({row[1]}) <> '{row[2].lower()}'" for row in columns)
        yield table, int(database.execute(f"SELECT count(*) FROM {table} WHERE {wrong}").fetchone()[0])


SQLITE = SqliteDialect()
