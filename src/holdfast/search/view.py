"""A partition as search holds it in memory: columns, postings and vectors, and how it grows.

A `PartitionView` is immutable to those who read it. `extended` makes the next view from what changed; the two share
their big buffers, of which each sees its own length. A record that changed gets a new row and its old row is dead;
what was removed is really gone from the next view, not only hidden. A view that grew ranks exactly like one that was
built at once: nothing in it depends on the order of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.domain.ranking import BoolArray, FloatArray, IntArray
from holdfast.domain.scope import Scope
from holdfast.ports import Delta, IndexRow, VectorRow
from holdfast.search.postings import Postings, SmallArray, segment_of

NEVER = np.iinfo(np.int64).max
ALWAYS = np.iinfo(np.int64).min
MESSAGE = 0
# What is said after a longer pause than this does not belong to what was said before it.
PAUSE_MICROS = 3_600_000_000
# What a view costs besides its numbers: arrays, lists and dictionaries, each with a head of its own.
_OBJECT_BYTES = 12_000
# Dead rows are dropped when they are both many and a good part of the view.
_DEAD_ROWS, _DEAD_SHARE = 256, 0.25


# --- columns --------------------------------------------------------------------------------------------------------


class Growing:
    """An array that grows at its end. Who holds its first n rows never sees what came later."""

    def __init__(self, data: NDArray[np.generic], used: int) -> None:
        self._data = data
        self._used = used

    def appended(self, seen: int, values: NDArray[np.generic]) -> tuple[Growing, NDArray[np.generic]]:
        """The first `seen` rows followed by `values`, in place if nobody else has appended after them."""
        size = seen + len(values)
        if seen == self._used and size <= len(self._data) and self._data.dtype == values.dtype:
            self._data[seen:size] = values
            self._used = size
            return self, self._data[:size]
        # A first load is exact; a growing one gets room for as much again, up to a quarter of what is there.
        room = 0 if seen == 0 else max(64, size // 4)
        data = np.empty((size + room, *values.shape[1:]), values.dtype)
        data[:seen] = self._data[:seen] if seen else 0
        data[seen:size] = values
        return Growing(data, size), data[:size]

    @classmethod
    def empty(cls) -> Growing:
        return cls(np.empty(0), 0)


class Codes:
    """Values to small numbers, in the order of their first use. Only ever grows; -1 stands for None."""

    def __init__(self) -> None:
        self._codes: dict[object, int] = {None: -1}
        self.values: list[str] = []

    def encode(self, values: Sequence[str | None]) -> SmallArray:
        codes = self._codes
        for value in dict.fromkeys(values):
            if value is not None and value not in codes:
                codes[value] = len(self.values)
                self.values.append(value)
        return np.fromiter((codes[value] for value in values), np.int32, len(values))

    def find(self, value: str) -> int:
        """Its code, or -2, which no row has."""
        return self._codes.get(value, -2)


@dataclass(frozen=True, slots=True)
class Columns:
    """One value per row. Moments that are not given are ALWAYS (since) or NEVER (until)."""

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

    @property
    def bytes(self) -> int:
        return sum(int(getattr(self, name).nbytes) for name in COLUMN_NAMES)

    def at(self, rows: IntArray) -> Columns:
        return Columns(*(getattr(self, name)[rows] for name in COLUMN_NAMES))


COLUMN_NAMES = tuple(field.name for field in fields(Columns))


class Names:
    """The values behind the codes of a partition's columns. Shared by its views, and only ever grows."""

    def __init__(self) -> None:
        self.planes, self.statuses, self.senders, self.roles, self.sources = (Codes() for _ in range(5))
        self.scopes: list[Scope] = []
        self._scope_codes: dict[int, int] = {}
        self._conversation_codes: dict[int | None, int] = {None: -1}

    def scope_codes(self, ids: Sequence[int], scopes: Mapping[int, Scope]) -> SmallArray:
        for scope_id in dict.fromkeys(ids):
            if scope_id not in self._scope_codes:
                self._scope_codes[scope_id] = len(self.scopes)
                self.scopes.append(scopes[scope_id])
        return np.fromiter((self._scope_codes[scope_id] for scope_id in ids), np.int32, len(ids))

    def conversation_codes(self, ids: Sequence[int | None]) -> SmallArray:
        codes = self._conversation_codes
        return np.fromiter((codes.setdefault(value, len(codes) - 1) for value in ids), np.int32, len(ids))

    @property
    def conversations(self) -> int:
        return len(self._conversation_codes) - 1

    def columns(self, rows: Sequence[IndexRow], scopes: Mapping[int, Scope]) -> Columns:
        values = IndexRow(*zip(*rows, strict=True))  # type: ignore[arg-type]
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
            conversation=self.conversation_codes(values.conversation_id),  # type: ignore[arg-type]
        )


