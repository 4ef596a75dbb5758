"""A whole SQL store as rows: the source and target of `stores.copying`."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from holdfast.domain.backups import BackupRecord
from holdfast.domain.manifest import MANIFEST, retarget_manifest
from holdfast.errors import CopyRefused, StoreCorrupt, StoreUnusable
from holdfast.failpoints import reach
from holdfast.stores.copying import DERIVED, TABLES, Key, Row, Table
from holdfast.stores.sql import backups
from holdfast.stores.sql.checksums import check_rows
from holdfast.stores.sql.dialect import Database, Dialect, Rows

# Key in `meta` while the store is the target of an unfinished copy.
NOTE = "copy"
_VECTORS = "vectors"
# Columns that hold numbers of texts.
_NUMBERED = (
    ("records", "number"),
    ("tombstones", "number"),
    ("resources", "number"),
    ("turns", "words"),
    ("deliveries", "payload"),
    ("runtime_skills", "words"),
    ("proposals", "words"),
    ("tool_registries", "words"),
    ("tool_experience", "words"),
)
# One line for each way in which a table can change.
_STATE = (
    "SELECT id, change FROM partitions ORDER BY id",
    "SELECT outcome = 'unknown', count(*), max(id) FROM operations GROUP BY 1 ORDER BY 1",
    "SELECT status, count(*), max(id), sum(token), sum(done) FROM jobs GROUP BY status ORDER BY status",
    "SELECT count(*), max(recorded_at) FROM answers",
    "SELECT count(*), max(number) FROM resources",
    "SELECT count(*), max(recorded_at), sum(trusted) FROM aliases",
    "SELECT count(*), max(id), count(content_hash) FROM events",
    "SELECT count(*), max(words), sum(use_count + validated_success_count + mismatch_count), sum(enabled),"
    " sum(needs_approval), sum(revision_pending) FROM runtime_skills",
    "SELECT status, count(*), max(words) FROM proposals GROUP BY status ORDER BY status",
    "SELECT count(*), max(words) FROM tool_registries",
    "SELECT count(*), max(words), sum(succeeded + failed + partial + cancelled), sum(noted), count(place_key),"
    " max(updated_at) FROM tool_experience",
    "SELECT kind, count(*), max(created_at), max(rotated_at), max(revoked_at) FROM credentials GROUP BY kind"
    " ORDER BY kind",
    "SELECT space, id, revision, deleted_at FROM bindings ORDER BY space, id",
    "SELECT space, kind, target_id, binding_key FROM binding_targets ORDER BY space, kind, target_id",
    "SELECT status, count(*), max(id), max(updated_at), sum(attempts), count(payload) FROM deliveries GROUP BY status"
    " ORDER BY status",
    "SELECT count(*), max(id) FROM cost_events",
    "SELECT count(*), max(id) FROM finance_events",
    "SELECT * FROM prices ORDER BY space, provider, model",
    f"SELECT key, value FROM meta WHERE key <> '{NOTE}' ORDER BY key",
)


def refuse_unfinished(database: Database, location: str) -> None:
    """Refuse a store that a copy has only partly filled."""
    if is_unfinished(database):
        raise StoreUnusable(
            f"{location} is the target of an incomplete copy or restore; run the same command again to resume it, such"
            " as `holdfast store copy FROM TO`"
        )


def is_unfinished(database: Database) -> bool:
    return _note(database) is not None


def _note(database: Database) -> str | None:
    row = database.execute("SELECT value FROM meta WHERE key = ?", (NOTE,)).fetchone()
    return row[0] if row else None


class SqlCopyEndpoint(ABC):
    """Implements both ends of `stores.copying` on a connection of its own.

    `backends` are the names that a manifest may use for this engine.
    """

    backends: ClassVar[tuple[str, ...]]

    def __init__(self, database: Database, dialect: Dialect, location: str) -> None:
        self._db = database
        self._dialect = dialect
        self.location = location

    @property
    @abstractmethod
    def identity(self) -> tuple[object, ...]: ...

    @property
    @abstractmethod
    def address(self) -> str:
        """The place of the store, without secrets: the same, if possible, however it was named."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def lock_exclusively(self) -> None:
        """Lock the store exclusively: what others cache of its rows would become wrong. `StoreBusy` if it is in use."""

    @abstractmethod
    def snapshot(self) -> None:
        """Begin a snapshot, which all later reads use."""

    @abstractmethod
    def _translating(self) -> AbstractContextManager[None]:
        """Translate the database's errors to Holdfast's."""

    @abstractmethod
    def _committing(self) -> AbstractContextManager[None]:
        """Run one durable transaction, and translate its errors."""

    @abstractmethod
    def _empty(self, tables: Sequence[str]) -> None:
        """Within a transaction: delete all rows of the tables. Referring tables come before referenced ones."""

    @abstractmethod
    def _wipe(self) -> None:
        """Outside any transaction: leave no byte of the deleted rows."""

    @abstractmethod
    def _restart_numbering(self, highest: int) -> None:
        """Within a transaction: number new records above `highest`, and give other new rows unused ids."""

    @abstractmethod
    def _wait_for_writers(self) -> None:
        """Within a transaction: wait until all that others have begun to write is committed."""

    # --- backups ---

    def refuse_unfinished(self) -> None:
        with self._translating():
            refuse_unfinished(self._db, self.location)

    def name_store(self, store_id: str) -> str:
        """Return the id of the store. It gets this one if it has none."""
        with self._committing():
            backups.set_store_id(self._db, store_id)
        with self._translating():
            return backups.read_store_id(self._db) or store_id

    def backup_records(self) -> Sequence[BackupRecord]:
        with self._translating():
            return backups.read_records(self._db)

    def last_number(self) -> int:
        """Return the highest number of a record, forgotten ones included."""
        numbers = (self._select(f"SELECT coalesce(max({column}), 0) FROM {table}") for table, column in _NUMBERED)
        return max(int(found[0][0]) for found in numbers)

    def note_backup(self, record: BackupRecord) -> None:
        """Record a backup that is about to be made. A forget that it does not reflect knows of it from now on."""
        with self._committing():
            self._wait_for_writers()
            backups.save_record(self._db, record)

    def change_backups(self, saved: Sequence[BackupRecord], dropped: Sequence[BackupRecord] = ()) -> None:
        with self._committing():
            for record in saved:
                backups.save_record(self._db, record)
            for record in dropped:
                backups.drop_record(self._db, record)

    # --- reading ---

    def _select(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        with self._translating():
            return self._db.execute(statement, values).fetchall()

    def refuse_damage(self) -> None:
        """Refuse to copy rows that were changed: in the copy they would get a checksum of their own."""
        with self._translating():
            _, findings = check_rows(self._db, self._dialect)
        if findings:
            raise StoreCorrupt(
                f"{self.location} is damaged: {findings[0].problem}; `holdfast store verify` lists what else is"
            )

    def state(self) -> str:
        found = [[tuple(row) for row in self._select(statement)] for statement in _STATE]
        return hashlib.blake2b(repr(found).encode(), digest_size=16).hexdigest()

    def count(self, table: Table) -> int:
        return int(self._select(f"SELECT count(*) FROM {table.name} AS t WHERE {_copy_condition(table)}")[0][0])

    def rows(self, table: Table, after: Key | None, limit: int) -> list[Row]:
        key = ", ".join(table.columns[: table.keys])
        condition, values = _copy_condition(table), [*(after or ())]
        if after is not None:
            condition += f" AND ({key}) > ({', '.join('?' * table.keys)})"
        columns = ", ".join(table.columns)
        found = self._select(
            f"SELECT {columns} FROM {table.name} AS t WHERE {condition} ORDER BY {key} LIMIT {limit:d}", values
        )
        return self._convert_vectors(found) if table.name == _VECTORS else found

    def is_occupied(self) -> bool:
        return any(
            self._select(f"SELECT count(*) FROM {table}")[0][0]
            for table in ("partitions", "credentials", "bindings", "prices", "finance_events")
        )

    # --- writing ---

    def note(self) -> str | None:
        with self._translating():
            return _note(self._db)

    def put(self, table: Table, rows: Sequence[Row], before: str, note: str) -> None:
        with self._committing():
            self._check_note(
                self._db.execute("UPDATE meta SET value = ? WHERE key = ? AND value = ?", (note, NOTE, before))
            )
            self._dialect.insert(self._db, table.name, table.columns, [self._bind_row(table, row) for row in rows])
            reach("copy.chunk.before")
        reach("copy.chunk.after")

    def _check_note(self, changed: Rows) -> None:
        if changed.rowcount != 1:
            raise CopyRefused(f"another copy to {self.location} is under way; wait for it to end")

    # The vector is the last column of its table, after the record's number, piece and embedder.

    def _bind_row(self, table: Table, row: Row) -> Sequence[Any]:
        return (*row[:-1], self._dialect.vector(row[-1])) if table.name == _VECTORS else row

    def _convert_vectors(self, found: Sequence[Row]) -> list[Row]:
        vectors = self._dialect.vectors([(number, piece, vector) for _, number, piece, _, vector in found])
        return [(*row[:-1], turned[-1]) for row, turned in zip(found, vectors, strict=True)]

    def clear(self, note: str) -> None:
        with self._committing():
            self._empty([*sorted(DERIVED), *(table.name for table in reversed(TABLES))])
            self._db.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (NOTE, note))
        self._wipe()

    def complete(self, before: str) -> None:
        with self._committing():
            self._check_note(self._db.execute("DELETE FROM meta WHERE key = ? AND value = ?", (NOTE, before)))
            self._restart_numbering(self.last_number())
            self._rename_backend()

    def _rename_backend(self) -> None:
        """Name this store's backend in the manifest, which still names the source's."""
        for (text,) in self._db.execute("SELECT value FROM meta WHERE key = ?", (MANIFEST,)).fetchall():
            moved = retarget_manifest(text, self.backends)
            self._db.execute("UPDATE meta SET value = ? WHERE key = ?", (moved, MANIFEST))


def _copy_condition(table: Table) -> str:
    if table.name == "texts":
        # The texts of forgotten records and of deleted content are blank: not copied.
        return (
            "(EXISTS (SELECT 1 FROM records r WHERE r.number = t.number AND r.status <> 'raw_deleted')"
            " OR EXISTS (SELECT 1 FROM resources r WHERE r.number = t.number)"
            " OR EXISTS (SELECT 1 FROM turns u WHERE u.words = t.number)"
            " OR EXISTS (SELECT 1 FROM runtime_skills k WHERE k.words = t.number)"
            " OR EXISTS (SELECT 1 FROM proposals p WHERE p.words = t.number)"
            " OR EXISTS (SELECT 1 FROM tool_registries g WHERE g.words = t.number)"
            " OR EXISTS (SELECT 1 FROM tool_experience x WHERE x.words = t.number)"
            " OR EXISTS (SELECT 1 FROM deliveries d WHERE d.payload = t.number))"
        )
    return f"key NOT IN ('{NOTE}', '{backups.BACKUP_MANIFEST}')" if table.name == "meta" else "1 = 1"
