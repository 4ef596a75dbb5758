"""A store's id, and its notes of the backups that were made of it, as facts in `meta`."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain.backups import BackupRecord
from holdfast.stores.sql.dialect import Database

# Key of a backup's manifest, in the file of a backup alone.
BACKUP_MANIFEST = "backup"
_STORE = "store_id"
_PREFIX = "backup:"
_PUT = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO "


def read_store_id(database: Database) -> str | None:
    row = database.execute("SELECT value FROM meta WHERE key = ?", (_STORE,)).fetchone()
    return row[0] if row else None


def set_store_id(database: Database, store_id: str) -> None:
    """Name the store, unless it has a name."""
    database.execute(f"{_PUT}NOTHING", (_STORE, store_id))


def read_records(database: Database) -> Sequence[BackupRecord]:
    """Return the backups that were made of this store, oldest first."""
    found = database.execute("SELECT value FROM meta WHERE key LIKE ?", (f"{_PREFIX}%",)).fetchall()
    records = [BackupRecord.from_json(value) for (value,) in found]
    return sorted((each for each in records if each is not None), key=lambda each: (each.made_at, each.id))


def save_record(database: Database, record: BackupRecord) -> None:
    database.execute(f"{_PUT}UPDATE SET value = excluded.value", (f"{_PREFIX}{record.id}", record.to_json()))


def drop_record(database: Database, record: BackupRecord) -> None:
    database.execute("DELETE FROM meta WHERE key = ?", (f"{_PREFIX}{record.id}",))
