"""Make backups of a store of any engine, and restore them into one.

A backup is a copy (`copying`) from one snapshot into a SQLite file with a temporary name, which is read back and then
renamed. The store notes it before the snapshot: a forget that the backup does not reflect always finds the note.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from holdfast.domain.backups import (
    NAMES,
    BackupManifest,
    BackupRecord,
    BackupResult,
    RestoreResult,
    Retention,
    inherited_records,
    partial_name,
)
from holdfast.errors import StoreError, StoreFull, StoreUnusable
from holdfast.private_files import is_missing
from holdfast.stores.copying import RECORDS, copy
from holdfast.stores.sql.copy_endpoint import SqlCopyEndpoint
from holdfast.stores.sqlite import schema
from holdfast.stores.sqlite.backup_file import PartialBackup, SqliteBackup, read_backup_manifest
from holdfast.stores.sqlite.restore import restore_file

Tell = Callable[[int, int], None]
Open = Callable[[], SqlCopyEndpoint]


def make_backup(
    open_store: Open, folder: Path, retention: Retention, *, version: str, busy_seconds: float, tell: Tell
) -> BackupResult:
    """Back up a store into a folder, and remove backups of it that are too old or too many."""
    with closing(open_store()) as store:
        store.refuse_unfinished()
        store_id = store.name_store(secrets.token_hex(8))
        record = BackupRecord(secrets.token_hex(8), store_id, str(folder), datetime.now(UTC))
        with _os_errors(folder):
            partial = PartialBackup(folder / partial_name(store_id), busy_seconds)
            try:
                store.note_backup(record)
                manifest, path = _fill(partial, open_store, store, record, version, tell)
            except BaseException:
                partial.remove()
                if is_missing(folder / record.name):
                    with suppress(StoreError):
                        store.change_backups((), (record,))
                raise
            store.change_backups((replace(record, last_number=manifest.last_number),))
            removed = _rotate(folder, manifest, retention, busy_seconds)
            _settle(store, busy_seconds)
            size = path.stat().st_size
    return BackupResult(
        path=str(path),
        made_at=manifest.made_at,
        records=manifest.counts[RECORDS],
        rows=sum(manifest.counts.values()),
        bytes=size,
        removed=tuple(str(each) for each in removed),
    )


def _fill(
    partial: PartialBackup, open_store: Open, store: SqlCopyEndpoint, record: BackupRecord, version: str, tell: Tell
) -> tuple[BackupManifest, Path]:
    # A connection of its own: a long snapshot may end with it.
    with closing(open_store()) as origin:
        origin.snapshot()
        origin.refuse_damage()
        copy(origin, partial, replace=True, tell=tell)
    counts, digest = partial.digest()
    manifest = BackupManifest(
        id=record.id,
        store=record.store,
        address=store.address,
        made_at=record.made_at,
        version=version,
        schema=schema.migrations()[-1][0],
        last_number=partial.last_number(),
        counts=counts,
        digest=digest,
    )
    partial.write_manifest(manifest)
    return manifest, partial.publish(manifest)


def _rotate(folder: Path, newest: BackupManifest, retention: Retention, busy_seconds: float) -> list[Path]:
    """Remove what is too old or too many of the same store's backups, and nothing else."""
    others = [each for each in _backups_beside(folder, newest, busy_seconds) if each.id != newest.id]
    expired = [folder / each.name for each in retention.find_expired(newest, others)]
    for path in expired:
        path.unlink(missing_ok=True)
    return expired


def _backups_beside(folder: Path, of: BackupManifest, busy_seconds: float) -> Iterator[BackupManifest]:
    """Find the backups of the same store in a folder. A renamed one is its owner's."""
    for path in sorted(folder.glob(NAMES)):
        found = read_backup_manifest(path, busy_seconds)
        if found is not None and found.name == path.name and found.is_of(of.store, of.address):
            yield found


def _settle(store: SqlCopyEndpoint, busy_seconds: float) -> None:
    """Forget the backups that are gone; complete the notes of those whose process died before it could."""
    gone, completed = [], []
    for record in store.backup_records():
        path = Path(record.folder) / record.name
        if all(is_missing(Path(file)) for file in record.files):
            gone.append(record)
        elif record.last_number is None and (found := read_backup_manifest(path, busy_seconds)) is not None:
            completed.append(replace(record, last_number=found.last_number))
    if gone or completed:
        store.change_backups(completed, gone)


def restore_backup(
    backup: str, location: str, open_server: Open | None, *, replace: bool, busy_seconds: float, tell: Tell
) -> RestoreResult:
    """Restore a backup into the file at `location`, or row by row into the store of a server."""
    with closing(SqliteBackup(backup, busy_seconds)) as origin:
        folder = Path(backup).absolute().parent
        beside = [BackupRecord.of(each, str(folder)) for each in _backups_beside(folder, origin.manifest, busy_seconds)]
        own = BackupRecord.of(origin.manifest, str(folder))
        if open_server is None:
            return restore_file(origin, location, own, beside, replace=replace, busy_seconds=busy_seconds)
        origin.require_current()
        with closing(open_server()) as target:
            target.lock_exclusively()
            origin.verify()
            others = [*beside, *target.backup_records()]
            copied = copy(origin, target, replace=replace, tell=tell)
            target.change_backups(inherited_records(own, target.backup_records(), others))
            return RestoreResult(origin.manifest.made_at, copied.records, copied.rows, copied.resumed)


def check_folder(folder: Path, store: str) -> None:
    """Refuse a folder that cannot hold backups of the store at this location."""
    if not folder.exists():
        raise StoreUnusable(f"{folder} does not exist; create the folder first, such as with: mkdir -m 700 {folder}")
    if not folder.is_dir():
        raise StoreUnusable(f"{folder} is not a folder; name one, in which `backup` chooses the names of the files")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise StoreUnusable(f"{folder} cannot be read and written; check the permissions of the folder")
    if folder.resolve() == Path(f"{store}-nearest").resolve():
        raise StoreUnusable(f"{folder} is where the store keeps indexes, which it deletes; name another folder")


@contextmanager
def _os_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        kind = StoreFull if error.errno in (28, 122) else StoreUnusable  # ENOSPC, EDQUOT
        raise kind(f"{folder}: {error.strerror or error}; check the folder and its disk") from error
