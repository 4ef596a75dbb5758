"""The views that are kept between searches: the newest of each partition, the least used dropped first.

What a caller gets is exactly what its reader sees: never rows that were committed after the reader's snapshot. Several
threads may ask at once; a partition is refreshed by one of them at a time. A view larger than the whole cache is used
and not kept.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from holdfast.domain.scope import Partition
from holdfast.ports import Reader
from holdfast.search.view import PartitionView

Key = tuple[Partition, str]


class _Slot:
    def __init__(self) -> None:
        self.lock = Lock()
        self.view: PartitionView | None = None
        self.counted = 0


class ViewCache:
    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._slots: OrderedDict[Key, _Slot] = OrderedDict()
        self._lock = Lock()
        self._held = 0

    @property
    def bytes(self) -> int:
        """What the kept views hold; never more than was allowed, but for the moment of a refresh."""
        return self._held

    def view(self, reader: Reader, partition: Partition, embedder: str) -> PartitionView:
        """The partition as this reader sees it, with the vectors of that embedder."""
        change = reader.change_of(partition)
        key = (partition, embedder)
        if change == 0:
            self._drop(key)
            return PartitionView.empty()
        slot = self._slot(key)
        view = slot.view
        if view is None or view.change < change:
            with slot.lock:
                view = slot.view or PartitionView.empty()
                if view.change < change:
                    view = view.extended(reader.delta(partition, view.change, embedder))
                    slot.view = view
            self._count(key, slot, view)
        if view.change > change:
            # Somebody with a newer snapshot refreshed it: its rows are not all ours to see.
            return PartitionView.empty().extended(reader.delta(partition, 0, embedder))
        return view

    def clear(self) -> None:
        with self._lock:
            self._slots.clear()
            self._held = 0

    def _slot(self, key: Key) -> _Slot:
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
            return slot

    def _drop(self, key: Key) -> None:
        with self._lock:
            if slot := self._slots.pop(key, None):
                self._held -= slot.counted

    def _count(self, key: Key, slot: _Slot, view: PartitionView) -> None:
        """Note the new size, and drop what was not used for longest until all fits; this one last."""
        with self._lock:
            if self._slots.get(key) is not slot:
                return
            self._held += view.bytes - slot.counted
            slot.counted = view.bytes
            self._slots.move_to_end(key)
            while self._held > self._max_bytes:
                _, dropped = self._slots.popitem(last=False)
                self._held -= dropped.counted
