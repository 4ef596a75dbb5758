"""Moving a whole store into another, of whichever engine: table by table, in chunks, resumable, and proven at the end.

A chunk is committed together with a note of how far the copy has come, so a copy that was killed goes on exactly where
it stopped. Until the last commit the target says of itself that it is unfinished, and cannot be opened. The proof is a
count and a sum per table: of what was read from the source, and of what can be read from the target.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from holdfast.domain.results import Copied
from holdfast.errors import CopyRefused, StoreCorrupt

Row = Sequence[Any]
Key = Sequence[Any]
CHUNK = 2_000
_MODULUS = 1 << 128


@dataclass(frozen=True, slots=True)
class Table:
    """One table, its columns, and how many of the first of them are its key, by which it is read in order."""

    name: str
    columns: tuple[str, ...]
    keys: int = 1

    def key_of(self, row: Row) -> Key:
        return row[: self.keys]


# What a store consists of; those that others refer to come first.
TABLES = (
    Table("meta", ("key", "value")),
    Table("embedders", ("id", "fingerprint")),
    Table("partitions", ("id", "space", "kind", "owner", "change")),
    Table(
        "scopes",
        (
            "id", "partition_id", "space", "app", "project", "agent", "subject", "channel", "conversation", "run",
            "issue", "namespace",
        ),
    ),
    Table(
        "conversations",
        (
            "id", "partition_id", "app", "project", "channel", "name", "namespace", "least_position", "sealed",
            "least_sequence", "forgotten_turns",
        ),
    ),
    Table(
        "records",
        (
            "number", "id", "revision", "partition_id", "change", "kind", "scope_id", "conversation_id", "position",
            "turn_id", "role", "external_key", "content_key", "source_key", "slot_key", "plane", "status", "trust",
            "said_at", "recorded_at", "superseded_at", "valid_from", "valid_to", "analyzer", "flags", "length",
            "embedder_id", "terms", "authority",
        ),
    ),
    Table(
        "turns",
        (
            "conversation_id", "sequence", "id", "external_key", "state", "delivery", "first_position", "messages",
            "recorded_at", "words",
        ),
        keys=2,
    ),
    Table("texts", ("number", "sender", "source", "external_id", "author", "reason", "metadata", "text")),
    Table(
        "resources",
        (
            "number", "id", "partition_id", "scope_id", "sha256", "media_type", "bytes", "chunks", "recorded_at",
        ),
    ),
    Table("vectors", ("partition_id", "number", "piece", "embedder_id", "vector"), keys=3),
    Table("evidence", ("memory_number", "message_number"), keys=2),
    Table(
        "tombstones",
        (
            "partition_id", "change", "number", "id", "kind", "scope_id", "conversation_id", "external_key",
            "forgotten_at",
        ),
        keys=3,
    ),
    Table("answers", ("partition_id", "key", "digest", "recorded_at", "body"), keys=2),
    Table("aliases", ("partition_id", "key", "conversation_id", "trusted", "recorded_at"), keys=2),
    Table(
        "credentials",
        ("space", "kind", "id", "role", "subjects", "key_digest", "created_at", "rotated_at", "revoked_at"),
        keys=3,
    ),
    Table(
        "jobs",
        (
            "id", "kind", "space", "partition_id", "scope", "record_ids", "status", "attempt", "retry_of", "token",
            "created_at", "run_after", "lease_until", "started_at", "finished_at", "done", "total", "error",
            "agent", "project", "issue", "run", "binding", "hook", "cause",
        ),
    ),
    Table(
        "operations",
        (
            "space", "action", "id", "scope", "partition_id", "actor_kind", "actor_id", "outcome", "error_code",
            "touched", "started_at", "duration_micros", "agent", "project", "issue", "run", "binding", "source_kind",
            "hook", "details",
        ),
        keys=3,
    ),
    Table(
        "events",
        (
            "space", "id", "kind", "scope", "partition_id", "plane", "record_key", "content_hash", "at", "details",
        ),
        keys=2,
    ),
    Table(
        "bindings",
        (
            "space", "id", "key", "provider", "config", "hooks", "enabled", "revision", "created_at", "updated_at",
            "deleted_at",
        ),
        keys=2,
    ),
    Table("binding_targets", ("space", "kind", "target_id", "binding_key"), keys=3),
    Table(
        "deliveries",
        (
            "space", "id", "destination", "hook_id", "kind", "source_kind", "scope", "home", "details", "status",
            "attempts", "reason", "operation_id", "digest", "created_at", "updated_at", "payload",
        ),
        keys=2,
    ),
    Table(
        "cost_events",
        (
            "space", "id", "operation_id", "binding", "scope", "agent", "project", "issue", "run", "provider", "model",
            "day", "input_tokens", "cached_input_tokens", "output_tokens", "embedding_tokens", "amount_micros",
            "currency", "estimated", "occurred_at", "usage",
        ),
        keys=2,
    ),
    Table(
        "finance_events",
        (
            "space", "id", "kind", "description", "amount_micros", "currency", "occurred_at", "binding", "provider",
            "external_invoice_id", "estimated",
        ),
        keys=2,
    ),
    Table(
        "prices",
        (
            "space", "provider", "model", "currency", "input_micros", "cached_input_micros", "output_micros",
            "embedding_micros",
        ),
        keys=3,
    ),
)  # fmt: skip
RECORDS = "records"
# Made anew where it is needed.
DERIVED: frozenset[str] = frozenset({"nearest"})


class Source(Protocol):
    """A store to be read as it is at one moment, however long that takes."""

    @property
    def location(self) -> str: ...

    def state(self) -> str:
        """Differs whenever something in the store has changed."""

    def count(self, table: Table) -> int: ...

    def rows(self, table: Table, after: Key | None, limit: int) -> list[Row]:
        """In the order of the table's key."""


