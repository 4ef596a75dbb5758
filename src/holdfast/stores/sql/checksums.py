"""The check of all rows by their checksums, and filling those of an older store, in slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.domain.manifest import REBUILDS, ROWS
from holdfast.domain.results import UNCHECKED, Finding
from holdfast.ports.repositories.maintenance import RowPosition
from holdfast.stores.sql.dialect import Database, Dialect

(VECTORS,) = REBUILDS
_NAMED = 50  # damaged rows of a table that are named


class RowLayout(NamedTuple):
    """A table that has checksums: the columns of its key, and all but the checksum."""

    table: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]

    def range(self, after: Sequence[Any] | None, last: Sequence[Any]) -> tuple[str, list[Any]]:
        """Return the condition on rows after a key and up to another, and its values."""
        key, marks = ", ".join(self.keys), ", ".join("?" * len(self.keys))
        if after is None:
            return f"({key}) <= ({marks})", [*last]
        return f"({key}) > ({marks}) AND ({key}) <= ({marks})", [*after, *last]


class RowCheck(NamedTuple):
    """The first damaged rows of a table by key, how many there are, and how many rows have no checksum."""

    damaged: Sequence[Sequence[Any]]
    total: int
    unchecked: int


def check_rows(database: Database, dialect: Dialect) -> tuple[dict[str, int], list[Finding]]:
    findings: list[Finding] = []
    unchecked = 0
    for layout in dialect.layouts(database):
        try:
            found = dialect.check_rows(database, layout, _NAMED)
        except dialect.unreadable:
            findings.append(Finding(ROWS, f"{layout.table} cannot be read; {_advice(layout.table)}"))
            continue
        unchecked += found.unchecked
        findings += _findings(database, layout, found)
    return {UNCHECKED: unchecked} if unchecked else {}, findings


def _findings(database: Database, layout: RowLayout, found: RowCheck) -> list[Finding]:
    check = VECTORS if layout.table == "vectors" else ROWS
    findings = [
        Finding(check, f"{layout.table} {_name(database, layout, key)} was changed; {_advice(layout.table)}")
        for key in found.damaged
    ]
    if found.total > len(findings):
        more = found.total - len(findings)
        findings.append(Finding(check, f"{more} more rows of {layout.table} were changed; {_advice(layout.table)}"))
    return findings


def _advice(table: str) -> str:
    if table in ("vectors", "nearest"):
        return "run `holdfast store rebuild`"
    restore = "restore the store from a copy, or delete what the row belongs to"
    # A rebuild restores the terms of a record.
    return f"run `holdfast store rebuild`; if it is still damaged, {restore}" if table == "records" else restore


def _name(database: Database, layout: RowLayout, key: Sequence[Any]) -> str:
    shown = " ".join(
        f"{column}={bytes(value).hex() if isinstance(value, bytes | memoryview) else value}"
        for column, value in zip(layout.keys, key, strict=True)
    )
    number = dict(zip(layout.keys, key, strict=True)).get("number")
    if not isinstance(number, int):
        return shown
    row = database.execute("SELECT id FROM records WHERE number = ?", (number,)).fetchone()
    return f"{shown} (record {row[0]})" if row else shown


def fill(database: Database, dialect: Dialect, position: RowPosition | None, limit: int) -> RowPosition | None:
    """Add the missing checksums of the next `limit` rows; return where to go on, None at the end."""
    layouts = sorted(dialect.layouts(database))
    at = 0 if position is None else next(n for n, each in enumerate(layouts) if each.table == position[0])
    after = None if position is None else position[1]
    layout = layouts[at]
    key = ", ".join(layout.keys)
    condition, values = ("TRUE", []) if after is None else (f"({key}) > ({', '.join('?' * len(after))})", [*after])
    found = database.execute(
        f"SELECT {key} FROM {layout.table} WHERE {condition} ORDER BY {key} LIMIT {limit:d}", values
    ).fetchall()
    if found:
        dialect.fill_checksums(database, layout, after, found[-1])
    if len(found) == limit:
        return layout.table, found[-1]
    return (layouts[at + 1].table, None) if at + 1 < len(layouts) else None
