"""The in-memory view of a partition for search: columns, postings and vectors, and how it is extended.

A `PartitionView` is immutable for readers. A delta gives the next view; both share their large buffers, and each
sees its own length. A changed record gets a new row, and its old row is dead; removed records are erased from the next
view, not only hidden. A view that was extended ranks exactly like one built at once: nothing in it depends on the order
of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.domain.ranking import BoolArray, FloatArray, IntArray
from holdfast.domain.scope import Scope
from holdfast.ports import IndexRow, PartitionDelta, columns_of
from holdfast.search.partition_index import (
    NO_VECTORS,
    Postings,
    SmallArray,
    Vectors,
    products_of,
    read_vectors,
    segment_of,
)

K = TypeVar("K")
V = TypeVar("V")

NEVER = np.iinfo(np.int64).max
ALWAYS = np.iinfo(np.int64).min
MESSAGE = 0


class GrowingArray:
    """An append-only array. A holder of its first n rows never sees later rows."""

    def __init__(self, data: NDArray[np.generic], used: int) -> None:
        self._data = data
        self._used = used

    def append_after(self, seen: int, values: NDArray[np.generic]) -> tuple[GrowingArray, NDArray[np.generic]]:
        """Append `values` after the first `seen` rows; in place if nothing else was appended there."""
        size = seen + len(values)
        if seen == self._used and size <= len(self._data) and self._data.dtype == values.dtype:
            self._data[seen:size] = values
            self._used = size
            return self, self._data[:size]
        if seen == 0:
            return GrowingArray(values, size), values  # a first load has the exact size and is used without a copy
        # Reserve a quarter more; at least 64 rows, but no more than 16 KB of them: most partitions are small.
        least = min(64, 16_384 * len(values) // max(values.nbytes, 1))
        data = np.empty((size + max(least, size // 4), *values.shape[1:]), values.dtype)
        data[:seen] = self._data[:seen]
        data[seen:size] = values
        return GrowingArray(data, size), data[:size]

    @classmethod
    def empty(cls) -> GrowingArray:
        return cls(np.empty(0), 0)

    @property
    def bytes(self) -> int:
        """Bytes of the array, with its reserve."""
        return self._data.nbytes


class LruCache(Generic[K, V]):
    """A small thread-safe LRU cache."""

    def __init__(self, room: int = 2) -> None:
        self._room = room
        self._kept: dict[K, V] = {}
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            value = self._kept.pop(key, None)
            if value is not None:
                self._kept[key] = value  # the most recently used comes last
            return value

    def put(self, key: K, value: V) -> None:
        with self._lock:
            self._kept.pop(key, None)
            self._kept[key] = value
            if len(self._kept) > self._room:
                del self._kept[next(iter(self._kept))]

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()


class ValueDictionary(Generic[V]):
    """Maps values to codes in the order of first use. Append-only; None is -1."""

    def __init__(self) -> None:
        self._codes: dict[V | None, int] = {None: -1}
        self.values: list[V] = []

    def encode(self, values: Sequence[V | None]) -> SmallArray:
        codes = self._codes
        for value in dict.fromkeys(values):
            if value is not None and value not in codes:
                codes[value] = len(self.values)
                self.values.append(value)
        return np.fromiter((codes[value] for value in values), np.int32, len(values))

    def find(self, value: V) -> int:
        """The value's code, or -2, which no row has."""
        return self._codes.get(value, -2)


@dataclass(frozen=True, slots=True)
class Columns:
    """One value per row. Missing times are ALWAYS (start) or NEVER (end)."""

    number: IntArray
    kind: NDArray[np.int8]
    trust: NDArray[np.int8]
    flags: SmallArray
    length: SmallArray
    position: IntArray
    said_at: IntArray
    recorded_at: IntArray
    superseded_at: IntArray
    valid_from: IntArray
    valid_to: IntArray
    plane: SmallArray
    status: SmallArray
    sender: SmallArray
    role: SmallArray
    source: SmallArray
    scope: SmallArray
    conversation: SmallArray

    def at(self, rows: IntArray) -> Columns:
        return Columns(*(getattr(self, name)[rows] for name in COLUMN_NAMES))


COLUMN_NAMES = tuple(column.name for column in fields(Columns))


