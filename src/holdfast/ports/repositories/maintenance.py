"""Port of maintenance: facts about the store, counts, integrity and repair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from holdfast.domain.backups import BackupRecord
from holdfast.domain.manifest import RepairAction
from holdfast.domain.profile_usage import HostedRecords
from holdfast.domain.results import Finding, StoreUsage

# The fact that rows may have no checksum: they are from before there were any.
UNFILLED = "unchecked"
# A table, and the key of a row in it.
RowPosition = tuple[str, Sequence[Any] | None]


class MaintenanceReader(Protocol):
    def fact(self, name: str) -> str | None: ...

    def backups(self) -> Sequence[BackupRecord]:
        """Return the backups of the store that it knows of, oldest first."""

    def counts(self, embedder: str, analyzer: int) -> dict[str, int]:
        """Count what the grant reaches: records, partitions, tombstones, users, resources."""

    def hosted_records(self, space: str, after: int) -> HostedRecords:
        """Count what runtimes wrote into the space, above that number of the store."""

    def usage(self, now: datetime) -> StoreUsage:
        """Measure the whole store, quickly enough for every scrape of metrics."""

    def integrity(self, embedder: str) -> tuple[dict[str, int], Sequence[Finding]]:
        """Check the whole store: the number of rows checked by table, and what is wrong."""

    def count_repairs(self, now: datetime, keep_events: int) -> Mapping[RepairAction, int]:
        """Count the work of a repair by action, in the whole store."""


class MaintenanceWriter(MaintenanceReader, Protocol):
    def put_fact(self, name: str, value: str) -> None:
        """Store a fact about the store itself."""

    def add_checksums(self, position: RowPosition | None, limit: int) -> RowPosition | None:
        """Add the missing checksums of the next rows; return where to go on, None at the end. Then the fact is gone."""

    def repair(self, now: datetime, keep_events: int) -> Mapping[RepairAction, int]:
        """Repair the whole store: delete dangling rows and release stuck jobs. No text is deleted."""
