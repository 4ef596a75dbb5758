"""The papers of a store: the manifest that says what it was made for, and what a repair may do to it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from holdfast.domain.derived import RepairIssue
from holdfast.domain.profiles import Backend, Profile, SystemKind
from holdfast.domain.results import Finding
from holdfast.domain.scope import Scope
from holdfast.domain.times import checked_time
from holdfast.errors import HoldfastError, ManifestMismatch

MANIFEST = "manifest"  # the name of the fact
SCHEMA_ID = "holdfast_store_schema_v1"
# Beyond those of the profile that the manifest names, or of no profile, events go with the next repair.
EVENTS_KEPT = 32_768


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a store was made for, by the first runtime that opened it, and when one did last."""

    version: int
    backend: str
    profile: str
    memory_system_kind: SystemKind
    created_at: datetime
    last_opened_at: datetime
    schema_id: str = SCHEMA_ID

    def to_json(self) -> str:
        return json.dumps(
            {
                "schema_id": self.schema_id,
                "version": self.version,
                "backend": self.backend,
                "profile": self.profile,
                "memory_system_kind": self.memory_system_kind,
                "created_at": self.created_at.isoformat(),
                "last_opened_at": self.last_opened_at.isoformat(),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """`ManifestMismatch` if it is none that can be read."""
        try:
            found = json.loads(text)
            return cls(
                version=int(found["version"]),
                backend=str(found["backend"]),
                profile=str(found["profile"]),
                memory_system_kind=SystemKind(found["memory_system_kind"]),
                created_at=checked_time(found["created_at"], "created_at"),
                last_opened_at=checked_time(found["last_opened_at"], "last_opened_at"),
                schema_id=str(found["schema_id"]),
            )
        except (ValueError, KeyError, TypeError, HoldfastError):
            pass
        raise ManifestMismatch("the store's manifest cannot be read; restore the store from a backup")


def manifest_for(profile: Profile, backend: Backend | str, version: int, at: datetime) -> Manifest:
    return Manifest(version, str(backend), profile.name, profile.kind, at, at)


def presented(found: Manifest | None, wanted: Manifest) -> Manifest:
    """The manifest as it is to be kept after a runtime opened the store as `wanted`; `ManifestMismatch` if it may not.

    The version moves on with the schema, which migrations bring up to date before; a newer one cannot be opened.
    """
    if found is None:
        return wanted
    for part in ("schema_id", "backend", "profile", "memory_system_kind"):
        made_for, asked = getattr(found, part), getattr(wanted, part)
        if made_for != asked:
            raise ManifestMismatch(
                f"{part}: the store was made for {made_for}, and is opened as {asked}; open it as what it is,"
                " or export its space into a store of its own"
            )
    if found.version > wanted.version:
        raise ManifestMismatch(
            f"version: the store was last opened at schema {found.version}, and this Holdfast knows {wanted.version};"
            " use a newer Holdfast"
        )
    # Clocks lie: a store is never opened before it was made.
    return replace(found, version=wanted.version, last_opened_at=max(found.last_opened_at, wanted.last_opened_at))


def rehoused(manifest: str, backends: tuple[str, ...]) -> str:
    """A manifest, as JSON, after its store was copied to where memory is kept in one of these."""
    try:
        found = Manifest.from_json(manifest)
    except ManifestMismatch:
        return manifest  # whoever opens it is told
    return manifest if found.backend in backends else replace(found, backend=backends[0]).to_json()


class Mend(StrEnum):
    """What a repair may do, since it loses nothing that anybody said or learned."""

    REINDEX = "reindex"
    DROP_ORPHAN_VECTORS = "drop_orphan_vectors"
    DROP_ORPHAN_LINKS = "drop_orphan_links"
    RELEASE_STUCK_JOBS = "release_stuck_jobs"
    PRUNE_EVENTS = "prune_events"


# Which finding of `verify` each of them sees to.
MENDS = {
    "records that are embedded have vectors": Mend.REINDEX,
    "records have the terms of their text": Mend.REINDEX,
    "vectors of one embedder are of one length": Mend.REINDEX,
    "vectors have their record": Mend.DROP_ORPHAN_VECTORS,
    "evidence links messages and memories": Mend.DROP_ORPHAN_LINKS,
}


@dataclass(frozen=True, slots=True)
class ThreadIssues:
    """What is broken in one conversation."""

    thread: Scope
    issues: tuple[RepairIssue, ...]


@dataclass(frozen=True, slots=True)
class StoreRepair:
    """What is wrong with a store, what a repair can do about it, and what it has done.

    `mends` counts what there was to do; `applied` says whether it was done. What is in `beyond_repair` no repair
    mends: a backup does, or somebody who decides what is to go.
    """

    applied: bool
    findings: tuple[Finding, ...]
    checked_turns: int
    threads: tuple[ThreadIssues, ...]
    more_issues: bool
    mends: dict[Mend, int]
    beyond_repair: tuple[str, ...]
    manifest: Manifest | None

    @property
    def sound(self) -> bool:
        """Whether nothing was found, or nothing is left."""
        return not self.beyond_repair and (self.applied or not any(self.mends.values()))