class ColumnDictionaries:
    """The dictionaries of a partition's encoded columns. Append-only, shared by its views."""

    def __init__(self) -> None:
        self.planes, self.statuses, self.senders, self.roles, self.sources = (ValueDictionary[str]() for _ in range(5))
        self.scopes: list[Scope] = []
        self._scope_ids = ValueDictionary[int]()
        self._conversation_ids = ValueDictionary[int]()
        self._covered: LruCache[Scope, BoolArray] = LruCache()

    def scope_codes(self, ids: Sequence[int], scopes: Mapping[int, Scope]) -> SmallArray:
        codes = self._scope_ids.encode(ids)
        self.scopes += [scopes[scope_id] for scope_id in self._scope_ids.values[len(self.scopes) :]]
        return codes

    def covered_by(self, scope: Scope) -> BoolArray:
        """Per scope code, True if `scope` covers it. Cached and extended: scopes are append-only."""
        known = self._covered.get(scope)
        if known is None or len(known) < len(self.scopes):
            done = 0 if known is None else len(known)
            fresh = np.array([scope.covers(other) for other in self.scopes[done:]], bool)
            known = fresh if known is None else np.concatenate((known, fresh))
            self._covered.put(scope, known)
        return known

    @property
    def conversations(self) -> int:
        return len(self._conversation_ids.values)

    @property
    def bytes(self) -> int:
        """Bytes of the values, by their usual size: there are few, or one per conversation or source."""
        names = (self.planes, self.statuses, self.senders, self.roles, self.sources)
        return sum(len(each.values) for each in names) * _NAME_BYTES + len(self.scopes) * _SCOPE_BYTES

    def columns(self, values: IndexRow, scopes: Mapping[int, Scope]) -> Columns:
        """Encode rows. `values` has a whole column in place of each value."""
        return Columns(
            number=np.array(values.number, np.int64),
            kind=np.array(values.kind, np.int8),
            trust=np.array(values.trust, np.int8),
            flags=np.array(values.flags, np.int32),
            length=np.array(values.length, np.int32),
            position=np.array(values.position, np.int64),
            said_at=np.array(values.said_at, np.int64),
            recorded_at=np.array(values.recorded_at, np.int64),
            superseded_at=_moments(values.superseded_at, NEVER),
            valid_from=_moments(values.valid_from, ALWAYS),
            valid_to=_moments(values.valid_to, NEVER),
            plane=self.planes.encode(values.plane),  # type: ignore[arg-type]
            status=self.statuses.encode(values.status),
            sender=self.senders.encode(values.sender),  # type: ignore[arg-type]
            role=self.roles.encode(values.role),  # type: ignore[arg-type]
            source=self.sources.encode(values.source),  # type: ignore[arg-type]
            scope=self.scope_codes(values.scope_id, scopes),  # type: ignore[arg-type]
            conversation=self._conversation_ids.encode(values.conversation_id),  # type: ignore[arg-type]
        )


def _moments(values: object, missing: int) -> IntArray:
    moments: Sequence[int | None] = values  # type: ignore[assignment]
    return np.fromiter((missing if value is None else value for value in moments), np.int64, len(moments))


# Messages with a longer pause between them are no neighbours.
PAUSE_MICROS = 3_600_000_000
# Overhead of a view's Python objects: arrays, lists and dictionaries.
_OBJECT_BYTES = 12_000
# A name in a dictionary; a scope, with the id of its conversation.
_NAME_BYTES, _SCOPE_BYTES = 200, 450
# Bytes per row of the cached visibility data, for two scopes.
_SIGHT_BYTES = 2 * 33
# Dead rows are dropped when they exceed both this number and this share of the view.
_DEAD_ROWS, _DEAD_SHARE = 256, 0.25


@dataclass(frozen=True, slots=True)
class Links:
    """Per row, its neighbours in the conversation without a long pause (-1: none), and dot products of their vectors.

    A product is 0 if one of the two has no vector.
    """

    previous: SmallArray
    following: SmallArray
    to_following: FloatArray
    across: FloatArray

    @classmethod
    def none(cls, size: int) -> Links:
        return cls(
            np.full(size, -1, np.int32),
            np.full(size, -1, np.int32),
            np.zeros(size, np.float32),
            np.zeros(size, np.float32),
        )

    @property
    def bytes(self) -> int:
        return self.previous.nbytes + self.following.nbytes + self.to_following.nbytes + self.across.nbytes