def _moments(values: object, missing: int) -> IntArray:
    given: Sequence[int | None] = values  # type: ignore[assignment]
    return np.fromiter((missing if value is None else value for value in given), np.int64, len(given))


# --- vectors --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Vectors:
    """Unit vectors, a row per piece of a text; a text of several pieces has one more row, for the whole.

    `whole[i]` is the row of record i's whole text, -1 if it has none. `many` are the records with several pieces,
    whose pieces lie in the rows from `first` to, not including, `last`.
    """

    rows: FloatArray
    whole: IntArray
    many: IntArray
    first: IntArray
    last: IntArray

    @property
    def bytes(self) -> int:
        return self.rows.nbytes + self.whole.nbytes + self.many.nbytes * 3


NO_VECTORS = Vectors(
    np.empty((0, 0), np.float32),
    *(np.empty(0, np.int64) for _ in range(4)),
)


def _unit(rows: FloatArray) -> FloatArray:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    unit: FloatArray = rows / np.maximum(lengths, np.float32(1e-12))
    return unit


def _read_vectors(given: Sequence[VectorRow], numbers: IntArray) -> Vectors:
    """The vectors of records with these numbers, in this order."""
    whole = np.full(len(numbers), -1, np.int64)
    if not given:
        return replace(NO_VECTORS, whole=whole)
    # A model that was exchanged under its old name leaves vectors of another length: only the newest kind is compared.
    given = [row for row in given if len(row.vector) == len(given[-1].vector)]
    rows = np.frombuffer(b"".join([row.vector for row in given]), "<f2").reshape(len(given), -1)
    order = np.argsort(numbers, kind="stable")
    owner = order[np.searchsorted(numbers[order], np.fromiter((row.number for row in given), np.int64, len(given)))]
    pieces = np.fromiter((row.piece for row in given), np.int64, len(given))
    if np.any((np.diff(owner) < 0) | ((np.diff(owner) == 0) & (np.diff(pieces) < 0))):
        sequence = np.lexsort((pieces, owner))
        rows, owner = rows[sequence], owner[sequence]
    unit = _unit(rows.astype(np.float32))
    owners, first, sizes = np.unique(owner, return_index=True, return_counts=True)
    whole[owners] = first
    several = sizes > 1
    if not several.any():
        return replace(NO_VECTORS, rows=unit, whole=whole)
    sums = np.add.reduceat(unit, first, axis=0)[several]
    whole[owners[several]] = len(unit) + np.arange(len(sums))
    return Vectors(
        np.concatenate((unit, _unit(sums))), whole, owners[several], first[several], (first + sizes)[several]
    )


