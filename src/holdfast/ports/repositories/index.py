"""Port of the search index: what changed in a partition, its vectors, and the records that are not indexed yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from holdfast.domain.scope import Partition
from holdfast.domain.search import NearestIndex
from holdfast.ports.records import IndexUpdate, PartitionDelta, UnindexedRecord


class IndexReader(Protocol):
    def partitions(self) -> Sequence[Partition]:
        """Return the existing partitions that the grant reaches."""

    def change_of(self, partition: Partition) -> int:
        """Return a counter that grows with every change of the partition; 0 if it does not exist."""

    def delta(self, partition: Partition, since: int, embedder: str, vectors_after: int = 0) -> PartitionDelta:
        """Return the changes after `since`; vectors only of records that changed after `vectors_after`, too."""

    def nearest(self, partition: Partition, embedder: str) -> NearestIndex | None:
        """Return the partition's approximate index, if there is a usable one."""

    def nearest_due(self, embedder: str, least: int) -> Sequence[Partition]:
        """Return partitions of at least `least` records whose approximate index is missing or far behind."""

    def backlog(self, embedder: str, analyzer: int, after: int, limit: int) -> Sequence[UnindexedRecord]:
        """Return records after that number with vectors of another embedder, or an analysis of another version."""

    def backlog_of(self, record_ids: Sequence[str], embedder: str, analyzer: int) -> Sequence[UnindexedRecord]:
        """Return those of the given records that `backlog` would return."""


class IndexWriter(IndexReader, Protocol):
    def update(self, entries: Iterable[IndexUpdate], embedder: str, analyzer: int) -> None: ...

    def mark_stale(self) -> int:
        """Make `backlog` return every record, and return their number. Search continues with the old index."""
