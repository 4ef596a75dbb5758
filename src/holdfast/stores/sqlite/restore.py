"""Restore a backup into a file: complete it beside the file first, then replace all pages in one transaction.

SQLite's own transaction replaces them, not a rename: a process that waits for the file would go on in one that has no
name any more.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from holdfast.domain.backups import BackupRecord, RestoreResult, inherited_records
from holdfast.errors import CopyRefused, StoreBusy, StoreUnusable
from holdfast.failpoints import reach
from holdfast.private_files import create_private_file, sync_folder
from holdfast.stores.sql.backups import BACKUP_MANIFEST, read_records, save_record
from holdfast.stores.sqlite.backup_file import (
    SqliteBackup,
    check_contents,
    fold_log,
    lock_alone,
    refuse_findings,
    remove_file,
)
from holdfast.stores.sqlite.busy_retry import committing
from holdfast.stores.sqlite.connection import MEMORY, check_path, connect, connect_plainly, open_store
from holdfast.stores.sqlite.errors import translating
from holdfast.stores.sqlite.nearest import GraphFolder
from holdfast.stores.sqlite.schema import APPLICATION_ID, BACKUP_APPLICATION_ID, check_application_id

_OURS = (0, APPLICATION_ID, BACKUP_APPLICATION_ID)
_HOLDERS = ("partitions", "credentials", "bindings", "prices", "finance_events")


def restore_file(
    backup: SqliteBackup,
    location: str,
    own: BackupRecord,
    others: Sequence[BackupRecord],
    *,
    replace: bool,
    busy_seconds: float,
) -> RestoreResult:
    """Make the file at `location` the store that was backed up. It is the old or the restored one at any time."""
    target = _check_target(backup, location)
    created = create_private_file(target)
    with _lock_target(target, busy_seconds) as connection:
        staging = target.with_name(f".{target.name}.restoring")
        try:
            _clear_staging(staging)
            if not replace:
                _refuse_contents(connection, target)
            known = [*others, *_known_backups(connection)]
            _stage(backup, staging, own, known, busy_seconds)
            with translating(str(target)), closing(connect(str(staging), busy_seconds)) as restored:
                reach("restore.swap.before")
                restored.backup(connection)
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                reach("restore.swap.after")
            sync_folder(target.parent)
            GraphFolder(str(target)).remove_all()
        except BaseException:
            if created:
                remove_file(target)
            raise
        finally:
            remove_file(staging)
    manifest = backup.manifest
    return RestoreResult(manifest.made_at, manifest.counts["records"], sum(manifest.counts.values()))


def _check_target(backup: SqliteBackup, location: str) -> Path:
    if location == MEMORY:
        raise StoreUnusable(":memory: is gone when the command ends; give the path of a file")
    check_path(Path(location))
    if os.path.exists(location) and os.path.samefile(location, backup.location):
        raise CopyRefused(f"{location} is the backup itself; name another target")
    return Path(os.path.realpath(location))


@contextmanager
def _lock_target(target: Path, busy_seconds: float) -> Iterator[sqlite3.Connection]:
    """Open the target so that nobody else can, whatever its schema, and even if it is damaged."""
    with translating(str(target)), closing(connect_plainly(str(target), busy_seconds)) as connection:
        try:
            with translating(str(target)):
                lock_alone(connection, busy_seconds)
        except StoreBusy as error:
            raise StoreBusy(f"{target} is in use; stop the processes that have it open, and restore again") from error
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            check_application_id(connection, str(target))
        yield connection


def _refuse_contents(connection: sqlite3.Connection, target: Path) -> None:
    with translating(str(target)):
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if any(
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in _HOLDERS if table in there
        ):
            raise CopyRefused(f"{target} is not empty; name another file, or replace what it holds with --replace")


def _known_backups(connection: sqlite3.Connection) -> Sequence[BackupRecord]:
    """Return the backups that the replaced store knows of; none if it cannot be read."""
    with suppress(sqlite3.Error):
        return read_records(connection)
    return ()


def _clear_staging(staging: Path) -> None:
    """Remove what a killed restore left. Nobody writes it now: only the one who has locked the target does."""
    if staging.is_symlink() or (staging.exists() and not staging.is_file()):
        raise StoreUnusable(f"{staging} is in the way of a restore; remove it, and restore again")
    if staging.exists():
        with translating(str(staging)), closing(connect(str(staging), 0)) as connection:
            if connection.execute("PRAGMA application_id").fetchone()[0] not in _OURS:
                raise StoreUnusable(f"{staging} is another program's database; move it away, and restore again")
    remove_file(staging)


def _stage(
    backup: SqliteBackup, staging: Path, own: BackupRecord, others: Sequence[BackupRecord], busy_seconds: float
) -> None:
    """Make a verified store of the backup, with the newest schema, in a file of its own."""
    create_private_file(staging)
    with translating(str(staging)), closing(connect(str(staging), busy_seconds)) as connection:
        # If the process dies, the file is of no use anyway.
        connection.execute("PRAGMA synchronous = OFF")
        backup.write_pages(connection)
        check_contents(connection, backup.manifest, backup.location)
        with committing(connection, busy_seconds):
            connection.execute("DELETE FROM meta WHERE key = ?", (BACKUP_MANIFEST,))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    with translating(str(staging)), closing(open_store(str(staging), busy_seconds)) as connection:
        with committing(connection, busy_seconds):
            for record in inherited_records(own, read_records(connection), others):
                save_record(connection, record)
        refuse_findings(connection, backup.location)
        fold_log(connection)
