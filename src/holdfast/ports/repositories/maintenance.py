"""Port of maintenance: facts about the store, counts, integrity and repair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from holdfast.domain.manifest import RepairAction
from holdfast.domain.results import Finding


class MaintenanceReader(Protocol):
    def fact(self, name: str) -> str | None: ...

    def counts(self, embedder: str, analyzer: int) -> dict[str, int]:
        """Count what the grant reaches: records, partitions, tombstones, users, resources."""

    def integrity(self, embedder: str) -> tuple[dict[str, int], Sequence[Finding]]:
        """Check the whole store: the number of rows checked by table, and what is wrong."""

    def count_repairs(self, now: datetime, keep_events: int) -> Mapping[RepairAction, int]:
        """Count the work of a repair by action, in the whole store."""


class MaintenanceWriter(MaintenanceReader, Protocol):
    def put_fact(self, name: str, value: str) -> None:
        """Store a fact about the store itself."""

    def repair(self, now: datetime, keep_events: int) -> Mapping[RepairAction, int]:
        """Repair the whole store: delete dangling rows and release stuck jobs. No text is deleted."""
