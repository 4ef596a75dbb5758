"""Differences between SQL databases, and the minimal interface of a connection.

Statements are written once, with `?` for values, in SQL that SQLite and PostgreSQL both accept. A `Dialect` holds the
rest. A `Database` has only two methods: SQLite's own connection is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from holdfast.stores.sql.checksums import RowCheck, RowLayout


class Rows(Protocol):
    """The result of a statement. Over a network, it may be awaited only when it is read."""

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
    """`chunk` is the maximum of values in a statement; `skip_locked` ends a SELECT of rows that several workers claim.

    `operations_by_action` is true if operations are ordered only within each action.

    `blank_texts` is the head of the statement that erases the words of forgotten records, and `written` the condition
    on a row of `texts` (as `t`) that still has some. `vector_bytes` is the length of the vector in a row of `vectors`
    (as `v`), `text_bytes` that of the text in a row of `texts` (as `t`).

    `store_bytes` is the statement that measures the store.

    `unreadable` are the errors of the database that damage may cause.
    """

    chunk: int
    skip_locked: str
    operations_by_action: bool
    blank_texts: str
    has_text_condition: str
    vector_bytes: str
    text_bytes: str
    store_bytes: str
    unreadable: tuple[type[Exception], ...]

    def among(self, column: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
        """Return the condition that the column is one of the values, and its parameters."""

    def part_of(self, column: str, part: str) -> str:
        """Return the SQL for one part of a scope that is stored as JSON."""

    def use_index(self, index: str | None) -> str:
        """Return the SQL after a table's name that makes the statement use that index."""

    def vector(self, raw: bytes) -> Any:
        """Convert a vector to a parameter."""

    def vectors(self, found: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
        """Convert rows (number, piece, vector) as read to the port's form."""

    def reserve_numbers(self, database: Database, count: int) -> Any:
        """Reserve numbers for that many new records, if the database assigns them in advance."""

    def add_records(self, database: Database, drawn: Any, records: NewRows, texts: NewRows) -> Sequence[int]:
        """Insert rows of `records` and `texts`, which come without numbers; return their numbers in order."""

    def add_text(self, database: Database, drawn: Any, text: NewRows) -> int:
        """Insert one row of `texts` that belongs to no record; return its number."""

    def insert(
        self,
        database: Database,
        table: str,
        columns: tuple[str, ...],
        values: Sequence[Sequence[Any]],
        tail: str = "",
    ) -> None:
        """Insert rows; `tail` ends the statement."""
        statement = f"{insert_statement(table, columns)}{tail}"
        if len(values) == 1:
            database.execute(statement, values[0])
        else:
            database.executemany(statement, values)

    def layouts(self, database: Database) -> Sequence[RowLayout]:
        """Return the tables whose rows have checksums."""

    def check_rows(self, database: Database, layout: RowLayout, limit: int) -> RowCheck:
        """Compare the rows of a table with their checksums; name the first `limit` that differ."""

    def fill_checksums(
        self, database: Database, layout: RowLayout, after: Sequence[Any] | None, last: Sequence[Any]
    ) -> None:
        """Add the missing checksums of the rows after a key and up to another."""

    def check(self, database: Database) -> list[tuple[str, str]]:
        """Return problems of the database itself: (part checked, problem)."""


def prepend_numbers(numbers: Sequence[int], rows: NewRows) -> NewRows:
    """Prepend their numbers to the rows."""
    return NewRows(
        ("number", *rows.columns), [(number, *row) for number, row in zip(numbers, rows.values, strict=True)]
    )


@cache
def insert_statement(table: str, columns: tuple[str, ...]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def chunks(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
