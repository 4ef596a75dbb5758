"""What one database says differently from another, and the little that is asked of a connection.

Statements are written once, with `?` for values, in what SQLite and PostgreSQL both understand. A `Dialect` holds the
rest. Of a `Database` only two calls are used: SQLite's own connection is one as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol


class Rows(Protocol):
    """What a statement gave. A database on a network may wait for it only when it is looked at."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Database(Protocol):
    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Rows: ...

    def executemany(self, statement: str, values: Sequence[Sequence[Any]], /) -> object: ...


class NewRows(NamedTuple):
    columns: tuple[str, ...]
    values: Sequence[Sequence[Any]]


class Dialect(Protocol):
    """`chunk` is how many values one statement may name; `skip_locked` follows a SELECT of rows that several take from.

    `trail_by_action` says whether the trail is in order only within each kind of call.

    `blank_texts` is the head of the statement that takes the words of forgotten records away, and `written` the
    condition on a row of `texts` (as `t`) that still holds some. `vector_bytes` is how long the vector of a row of
    `vectors` (as `v`) is.
    """

    @property
    def chunk(self) -> int: ...

    @property
    def skip_locked(self) -> str: ...

    @property
    def trail_by_action(self) -> bool: ...

    @property
    def blank_texts(self) -> str: ...

    @property
    def written(self) -> str: ...

    @property
    def vector_bytes(self) -> str: ...

    def among(self, column: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
        """The condition that the column is one of the values, and what to bind for it."""

    def part_of(self, column: str, part: str) -> str:
        """One part of a scope that is kept as JSON."""

    def by(self, index: str | None) -> str:
        """What follows a table's name where its rows are to be found by that index."""

    def vector(self, raw: bytes) -> Any:
        """A vector as it is bound."""

    def vectors(self, found: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
        """(number, piece, vector) as they were read, as the port has them."""

    def draw(self, database: Database, count: int) -> Any:
        """Ask for the numbers of so many records to come, where they are given out beforehand."""

    def add_records(self, database: Database, drawn: Any, records: NewRows, texts: NewRows) -> Sequence[int]:
        """Insert rows of `records` and of `texts`, which are given without a number; those that they got, in order."""

    def add_text(self, database: Database, drawn: Any, text: NewRows) -> int:
        """Insert one row of `texts` that belongs to no record; its number."""

    def insert(
        self, database: Database, table: str, columns: tuple[str, ...], values: Sequence[Sequence[Any]]
    ) -> None: ...

    def check(self, database: Database) -> list[tuple[str, str]]:
        """What is wrong with the database itself: (what was looked at, what was found)."""


def numbered(numbers: Sequence[int], rows: NewRows) -> NewRows:
    """The rows with their numbers in front."""
    return NewRows(
        ("number", *rows.columns), [(number, *row) for number, row in zip(numbers, rows.values, strict=True)]
    )


@cache
def insertion(table: str, columns: tuple[str, ...]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def chunks(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
