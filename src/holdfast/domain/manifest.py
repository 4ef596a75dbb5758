"""The manifest of a store, which says what it was created for, and the report of a store repair."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum

from holdfast.domain.derived_refs import RepairIssue
from holdfast.domain.profiles import Backend, Profile, SystemKind
from holdfast.domain.results import Finding
from holdfast.domain.scope import Scope
from holdfast.domain.times import checked_iso_time
from holdfast.errors import HoldfastError, ManifestMismatch

MANIFEST = "manifest"  # the name of the fact
SCHEMA_ID = "holdfast_store_schema_v1"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The settings of the first runtime that opened a store, and when it was last opened."""

    version: int
    backend: str
    profile: str
    memory_system_kind: SystemKind
    created_at: datetime
    last_opened_at: datetime
    schema_id: str = SCHEMA_ID

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=datetime.isoformat)

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Parse a manifest; raises `ManifestMismatch` if it cannot be read."""
        try:
            found = json.loads(text)
            return cls(
                version=int(found["version"]),
                backend=str(found["backend"]),
                profile=str(found["profile"]),
                memory_system_kind=SystemKind(found["memory_system_kind"]),
                created_at=checked_iso_time(found["created_at"], "created_at"),
                last_opened_at=checked_iso_time(found["last_opened_at"], "last_opened_at"),
                schema_id=str(found["schema_id"]),
            )
        except (ValueError, KeyError, TypeError, HoldfastError):
            pass
        raise ManifestMismatch("the store's manifest cannot be read; restore the store from a backup")


def manifest_for(profile: Profile, backend: Backend | str, version: int, at: datetime) -> Manifest:
    return Manifest(version, str(backend), profile.name, profile.kind, at, at)


def merge_manifest(found: Manifest | None, wanted: Manifest) -> Manifest:
    """Return the manifest to store after a runtime opened the store as `wanted`, or raise `ManifestMismatch`.

    The version follows the schema, which is migrated before. A store of a newer version cannot be opened.
    """
    if found is None:
        return wanted
    for part in ("schema_id", "backend", "profile", "memory_system_kind"):
        made_for, opened_as = getattr(found, part), getattr(wanted, part)
        if made_for != opened_as:
            raise ManifestMismatch(
                f"{part}: the store was created for {made_for}, but is opened as {opened_as}; open it as {made_for},"
                " or export its space into another store"
            )
    if found.version > wanted.version:
        raise ManifestMismatch(
            f"version: the store was last opened at schema {found.version}, but this Holdfast knows {wanted.version};"
            " use a newer Holdfast"
        )
    # Clocks may run backwards: never move `last_opened_at` back.
    return replace(found, version=wanted.version, last_opened_at=max(found.last_opened_at, wanted.last_opened_at))


def retarget_manifest(manifest: str, backends: tuple[str, ...]) -> str:
    """Return a manifest, as JSON, for a copy of its store that is kept in one of these backends."""
    try:
        found = Manifest.from_json(manifest)
    except ManifestMismatch:
        return manifest  # opening the store reports it
    return manifest if found.backend in backends else replace(found, backend=backends[0]).to_json()


class RepairAction(StrEnum):
    """An action of a repair. None of them loses a message or a memory."""

    REINDEX = "reindex"
    DROP_ORPHAN_VECTORS = "drop_orphan_vectors"
    DROP_ORPHAN_LINKS = "drop_orphan_links"
    RELEASE_STUCK_JOBS = "release_stuck_jobs"
    PRUNE_EVENTS = "prune_events"
    RESTRICT_FILES = "restrict_files"


# The action that fixes each finding of `verify`.
MENDS = {
    "records that are embedded have vectors": RepairAction.REINDEX,
    "records have the terms of their text": RepairAction.REINDEX,
    "vectors of one embedder are of one length": RepairAction.REINDEX,
    "vectors have their record": RepairAction.DROP_ORPHAN_VECTORS,
    "evidence links messages and memories": RepairAction.DROP_ORPHAN_LINKS,
}


# The check of rows by their checksums. Its findings say themselves what to do.
ROWS = "rows are as they were written"
# Damage that a rebuild mends, and no repair.
REBUILDS = frozenset({"vectors are as they were written"})


@dataclass(frozen=True, slots=True)
class ThreadIssues:
    """The issues of one conversation."""

    thread: Scope
    issues: tuple[RepairIssue, ...]


@dataclass(frozen=True, slots=True)
class StoreRepair:
    """Problems of a store, and the actions that a repair can take or has taken.

    `mends` counts the work by action; `applied` says whether it was done. No repair fixes `beyond_repair`: restore a
    backup, or decide what to delete. `foreign_files` can be read by others, and only their owner can change that.
    """

    applied: bool
    findings: tuple[Finding, ...]
    checked_turns: int
    threads: tuple[ThreadIssues, ...]
    more_issues: bool
    mends: dict[RepairAction, int]
    beyond_repair: tuple[str, ...]
    manifest: Manifest | None
    foreign_files: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """True if nothing was found, or everything was repaired."""
        return not (self.beyond_repair or self.foreign_files) and (self.applied or not any(self.mends.values()))