@dataclass(eq=False, repr=False)
class PartitionView:
    """One partition at one change number. Its columns are read-only."""

    change: int
    names: ColumnDictionaries
    columns: Columns
    alive: BoolArray
    vectors: Vectors
    links: Links
    postings: Postings
    buffers: Mapping[str, GrowingArray]
    # Vectors up to this change are in the store's approximate index, not here.
    covered: int = 0
    # Cached visibility data for the next search of the same scope.
    sights: LruCache[object, Any] = field(default_factory=LruCache, init=False)
    samples: LruCache[object, Any] = field(default_factory=LruCache, init=False)

    @classmethod
    def empty(cls, covered: int = 0) -> PartitionView:
        names = ColumnDictionaries()
        nothing = np.empty(0, np.int64)
        columns = Columns(*(nothing for _ in COLUMN_NAMES))  # type: ignore[arg-type]
        return cls(0, names, columns, np.empty(0, bool), NO_VECTORS, Links.none(0), Postings(), {}, covered)

    @property
    def size(self) -> int:
        """Number of rows, including dead ones."""
        return len(self.alive)

    @cached_property
    def own_bytes(self) -> int:
        """Bytes that this view shares with no other, without its cached visibility data."""
        return self.alive.nbytes + self.links.bytes + self.vectors.index_bytes + _OBJECT_BYTES

    def drop_cached_sights(self) -> None:
        self.sights.clear()
        self.samples.clear()

    def links_among(self, visible: BoolArray) -> Links:
        """Neighbours among the visible rows only: hidden rows between two of them are skipped."""
        previous, following = self.links.previous, self.links.following
        hidden = np.append(~visible, False)
        if not np.any(visible & (hidden[previous] | hidden[following])):
            return self.links
        before, after = _next_visible(previous, hidden), _next_visible(following, hidden)
        said_at = self.columns.said_at
        before = np.where((before >= 0) & (said_at - said_at[before] <= PAUSE_MICROS), before, -1)
        after = np.where((after >= 0) & (said_at[after] - said_at <= PAUSE_MICROS), after, -1)
        changed = np.flatnonzero(visible & ((before != previous) | (after != following)))
        links = Links(before, after, self.links.to_following.copy(), self.links.across.copy())
        _multiply(links, changed, self.vectors)
        return links

    def rows_of(self, numbers: IntArray) -> IntArray:
        """The live rows of these records, in this order; unknown numbers are skipped."""
        known, rows = self._by_number
        if not len(known):
            return np.empty(0, np.int64)
        at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        found: IntArray = rows[at[known[at] == numbers]]
        return found

    @cached_property
    def _by_number(self) -> tuple[IntArray, IntArray]:
        rows = np.flatnonzero(self.alive)
        numbers = self.columns.number[rows]
        order = np.argsort(numbers, kind="stable")
        return numbers[order], rows[order]

    def extend(self, delta: PartitionDelta) -> PartitionView:
        """Create the next view: apply the delta's new, changed and removed records."""
        removed = self._living(np.array(delta.removed, np.int64))
        view = self._without(removed) if len(removed) else self
        if delta.rows:
            view = view._with_rows(delta)
        dead = view.size - int(np.count_nonzero(view.alive))
        if dead > _DEAD_ROWS and dead > _DEAD_SHARE * view.size:
            view = view._without(np.empty(0, np.int64))
        return replace(view, change=delta.change)

    def without_indexed_vectors(self, covered: int) -> PartitionView:
        """Copy without vectors, for an index that contains them up to that change. Later changes must be read again."""
        return replace(
            self,
            change=min(self.change, covered),
            vectors=replace(NO_VECTORS, whole=np.full(self.size, -1, np.int64)),
            links=replace(Links.none(self.size), previous=self.links.previous, following=self.links.following),
            buffers={name: buffer for name, buffer in self.buffers.items() if name != "vectors"},
            covered=covered,
        )

    def _living(self, numbers: IntArray) -> IntArray:
        """The live rows of these records."""
        if not len(numbers) or not self.size or numbers.min() > self.columns.number.max():
            return np.empty(0, np.int64)
        return np.flatnonzero(self.alive & np.isin(self.columns.number, numbers))

    def _with_rows(self, delta: PartitionDelta) -> PartitionView:
        given: Any = IndexRow(*columns_of(delta.rows))  # a whole column in place of each value
        fresh = self.names.columns(given, delta.scopes)
        size, seen = self.size + len(fresh.number), self.size
        alive = np.ones(size, bool)
        alive[:seen] = self.alive
        died = self._living(fresh.number)
        alive[died] = False
        buffers = dict(self.buffers)
        columns = Columns(*(self._append(buffers, name, getattr(fresh, name)) for name in COLUMN_NAMES))
        vectors = self._with_vectors(buffers, read_vectors(delta.vectors, fresh.number))
        postings = self.postings.with_segment(segment_of(given.terms, seen))
        links = _link_neighbours(self.links, columns, alive, vectors, np.append(died, np.arange(seen, size)))
        return PartitionView(delta.change, self.names, columns, alive, vectors, links, postings, buffers, self.covered)

    def _append(self, buffers: dict[str, GrowingArray], name: str, values: Any) -> Any:
        buffers[name], data = buffers.get(name, GrowingArray.empty()).append_after(self.size, values)
        return data

    def _with_vectors(self, buffers: dict[str, GrowingArray], fresh: Vectors) -> Vectors:
        old, base = self.vectors, len(self.vectors.rows)
        rows = old.rows
        if len(fresh.rows):
            buffers["vectors"], data = buffers.get("vectors", GrowingArray.empty()).append_after(base, fresh.rows)
            rows = data.astype(np.float32, copy=False)
        whole = np.where(fresh.whole < 0, -1, fresh.whole + base)
        if not len(fresh.many):
            return replace(old, rows=rows, whole=np.concatenate((old.whole, whole)))
        return Vectors(
            rows,
            np.concatenate((old.whole, whole)),
            np.concatenate((old.many, fresh.many + self.size)),
            np.concatenate((old.first, fresh.first + base)),
            np.concatenate((old.last, fresh.last + base)),
        )

    def _without(self, removed: IntArray) -> PartitionView:
        """Copy into new buffers, without dead rows and the removed ones."""
        keep = self.alive.copy()
        keep[removed] = False
        rows = np.flatnonzero(keep)
        moved = np.full(self.size, -1, np.int32)
        moved[rows] = np.arange(len(rows), dtype=np.int32)
        columns, vectors = self.columns.at(rows), self._select_vectors(keep, moved)
        alive = np.ones(len(rows), bool)
        links = _link_neighbours(Links.none(0), columns, alive, vectors, np.arange(len(rows)))
        buffers = {name: GrowingArray(getattr(columns, name), len(rows)) for name in COLUMN_NAMES}
        buffers["vectors"] = GrowingArray(vectors.rows, len(vectors.rows))
        postings = self.postings.renumber(moved)
        return PartitionView(self.change, self.names, columns, alive, vectors, links, postings, buffers, self.covered)

    def _select_vectors(self, keep: BoolArray, moved: SmallArray) -> Vectors:
        old = self.vectors
        needed = np.zeros(len(old.rows) + 1, np.int64)
        needed[old.whole[keep & (old.whole >= 0)]] = 1
        staying = keep[old.many]
        many, first, last = old.many[staying], old.first[staying], old.last[staying]
        for start, end in zip(first.tolist(), last.tolist(), strict=True):
            needed[start:end] = 1
        place = np.cumsum(needed) - needed
        whole = old.whole[keep]
        return Vectors(
            old.rows[needed[:-1].astype(bool)],
            np.where(whole < 0, -1, place[whole]),
            moved[many].astype(np.int64),
            place[first],
            place[last - 1] + 1 if len(last) else last,
        )


