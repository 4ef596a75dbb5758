"""PostgreSQL's differences in the shared statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import psycopg

from holdfast.stores.postgres.parameters import HalfVector
from holdfast.stores.sql.checksums import RowCheck, RowLayout
from holdfast.stores.sql.dialect import Database, Dialect, NewRows, Rows, prepend_numbers

_LAYOUTS = (
    "SELECT c.relname, (SELECT array_agg(a.attname::text ORDER BY k.place) FROM unnest(i.indkey) WITH ORDINALITY"
    " AS k (attnum, place) JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum),"
    " (SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid"
    " AND a.attnum > 0 AND NOT a.attisdropped)"
    " FROM pg_class c JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary"
    " WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace ORDER BY c.relname"
)
HEADER = 4  # bytes before a vector: dimensions and a reserved field, 16 bits each


class PostgresDialect(Dialect):
    """Implements `Dialect`."""

    chunk = 5_000
    skip_locked = " FOR UPDATE SKIP LOCKED"
    operations_by_action = False
    blank_texts = "DELETE FROM texts"
    has_text_condition = "TRUE"
    vector_bytes = "2 * vector_dims(v.vector)"
    text_bytes = "octet_length(t.text)"
    store_bytes = (
        "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
        " WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
    )
    unreadable = (psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted)

    def among(self, column: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
        first = values[0] if values else 0
        kind = "bigint" if isinstance(first, int) else "bytea" if isinstance(first, bytes) else "text"
        return f"{column} = ANY (?::{kind}[])", [list(values)]

    def part_of(self, column: str, part: str) -> str:
        return f"({column}::jsonb ->> '{part}')"

    def use_index(self, index: str | None) -> str:
        return ""  # with statistics, it reads a page from the index in the right order by itself

    def vector(self, raw: bytes) -> HalfVector:
        """Convert little-endian halves to pgvector's form: their count, then big-endian halves."""
        swapped = np.frombuffer(raw, "<u2").byteswap().tobytes()
        return HalfVector((len(raw) // 2).to_bytes(2, "big") + b"\0\0" + swapped)

    def vectors(self, found: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
        """Swap the bytes of all vectors at once: a large partition has very many."""
        joined = b"".join([row[2][HEADER:] for row in found])
        swapped = np.frombuffer(joined, "<u2").byteswap().tobytes()
        converted, start = [], 0
        for number, piece, vector in found:
            end = start + len(vector) - HEADER
            converted.append((number, piece, swapped[start:end]))
            start = end
        return converted

    def reserve_numbers(self, database: Database, count: int) -> Rows:
        return database.execute("SELECT nextval('records_number_seq') FROM generate_series(1, ?)", (count,))

    def add_records(self, database: Database, drawn: Any, records: NewRows, texts: NewRows) -> Sequence[int]:
        numbers = [int(row[0]) for row in drawn.fetchall()]
        self.insert(database, "records", *prepend_numbers(numbers, records))
        self.insert(database, "texts", *prepend_numbers(numbers, texts))
        return numbers

    def add_text(self, database: Database, drawn: Any, text: NewRows) -> int:
        (number,) = (int(row[0]) for row in drawn.fetchall())
        self.insert(database, "texts", *prepend_numbers([number], text))
        return number

    def layouts(self, database: Database) -> Sequence[RowLayout]:
        found = database.execute(_LAYOUTS).fetchall()
        return [
            RowLayout(table, tuple(keys), tuple(columns[:-1]))
            for table, keys, columns in found
            if "checksum" in columns
        ]

    def check_rows(self, database: Database, layout: RowLayout, limit: int) -> RowCheck:
        # The row as the trigger has it: with an empty checksum at the end.
        columns = ", ".join(
            "halfvec_send(vector)" if layout.table == "vectors" and column == "vector" else column
            for column in layout.columns
        )
        wrong = f"checksum <> hashtextextended(ROW({columns}, NULL)::text, 0)"
        total, unchecked = database.execute(
            f"SELECT count(*) FILTER (WHERE {wrong}), count(*) FILTER (WHERE checksum IS NULL) FROM {layout.table}"
        ).fetchone()
        damaged = database.execute(
            f"SELECT {', '.join(layout.keys)} FROM {layout.table} WHERE {wrong}"
            f" ORDER BY {', '.join(layout.keys)} LIMIT {limit:d}"
        ).fetchall()
        return RowCheck(damaged, int(total), int(unchecked))

    def fill_checksums(
        self, database: Database, layout: RowLayout, after: Sequence[Any] | None, last: Sequence[Any]
    ) -> None:
        within, values = layout.range(after, last)
        key = ", ".join(layout.keys)
        # The trigger computes them. Rows that others change get theirs by that.
        database.execute(
            f"UPDATE {layout.table} SET checksum = NULL WHERE ({key}) IN (SELECT {key} FROM {layout.table}"
            f" WHERE {within} AND checksum IS NULL FOR NO KEY UPDATE SKIP LOCKED)",
            values,
        )

    def check(self, database: Database) -> list[tuple[str, str]]:
        found = database.execute(
            "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            " WHERE NOT i.indisvalid AND c.relnamespace = current_schema()::regnamespace"
        )
        damaged = database.execute(
            "SELECT checksum_failures FROM pg_stat_database"
            " WHERE datname = current_database() AND checksum_failures > 0"
        )
        return [("indexes", f"{name} is not valid") for (name,) in found] + [
            ("pages", f"the server found {count} damaged pages") for (count,) in damaged
        ]


POSTGRES = PostgresDialect()
