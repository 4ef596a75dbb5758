"""The file of a backup: a store of its own in one SQLite file, sealed, so that it can be read and restored only.

Its application id differs from a store's: nothing opens it as one. A manifest in it says what it is: one beside it
could be lost, or belong to another file.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from holdfast.domain.backups import BackupManifest
from holdfast.errors import SchemaTooNew, StoreBusy, StoreCorrupt, StoreError, StoreUnusable
from holdfast.failpoints import reach
from holdfast.private_files import sync_folder
from holdfast.stores.copying import RowChecksum
from holdfast.stores.sql import integrity
from holdfast.stores.sql.backups import BACKUP_MANIFEST
from holdfast.stores.sql.copy_endpoint import SqlCopyEndpoint
from holdfast.stores.sqlite import schema
from holdfast.stores.sqlite.busy_retry import committing, retry_while_busy
from holdfast.stores.sqlite.connection import connect
from holdfast.stores.sqlite.copy_endpoint import SqliteCopyEndpoint
from holdfast.stores.sqlite.dialect import SQLITE
from holdfast.stores.sqlite.errors import translating
from holdfast.stores.sqlite.examine import open_read_only
from holdfast.stores.sqlite.schema import APPLICATION_ID, BACKUP_APPLICATION_ID

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name"


class SqliteBackup(SqliteCopyEndpoint):
    """A finished backup, opened to be read. Nothing of it is changed, not even its schema."""

    def __init__(self, location: str, busy_seconds: float) -> None:
        _check_file(location)
        with _reading(location):
            self._connection = open_read_only(location, busy_seconds)
            try:
                self.manifest = _read_manifest(self._connection, location)
            except BaseException:
                self._connection.close()
                raise
        self._busy_seconds = busy_seconds
        SqlCopyEndpoint.__init__(self, self._connection, SQLITE, location)

    def require_current(self) -> None:
        """Refuse a backup of an older schema: its rows are not those of a store of today."""
        if self.manifest.schema != schema.migrations()[-1][0]:
            raise StoreUnusable(
                f"{self.location} has schema {self.manifest.schema}, older than this Holdfast's; restore it into"
                " a file, and copy that: `holdfast store copy FROM TO`"
            )

    def verify(self) -> None:
        """Compare all rows with the manifest; raise `StoreCorrupt` if they differ."""
        check_contents(self._connection, self.manifest, self.location)

    def write_pages(self, target: sqlite3.Connection) -> None:
        with _reading(self.location):
            self._connection.backup(target)


class PartialBackup(SqliteCopyEndpoint):
    """A backup that is being written, locked against other processes. What an earlier one left is overwritten."""

    def __init__(self, path: Path, busy_seconds: float) -> None:
        try:
            _unseal(path, busy_seconds)
            super().__init__(str(path), busy_seconds, create=True)
            self.lock_exclusively()
        except StoreBusy as error:
            raise StoreBusy(
                f"another backup of this store to {path.parent} is under way; wait for it to end"
            ) from error
        except (StoreCorrupt, StoreUnusable) as error:
            if not path.exists():
                raise
            raise StoreUnusable(f"{path} is in the way of a backup ({error}); delete it, and back up again") from error

    def write_manifest(self, manifest: BackupManifest) -> None:
        """Complete the file, apart from its seal. Closes it."""
        with self._committing():
            self._connection.execute(
                "INSERT INTO meta (key, value) VALUES (?, ?)", (BACKUP_MANIFEST, manifest.to_json())
            )
        with self._translating():
            fold_log(self._connection)
        self.close()

    def digest(self) -> tuple[dict[str, int], str]:
        with self._translating():
            return digest_tables(self._connection)

    def publish(self, manifest: BackupManifest) -> Path:
        """Read the file back as it is on disk, verify and seal it, and give it its name, while it is locked."""
        partial = Path(self.location)
        final = partial.with_name(manifest.name)
        with translating(self.location), closing(connect(self.location, self._busy_seconds)) as connection:
            lock_alone(connection, self._busy_seconds)
            refuse_findings(connection, self.location)
            check_contents(connection, manifest, self.location)
            # A page is written at once; a journal would be a second file.
            connection.execute("PRAGMA journal_mode = MEMORY")
            connection.execute(f"PRAGMA application_id = {BACKUP_APPLICATION_ID}")
            reach("backup.publish.before")
            os.rename(partial, final)
            sync_folder(final.parent)
            reach("backup.publish.after")
        return final

    def remove(self) -> None:
        """Remove the file. It must not be published."""
        self.close()
        remove_file(Path(self.location))


def read_backup_manifest(path: Path, busy_seconds: float) -> BackupManifest | None:
    """Return the manifest of a file; None if it is not a regular file, not a backup, or cannot be read."""
    try:
        if path.is_symlink() or not path.is_file():
            return None
        with closing(SqliteBackup(str(path), busy_seconds)) as backup:
            return backup.manifest
    except (StoreError, OSError):
        return None


def digest_tables(connection: sqlite3.Connection) -> tuple[dict[str, int], str]:
    """Count the rows of each table, and return a digest of all, apart from the manifest. Any schema will do."""
    found: dict[str, RowChecksum] = {}
    for (table,) in connection.execute(_TABLES).fetchall():
        rows = connection.execute(
            f"SELECT * FROM {table}" + (f" WHERE key <> '{BACKUP_MANIFEST}'" if table == "meta" else "")
        )
        found[table] = RowChecksum()
        found[table].add(rows)
    counts = {table: checksum.count for table, checksum in found.items()}
    sums = json.dumps({table: f"{checksum.total:032x}" for table, checksum in found.items()})
    return counts, hashlib.blake2b(sums.encode(), digest_size=16).hexdigest()


def check_contents(connection: sqlite3.Connection, manifest: BackupManifest, location: str) -> None:
    with _reading(location):
        if digest_tables(connection) != (manifest.counts, manifest.digest):
            raise StoreCorrupt(f"{location} is damaged: its rows differ from its manifest; use another backup")


def refuse_findings(connection: sqlite3.Connection, location: str) -> None:
    """Refuse a store in which `verify` would find damage."""
    _, findings = integrity.check(connection, SQLITE)
    if findings:
        raise StoreCorrupt(
            f"{location}: {findings[0].check}: {findings[0].problem}; `holdfast store verify` lists the damage, and"
            " `holdfast store repair` what can be repaired"
        )


def lock_alone(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Lock the file exclusively until the connection is closed."""
    connection.execute("PRAGMA busy_timeout = 0")
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    retry_while_busy(lambda: connection.execute("BEGIN EXCLUSIVE"), busy_seconds)
    connection.execute("COMMIT")