def bytes_of(views: Sequence[PartitionView]) -> int:
    """Bytes that these views of one partition hold, the newest first. What they share counts once, reserves too."""
    newest = views[0]
    buffers = {id(each): each.bytes for view in views for each in view.buffers.values()}
    segments = {id(each): each.bytes for view in views for each in view.postings.segments}
    own = sum(view.own_bytes for view in views) + newest.names.bytes + newest.size * _SIGHT_BYTES
    return own + sum(buffers.values()) + sum(segments.values())


def _link_neighbours(old: Links, columns: Columns, alive: BoolArray, vectors: Vectors, new: IntArray) -> Links:
    """Update the neighbours after the rows `new` were added or died; only their conversations are visited."""
    seen = len(old.previous)
    links = Links.none(len(alive))
    for name in ("previous", "following", "to_following", "across"):
        getattr(links, name)[:seen] = getattr(old, name)
    talk = alive & (columns.kind == MESSAGE) & (columns.conversation >= 0)
    touched = np.zeros(int(columns.conversation.max(initial=-1)) + 2, bool)
    touched[columns.conversation[new]] = True
    touched[-1] = False
    rows = np.flatnonzero(talk & touched[columns.conversation])
    keys = (columns.number, columns.position, columns.said_at, columns.conversation)
    rows = rows[np.lexsort(tuple(key[rows] for key in keys))]
    before, after = np.full(len(rows), -1, np.int32), np.full(len(rows), -1, np.int32)
    same = columns.conversation[rows[1:]] == columns.conversation[rows[:-1]]
    same &= columns.said_at[rows[1:]] - columns.said_at[rows[:-1]] <= PAUSE_MICROS
    before[1:][same] = rows[:-1][same]
    after[:-1][same] = rows[1:][same]
    changed = (links.previous[rows] != before) | (links.following[rows] != after) | (rows >= seen)
    links.previous[rows], links.following[rows] = before, after
    _multiply(links, rows[changed], vectors)
    return links


def _next_visible(towards: SmallArray, hidden: BoolArray) -> SmallArray:
    """Per row, the first visible one in that direction. Step sizes double, so long hidden runs are skipped fast."""
    found = towards
    while (hops := np.flatnonzero(hidden[found])).size:
        found = found.copy()
        found[hops] = found[found[hops]]
    return found


def _multiply(links: Links, rows: IntArray, vectors: Vectors) -> None:
    before, after = links.previous[rows], links.following[rows]
    own, previous, following = (_whole(vectors, at) for at in (rows, before, after))
    links.to_following[rows] = products_of(vectors.rows, own, following)
    links.across[rows] = products_of(vectors.rows, previous, following)


def _whole(vectors: Vectors, at: NDArray[np.integer]) -> IntArray:
    return np.where(at >= 0, vectors.whole[at], -1)