# --- the view -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Links:
    """Per row, its neighbours in its conversation with no pause between (-1: none), and the products of their vectors.

    A product is 0 where one of the two has no vector.
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
        return self.previous.nbytes * 4


class PartitionView:
    """One partition at one change. Read its columns; never write to them."""

    def __init__(
        self,
        change: int,
        names: Names,
        columns: Columns,
        alive: BoolArray,
        vectors: Vectors,
        links: Links,
        postings: Postings,
        buffers: Mapping[str, Growing],
    ) -> None:
        self.change = change
        self.names = names
        self.columns = columns
        self.alive = alive
        self.vectors = vectors
        self.links = links
        self.postings = postings
        self._buffers = buffers

    @classmethod
    def empty(cls) -> PartitionView:
        names = Names()
        nothing = np.empty(0, np.int64)
        columns = Columns(*(nothing for _ in COLUMN_NAMES))  # type: ignore[arg-type]
        return cls(0, names, columns, np.empty(0, bool), NO_VECTORS, Links.none(0), Postings(), {})

    @property
    def size(self) -> int:
        """Rows, dead ones included."""
        return len(self.alive)

    @cached_property
    def bytes(self) -> int:
        parts = (self.columns.bytes, self.vectors.bytes, self.links.bytes, self.postings.bytes)
        return sum(parts) + self.alive.nbytes + _OBJECT_BYTES

    def links_among(self, visible: BoolArray) -> Links:
        """Neighbours as they are when only those rows are there: what lies between them does not part them."""
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

    def extended(self, delta: Delta) -> PartitionView:
        """The view after `delta`: its rows added or replaced, what it removes gone."""
        removed = self._rows_of(np.array(delta.removed, np.int64))
        view = self._without(removed) if len(removed) else self
        if delta.rows:
            view = view._grown(delta)
        dead = view.size - int(np.count_nonzero(view.alive))
        if dead > _DEAD_ROWS and dead > _DEAD_SHARE * view.size:
            view = view._without(np.empty(0, np.int64))
        return view._at(delta.change)

    def _at(self, change: int) -> PartitionView:
        return PartitionView(
            change,
            self.names,
            self.columns,
            self.alive,
            self.vectors,
            self.links,
            self.postings,
            self._buffers,
        )

    def _rows_of(self, numbers: IntArray) -> IntArray:
        """The living rows of those records; numbers that are not here are left out."""
        if not len(numbers) or not self.size or numbers.min() > self.columns.number.max():
            return np.empty(0, np.int64)
        return np.flatnonzero(self.alive & np.isin(self.columns.number, numbers))

    def _grown(self, delta: Delta) -> PartitionView:
        fresh = self.names.columns(delta.rows, delta.scopes)
        size, seen = self.size + len(fresh.number), self.size
        alive = np.ones(size, bool)
        alive[:seen] = self.alive
        died = self._rows_of(fresh.number)
        alive[died] = False
        buffers = dict(self._buffers)
        columns = Columns(*(self._append(buffers, name, getattr(fresh, name)) for name in COLUMN_NAMES))
        vectors = self._with_vectors(buffers, _read_vectors(delta.vectors, fresh.number))
        postings = self.postings.added(segment_of(delta.rows, seen))
        links = _relinked(self.links, columns, alive, vectors, np.append(died, np.arange(seen, size)))
        return PartitionView(delta.change, self.names, columns, alive, vectors, links, postings, buffers)

    def _append(self, buffers: dict[str, Growing], name: str, values: Any) -> Any:
        buffers[name], data = buffers.get(name, Growing.empty()).appended(self.size, values)
        return data

    def _with_vectors(self, buffers: dict[str, Growing], fresh: Vectors) -> Vectors:
        old, base = self.vectors, len(self.vectors.rows)
        rows = old.rows
        if len(fresh.rows):
            buffers["vectors"], data = buffers.get("vectors", Growing.empty()).appended(base, fresh.rows)
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
        """A view in buffers of its own, without dead rows and those given."""
        keep = self.alive.copy()
        keep[removed] = False
        rows = np.flatnonzero(keep)
        moved = np.full(self.size, -1, np.int32)
        moved[rows] = np.arange(len(rows), dtype=np.int32)
        columns, vectors = self.columns.at(rows), self._kept_vectors(keep, moved)
        alive = np.ones(len(rows), bool)
        links = _relinked(Links.none(0), columns, alive, vectors, np.arange(len(rows)))
        buffers = {name: Growing(getattr(columns, name), len(rows)) for name in COLUMN_NAMES}
        buffers["vectors"] = Growing(vectors.rows, len(vectors.rows))
        postings = self.postings.kept(moved)
        return PartitionView(self.change, self.names, columns, alive, vectors, links, postings, buffers)

    def _kept_vectors(self, keep: BoolArray, moved: SmallArray) -> Vectors:
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


def _relinked(old: Links, columns: Columns, alive: BoolArray, vectors: Vectors, new: IntArray) -> Links:
    """Neighbours after the rows `new` came or died; only their conversations are walked."""
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
    """Per row, the first visible one in that direction; steps double, so that a long hidden stretch is soon crossed."""
    found = towards
    while (hops := np.flatnonzero(hidden[found])).size:
        found = found.copy()
        found[hops] = found[found[hops]]
    return found


def _multiply(links: Links, rows: IntArray, vectors: Vectors) -> None:
    before, after = links.previous[rows], links.following[rows]
    own, previous, following = (_whole(vectors, at) for at in (rows, before, after))
    links.to_following[rows] = _products(vectors.rows, own, following)
    links.across[rows] = _products(vectors.rows, previous, following)


def _whole(vectors: Vectors, at: NDArray[np.integer]) -> IntArray:
    return np.where(at >= 0, vectors.whole[at], -1)


def _products(rows: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
    result = np.zeros(len(left), np.float32)
    both = np.flatnonzero((left >= 0) & (right >= 0))
    for some in np.array_split(both, len(both) // 4096 + 1):
        result[some] = np.einsum("ij,ij->i", rows[left[some]], rows[right[some]])
    return result
