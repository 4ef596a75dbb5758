"""Backups: what a backup says of itself, what its store knows of it, and which of them are too old to keep."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from holdfast.domain.presentable import Presentable
from holdfast.domain.times import checked_time
from holdfast.errors import HoldfastError, InvalidInput

# The names that a backup may have. Rotation looks at these, and then into the file.
NAMES = "holdfast-*.backup"
MAX_KEEP = 100_000


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """A backup's account of itself, kept inside its file.

    `store` is the id of the store and `address` where it was; both identify it. `counts` and `digest` are of all rows
    in the file. `last_number` is the highest number of a record in it.
    """

    id: str
    store: str
    address: str
    made_at: datetime
    version: str
    schema: int
    last_number: int
    counts: dict[str, int]
    digest: str

    @property
    def name(self) -> str:
        return backup_name(self.id, self.made_at)

    def is_of(self, store: str, address: str) -> bool:
        return (self.store, self.address) == (store, address)

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=datetime.isoformat)

    @classmethod
    def from_json(cls, text: str) -> BackupManifest | None:
        """Parse a manifest; None if it cannot be read."""
        try:
            found = json.loads(text)
            return cls(
                id=str(found["id"]),
                store=str(found["store"]),
                address=str(found["address"]),
                made_at=checked_time(found["made_at"], "made_at"),
                version=str(found["version"]),
                schema=int(found["schema"]),
                last_number=int(found["last_number"]),
                counts={str(table): int(count) for table, count in found["counts"].items()},
                digest=str(found["digest"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError, HoldfastError):
            return None


@dataclass(frozen=True, slots=True)
class BackupRecord:
    """A store's note of a backup of it, made before the backup is.

    `last_number` is the highest number of a record in it, and None until it is complete.
    """

    id: str
    store: str
    folder: str
    made_at: datetime
    last_number: int | None = None

    @property
    def name(self) -> str:
        return backup_name(self.id, self.made_at)

    @property
    def files(self) -> tuple[str, str]:
        """The paths that it has, one after the other: while it is written, and then."""
        return f"{self.folder}/{partial_name(self.store)}", f"{self.folder}/{self.name}"

    def may_hold(self, first_number: int | None) -> bool:
        """True unless every record with this number or a higher one is later than the backup."""
        return self.last_number is None or first_number is None or first_number <= self.last_number

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=datetime.isoformat)

    @classmethod
    def of(cls, manifest: BackupManifest, folder: str) -> BackupRecord:
        """Return what the store would know of this backup."""
        return cls(manifest.id, manifest.store, folder, manifest.made_at, manifest.last_number)

    @classmethod
    def from_json(cls, text: str) -> BackupRecord | None:
        """Parse a record; None if it cannot be read."""
        try:
            found = json.loads(text)
            made_at = checked_time(found["made_at"], "made_at")
            last = found["last_number"]
            return cls(str(found["id"]), str(found["store"]), str(found["folder"]), made_at, last and int(last))
        except (ValueError, KeyError, TypeError, HoldfastError):
            return None


@dataclass(frozen=True, slots=True)
class RetainedBackup(Presentable):
    """A backup that still holds what was forgotten: the name of its file, and when it was made."""

    id: str
    name: str
    made_at: datetime


@dataclass(frozen=True, slots=True)
class BackupResult(Presentable):
    """The result of a backup: its file, when it was made, what it holds, and the older backups that it replaced."""

    path: str
    made_at: datetime
    records: int
    rows: int
    bytes: int
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RestoreResult(Presentable):
    """The result of a restore: the moment at which the store was as it is again, and what it holds."""

    made_at: datetime
    records: int
    rows: int
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Retention:
    """The number of backups of a store to keep in a folder, and for how many days. None is without limit."""

    keep: int | None = None
    keep_days: int | None = None

    def __post_init__(self) -> None:
        for name in ("keep", "keep_days"):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise InvalidInput(name, f"expected a whole number, got {type(value).__name__}")
            if not 1 <= value <= MAX_KEEP:
                raise InvalidInput(name, f"must be from 1 to {MAX_KEEP:,}; the newest backup is always kept")

    def find_expired(self, newest: BackupManifest, others: Iterable[BackupManifest]) -> Sequence[BackupManifest]:
        """Return those of the others that are too many, or too old at the time of the newest."""
        by_age = sorted(others, key=lambda each: (each.made_at, each.id), reverse=True)
        allowed = len(by_age) if self.keep is None else self.keep - 1
        recent = by_age[:allowed]
        if self.keep_days is not None:
            oldest = newest.made_at - timedelta(days=self.keep_days)
            recent = [each for each in recent if each.made_at >= oldest]
        return [each for each in by_age if each not in recent]


def backup_name(backup_id: str, made_at: datetime) -> str:
    return f"holdfast-{made_at:%Y%m%dT%H%M%SZ}-{backup_id}.backup"


def partial_name(store: str) -> str:
    """Return the name of a store's backup while it is being written."""
    return f".holdfast-{store}.partial"


def inherited_records(
    restored: BackupRecord, known: Iterable[BackupRecord], others: Iterable[BackupRecord]
) -> Sequence[BackupRecord]:
    """Return what a restored store must know of the backups that hold its content.

    Its own records do not know the backup that it comes from as complete, nor later ones. Those hold at most what the
    restored one does.
    """
    assert restored.last_number is not None
    found = {each.id: each for each in known}
    for each in (*others, restored):
        if each.store == restored.store and (each.id not in found or found[each.id].last_number is None):
            last = restored.last_number if each.last_number is None else min(each.last_number, restored.last_number)
            found[each.id] = replace(each, last_number=last)
    return list(found.values())