class Target(Source, Protocol):
    """A store to be filled."""

    def occupied(self) -> bool: ...

    def note(self) -> str | None:
        """What `put` noted last; None if no copy is under way."""

    def put(self, table: Table, rows: Sequence[Row], before: str, note: str) -> None:
        """Add the rows and replace the note, in one commit; `CopyRefused` if the note is not what it was before."""

    def clear(self, note: str) -> None:
        """Remove whatever there is, leave no byte of it behind, and keep the note."""

    def complete(self, before: str) -> None:
        """Remove the note, if it is still that one, and so make it a store. New records get new numbers."""


@dataclass(slots=True)
class Sum:
    """How many rows, and the sum of their digests: the same for the same rows, in whatever order."""

    count: int = 0
    total: int = 0

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.count += 1
            self.total = (self.total + _digest(row)) % _MODULUS


def _digest(row: Row) -> int:
    digest = hashlib.blake2b(digest_size=16)
    for value in row:
        digest.update(_encoded(value))
    return int.from_bytes(digest.digest(), "little")


def _encoded(value: object) -> bytes:
    if value is None:
        return b"-"
    if isinstance(value, int):
        return b"i%d;" % value
    raw = value.encode() if isinstance(value, str) else bytes(value)  # type: ignore[call-overload]
    return b"%c%d:" % (b"s" if isinstance(value, str) else b"b", len(raw)) + raw


def _noted(value: Any) -> Any:
    """A key that is bytes has another form in JSON."""
    return {"hex": bytes(value).hex()} if isinstance(value, bytes | memoryview) else value


def _as_it_was(value: Any) -> Any:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value


@dataclass(slots=True)
class Progress:
    """How far a copy has come: the table that it is in, the last key of it, and what was read of each so far."""

    state: str
    table: str = TABLES[0].name
    after: list[Any] | None = None
    read: dict[str, Sum] = field(default_factory=dict)

    def to_json(self) -> str:
        sums = {name: [found.count, f"{found.total:032x}"] for name, found in self.read.items()}
        after = None if self.after is None else [_noted(value) for value in self.after]
        return json.dumps({"state": self.state, "table": self.table, "after": after, "read": sums})

    @classmethod
    def from_json(cls, text: str) -> Progress:
        noted = json.loads(text)
        read = {name: Sum(count, int(total, 16)) for name, (count, total) in noted["read"].items()}
        after = None if noted["after"] is None else [_as_it_was(value) for value in noted["after"]]
        return cls(noted["state"], noted["table"], after, read)

    @property
    def records(self) -> int:
        return self.read[RECORDS].count if RECORDS in self.read else 0

    @property
    def rows(self) -> int:
        return sum(found.count for found in self.read.values())


def copy(
    source: Source,
    target: Target,
    *,
    replace: bool = False,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Copied:
    """Bring the target to hold exactly what the source holds. `tell` hears of rows done, and of all."""
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
    _prove(progress.read, target)
    target.complete(before)
    return Copied(records=progress.records, rows=progress.rows, resumed=resumed)


def _begin(source: Source, target: Target, replace: bool) -> tuple[Progress, bool]:
    state, note = source.state(), target.note()
    if note is not None and not replace:
        progress = Progress.from_json(note)
        if progress.state == state:
            return progress, True
        raise CopyRefused(
            f"{source.location} has changed since the copy to {target.location} began; copy it anew with --replace,"
            " while nothing writes to it"
        )
    if target.occupied() and not replace:
        raise CopyRefused(
            f"{target.location} holds memories already; name an empty store, or let --replace remove what it holds"
        )
    fresh = Progress(state)
    target.clear(fresh.to_json())
    return fresh, False


def _chunks(source: Source, table: Table, progress: Progress) -> Iterator[list[Row]]:
    """The rest of a table. Progress is moved on before a chunk is given, so that the two are kept together."""
    if progress.table != table.name:
        progress.table, progress.after = table.name, None
    found = progress.read.setdefault(table.name, Sum())
    while rows := source.rows(table, progress.after, CHUNK):
        found.add(rows)
        progress.after = list(table.key_of(rows[-1]))
        yield rows


def _prove(read: dict[str, Sum], target: Target) -> None:
    for table in TABLES:
        there, after = Sum(), None
        while rows := target.rows(table, after, CHUNK):
            there.add(rows)
            after = table.key_of(rows[-1])
        copied = read.get(table.name, Sum())
        if there != copied:
            raise StoreCorrupt(
                f"{target.location} does not hold what was copied: of {table.name}, {copied.count:,} rows were read and"
                f" {there.count:,} are there, or their content differs; copy anew with --replace"
            )
