"""Copy a whole store into another, of any engine: table by table, in chunks, resumable, and verified at the end.

Each chunk is committed together with a note of the progress, so a killed copy resumes exactly where it stopped. Until
the last commit the target is marked unfinished and cannot be opened. Verification compares a row count and a checksum
per table: of the rows read from the source, and of the rows that can be read from the target.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, Protocol

from holdfast.domain.results import Copied
from holdfast.errors import CopyRefused, StoreCorrupt

Row = Sequence[Any]
Key = Sequence[Any]
CHUNK = 2_000
_MODULUS = 1 << 128


class Table(NamedTuple):
    """A table. Rows are read in the order of its key, the first columns."""

    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        return _layouts()[self.name][0]

    @property
    def keys(self) -> int:
        """The number of columns of the key."""
        return _layouts()[self.name][1]

    def key_of(self, row: Row) -> Key:
        return row[: self.keys]


@cache
def _layouts() -> dict[str, tuple[tuple[str, ...], int]]:
    """Return the columns of each table, and how many are its key. Both engines have the same."""
    script = (resources.files("holdfast.stores.sqlite") / "schema.sql").read_text("utf-8")
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(script)
        return {table.name: _layout(database, table.name) for table in TABLES}


def _layout(database: sqlite3.Connection, table: str) -> tuple[tuple[str, ...], int]:
    found = database.execute(
        "SELECT name, pk FROM pragma_table_info(?) WHERE name <> 'checksum' ORDER BY pk = 0, pk, cid", (table,)
    ).fetchall()
    return tuple(name for name, _ in found), sum(place > 0 for _, place in found)


# All tables of a store; referenced tables come first.
TABLES = tuple(
    Table(name)
    for name in (
        "meta",
        "embedders",
        "partitions",
        "scopes",
        "conversations",
        "records",
        "turns",
        "texts",
        "resources",
        "vectors",
        "evidence",
        "contradictions",
        "runtime_skills",
        "proposals",
        "proposal_records",
        "tool_registries",
        "tool_experience",
        "tombstones",
        "answers",
        "aliases",
        "credentials",
        "jobs",
        "operations",
        "events",
        "bindings",
        "binding_targets",
        "deliveries",
        "cost_events",
        "finance_events",
        "prices",
    )
)
RECORDS = "records"
# Not copied: rebuilt on demand.
DERIVED: frozenset[str] = frozenset({"nearest"})


class CopySource(Protocol):
    """A store to be read from one snapshot, however long that takes."""

    @property
    def location(self) -> str: ...

    def state(self) -> str:
        """Return a fingerprint that differs after every change to the store."""

    def count(self, table: Table) -> int: ...

    def rows(self, table: Table, after: Key | None, limit: int) -> list[Row]:
        """Return the rows after a key, in key order."""


class CopyTarget(CopySource, Protocol):
    """A store that a copy fills."""

    def is_occupied(self) -> bool: ...

    def note(self) -> str | None:
        """Return the last note; None if no copy is in progress."""

    def put(self, table: Table, rows: Sequence[Row], before: str, note: str) -> None:
        """Insert the rows and replace the note, in one commit; `CopyRefused` if the note is no longer `before`."""

    def clear(self, note: str) -> None:
        """Delete everything, leave no byte of it behind, and store the note."""

    def complete(self, before: str) -> None:
        """Remove the note, if it is still `before`: the store is usable then. New records get new numbers."""


@dataclass(slots=True)
class RowChecksum:
    """Row count and sum of row digests; independent of the row order."""

    count: int = 0
    total: int = 0

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.count += 1
            self.total = (self.total + _digest(row)) % _MODULUS


def _digest(row: Row) -> int:
    digest = hashlib.blake2b(digest_size=16)
    for value in row:
        digest.update(_encode_value(value))
    return int.from_bytes(digest.digest(), "little")


def _encode_value(value: object) -> bytes:
    if value is None:
        return b"-"
    if isinstance(value, int):
        return b"i%d;" % value
    raw = value.encode() if isinstance(value, str) else bytes(value)  # type: ignore[call-overload]
    return b"%c%d:" % (b"s" if isinstance(value, str) else b"b", len(raw)) + raw


def _encode_key(value: Any) -> Any:
    """Encode keys of bytes as hex for JSON."""
    return {"hex": bytes(value).hex()} if isinstance(value, bytes | memoryview) else value


def _decode_key(value: Any) -> Any:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value


@dataclass(slots=True)
class Progress:
    """Progress of a copy: the current table, its last key, and a checksum per table of the rows read."""

    state: str
    table: str = TABLES[0].name
    after: list[Any] | None = None
    read: dict[str, RowChecksum] = field(default_factory=dict)

    def to_json(self) -> str:
        sums = {name: [checksum.count, f"{checksum.total:032x}"] for name, checksum in self.read.items()}
        after = None if self.after is None else [_encode_key(value) for value in self.after]
        return json.dumps({"state": self.state, "table": self.table, "after": after, "read": sums})

    @classmethod
    def from_json(cls, text: str) -> Progress:
        fields = json.loads(text)
        read = {name: RowChecksum(count, int(total, 16)) for name, (count, total) in fields["read"].items()}
        after = None if fields["after"] is None else [_decode_key(value) for value in fields["after"]]
        return cls(fields["state"], fields["table"], after, read)

    @property
    def records(self) -> int:
        return self.read[RECORDS].count if RECORDS in self.read else 0

    @property
    def rows(self) -> int:
        return sum(checksum.count for checksum in self.read.values())


def copy(
    source: CopySource,
    target: CopyTarget,
    *,
    replace: bool = False,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Copied:
    """Make the target hold exactly what the source holds. `tell` is called with rows done and rows in total."""
    progress, resumed = _begin(source, target, replace)
    total = sum(source.count(table) for table in TABLES)
    tell(progress.rows, total)
    before = progress.to_json()
    for table in TABLES[[table.name for table in TABLES].index(progress.table) :]:
        for chunk in _chunks(source, table, progress):
            note = progress.to_json()
            target.put(table, chunk, before, note)
            before = note
            tell(progress.rows, total)
    _verify_target(progress.read, target)
    target.complete(before)
    return Copied(records=progress.records, rows=progress.rows, resumed=resumed)


def _begin(source: CopySource, target: CopyTarget, replace: bool) -> tuple[Progress, bool]:
    state, note = source.state(), target.note()
    if note is not None and not replace:
        progress = Progress.from_json(note)
        if progress.state == state:
            return progress, True
        raise CopyRefused(
            f"{source.location} changed after the copy to {target.location} began; stop all writers, and copy again"
            " with --replace"
        )
    if target.is_occupied() and not replace:
        raise CopyRefused(f"{target.location} is not empty; name an empty store, or delete its contents with --replace")
    fresh = Progress(state)
    target.clear(fresh.to_json())
    return fresh, False


def _chunks(source: CopySource, table: Table, progress: Progress) -> Iterator[list[Row]]:
    """Yield the rest of a table. Progress advances before a chunk is yielded, so that both are committed together."""
    if progress.table != table.name:
        progress.table, progress.after = table.name, None
    checksum = progress.read.setdefault(table.name, RowChecksum())
    while rows := source.rows(table, progress.after, CHUNK):
        checksum.add(rows)
        progress.after = list(table.key_of(rows[-1]))
        yield rows


def _verify_target(read: dict[str, RowChecksum], target: CopyTarget) -> None:
    for table in TABLES:
        stored, after = RowChecksum(), None
        while rows := target.rows(table, after, CHUNK):
            stored.add(rows)
            after = table.key_of(rows[-1])
        copied = read.get(table.name, RowChecksum())
        if stored != copied:
            raise StoreCorrupt(
                f"{target.location} differs from what was copied: {copied.count:,} rows of {table.name} were read and"
                f" {stored.count:,} are stored, or their content differs; copy again with --replace"
            )
