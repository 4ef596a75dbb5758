"""LRU cache of partition views between searches.

Snapshot isolation: a caller gets exactly what its reader sees, never rows committed after the reader's snapshot.
Thread-safe; one thread at a time refreshes a partition. Its previous views, which share most of the memory, are cached
for readers with slightly older snapshots, if there is room. A view larger than the whole cache is used but not cached.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

from holdfast.domain.scope import Partition
from holdfast.domain.search import ViewCacheUsage
from holdfast.ports import NearestIndex, PartitionDelta
from holdfast.search.partition_index import has_other_length
from holdfast.search.partition_view import PartitionView, bytes_of

if TYPE_CHECKING:
    from holdfast.ports.repositories.index import IndexReader

Key = tuple[Partition, str]
# Cached views per partition, the newest first.
_RECENT = 3
# The `covered` value of a view whose index always contains every vector.
_ALWAYS = 2**62


class _Slot:
    def __init__(self) -> None:
        self.lock = Lock()
        self.views: tuple[PartitionView, ...] = ()
        self.counted = 0

    def at(self, change: int, covered: int) -> PartitionView | None:
        return next((view for view in self.views if (view.change, view.covered) == (change, covered)), None)

    def put(self, view: PartitionView) -> None:
        # Views based on another index share no vectors with this one.
        older_views = [each for each in self.views if each.covered == view.covered]
        for each in older_views:
            each.drop_cached_sights()  # for the few searches that began before, they are computed again
        self.views = (view, *older_views[: _RECENT - 1])


class ViewCache:
    def __init__(self, max_bytes: int, max_entries: int | None = None) -> None:
        """Without `max_entries`, the number of partitions is not limited."""
        self._max_bytes = max_bytes
        self.max_entries = max_entries
        self._slots: OrderedDict[Key, _Slot] = OrderedDict()
        self._lock = Lock()
        self._held = 0
        self._lookups = self._misses = self._evictions = 0

    @property
    def usage(self) -> ViewCacheUsage:
        """Return the use of the cache; its bytes are above the limit only briefly, during a refresh."""
        with self._lock:
            hits = self._lookups - self._misses
            return ViewCacheUsage(self._held, self._max_bytes, len(self._slots), hits, self._misses, self._evictions)

    def view(
        self, index: IndexReader, partition: Partition, embedder: str, nearest: NearestIndex | None = None
    ) -> PartitionView:
        """The partition as this reader sees it, with the embedder's vectors that `nearest` does not contain."""
        change = index.change_of(partition)
        covered = _covered_change(nearest)
        key = (partition, embedder)
        if change == 0:
            self._drop(key)
            return PartitionView.empty()
        slot = self._slot(key)
        view = slot.at(change, covered)
        if view is None:
            with slot.lock:
                view = slot.at(change, covered)
                if view is None and not any(newer.change > change for newer in slot.views):
                    view = _extend_view(_start(slot, covered), index, partition, embedder)
                    slot.put(view)
                    self._count(key, slot)
        if view is None:
            # A reader with a newer snapshot refreshed it: this reader must not see all of its rows.
            with self._lock:
                self._misses += 1
            return _extend_view(PartitionView.empty(covered), index, partition, embedder)
        return view

    def known_size(self, partition: Partition, embedder: str) -> int | None:
        """Number of rows of the partition's newest view; None if none is cached."""
        with self._lock:
            slot = self._slots.get((partition, embedder))
        return slot.views[0].size if slot is not None and slot.views else None

    def clear(self) -> None:
        with self._lock:
            self._slots.clear()
            self._held = 0

    def _slot(self, key: Key) -> _Slot:
        with self._lock:
            self._lookups += 1
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
            return slot

    def _drop(self, key: Key) -> None:
        with self._lock:
            if slot := self._slots.pop(key, None):
                self._held -= slot.counted

    def _count(self, key: Key, slot: _Slot) -> None:
        """Record the new size, and evict the least recently used until all fits; this one last."""
        size = bytes_of(slot.views)
        if size > self._max_bytes:
            slot.views = slot.views[:1]
            size = bytes_of(slot.views)
        with self._lock:
            self._misses += 1
            if self._slots.get(key) is not slot:
                return
            self._held += size - slot.counted
            slot.counted = size
            self._slots.move_to_end(key)
            while self._held > self._max_bytes or (
                self.max_entries is not None and len(self._slots) > self.max_entries
            ):
                _, dropped = self._slots.popitem(last=False)
                self._held -= dropped.counted
                self._evictions += 1


def _covered_change(nearest: NearestIndex | None) -> int:
    if nearest is None:
        return 0
    return _ALWAYS if nearest.state.live else nearest.state.change


def _start(slot: _Slot, covered: int) -> PartitionView:
    """The view to extend. A view based on an index cannot become one that contains every vector."""
    if not slot.views or covered < slot.views[0].covered:
        return PartitionView.empty(covered)
    newest = slot.views[0]
    return newest if newest.covered == covered else newest.without_indexed_vectors(covered)


def _extend_view(view: PartitionView, index: IndexReader, partition: Partition, embedder: str) -> PartitionView:
    delta = _delta(view, index, partition, embedder)
    if has_other_length(view.vectors, delta.vectors):
        view = PartitionView.empty(view.covered)
        delta = _delta(view, index, partition, embedder)
    return view.extend(delta)


def _delta(view: PartitionView, index: IndexReader, partition: Partition, embedder: str) -> PartitionDelta:
    if view.covered <= view.change:
        return index.delta(partition, view.change, embedder)
    return index.delta(partition, view.change, embedder, view.covered)