def fold_log(connection: sqlite3.Connection) -> None:
    """Move everything into the one file: it needs no log beside it."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("PRAGMA journal_mode = DELETE")


def remove_file(path: Path) -> None:
    """Remove a database of ours that nobody has open, with what SQLite put beside it."""
    for suffix in ("-journal", "-wal", "-shm", ""):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _unseal(path: Path, busy_seconds: float) -> None:
    """Make a store of a sealed backup that was never published, so that it can be overwritten."""
    if path.is_symlink():
        raise StoreUnusable("it is a symbolic link")
    if not path.exists():
        return
    with translating(str(path)), closing(connect(str(path), busy_seconds)) as connection:
        lock_alone(connection, busy_seconds)
        if connection.execute("PRAGMA application_id").fetchone()[0] == BACKUP_APPLICATION_ID:
            with committing(connection, busy_seconds):
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _check_file(location: str) -> None:
    path = Path(location)
    if not path.exists():
        raise StoreUnusable(
            f"there is no backup at {location}; give the path of a file that `holdfast store backup` made"
        )
    if not path.is_file():
        raise StoreUnusable(f"{location} is not a file; give the path of one that `holdfast store backup` made")
    if not os.access(path, os.R_OK):
        raise StoreUnusable(f"{location} cannot be read; check the permissions of the file and its folder")


def _read_manifest(connection: sqlite3.Connection, location: str) -> BackupManifest:
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    if application == APPLICATION_ID:
        raise StoreUnusable(f"{location} is a store, not a backup; copy it with `holdfast store copy FROM TO`")
    if application != BACKUP_APPLICATION_ID:
        raise StoreUnusable(f"{location} is not a backup; give the path of a file that `holdfast store backup` made")
    version, newest = int(connection.execute("PRAGMA user_version").fetchone()[0]), schema.migrations()[-1][0]
    if version > newest:
        raise SchemaTooNew(
            f"{location} has schema {version}, and this Holdfast knows up to {newest}; upgrade Holdfast to restore it"
        )
    pages, page_bytes = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    if os.path.getsize(location) != pages * page_bytes:
        raise StoreCorrupt(f"{location} is damaged: it is shorter or longer than it was; use another backup")
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (BACKUP_MANIFEST,)).fetchone()
    manifest = BackupManifest.from_json(row[0]) if row else None
    if manifest is None or manifest.schema != version:
        raise StoreCorrupt(f"{location} is damaged: its manifest cannot be read; use another backup")
    return manifest


@contextmanager
def _reading(location: str) -> Iterator[None]:
    """Translate the errors of reading a backup: one that is damaged cannot be restored from a backup."""
    try:
        with translating(location):
            yield
    except StoreCorrupt as error:
        if "use another backup" in str(error):
            raise
        raise StoreCorrupt(f"{location} is damaged; use another backup") from error
    except StoreUnusable as error:
        if isinstance(error.__cause__, sqlite3.Error):
            raise StoreUnusable(
                f"{location} is not a backup; give the path of a file that `holdfast store backup` made"
            ) from error
        raise
