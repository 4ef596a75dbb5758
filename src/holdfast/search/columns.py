"""The columns of a partition's records in memory, and the dictionaries of their codes.

Columns are append-only and shared by the views of a partition; each view sees its own length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from threading import Lock
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.domain.ranking import BoolArray, IntArray
from holdfast.domain.scope import Scope
from holdfast.ports import IndexRow
from holdfast.search.partition_index import SmallArray

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
        # Reserve a quarter more, at least 64 rows.
        data = np.empty((size + max(64, size // 4), *values.shape[1:]), values.dtype)
        data[:seen] = self._data[:seen]
        data[seen:size] = values
        return GrowingArray(data, size), data[:size]

    @classmethod
    def empty(cls) -> GrowingArray:
        return cls(np.empty(0), 0)


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


class ValueDictionary:
    """Maps values to codes in the order of first use. Append-only; None is -1."""

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

    @property
    def bytes(self) -> int:
        return sum(int(getattr(self, name).nbytes) for name in COLUMN_NAMES)

    def at(self, rows: IntArray) -> Columns:
        return Columns(*(getattr(self, name)[rows] for name in COLUMN_NAMES))


COLUMN_NAMES = tuple(field.name for field in fields(Columns))


class ColumnDictionaries:
    """The dictionaries of a partition's encoded columns. Append-only, shared by its views."""

    def __init__(self) -> None:
        self.planes, self.statuses, self.senders, self.roles, self.sources = (ValueDictionary() for _ in range(5))
        self.scopes: list[Scope] = []
        self._scope_codes: dict[int, int] = {}
        self._covered: LruCache[Scope, BoolArray] = LruCache()
        self._conversation_codes: dict[int | None, int] = {None: -1}

    def scope_codes(self, ids: Sequence[int], scopes: Mapping[int, Scope]) -> SmallArray:
        for scope_id in dict.fromkeys(ids):
            if scope_id not in self._scope_codes:
                self._scope_codes[scope_id] = len(self.scopes)
                self.scopes.append(scopes[scope_id])
        return np.fromiter((self._scope_codes[scope_id] for scope_id in ids), np.int32, len(ids))

    def covered_by(self, scope: Scope) -> BoolArray:
        """Per scope code, True if `scope` covers it. Cached and extended: scopes are append-only."""
        known = self._covered.get(scope)
        if known is None or len(known) < len(self.scopes):
            done = 0 if known is None else len(known)
            fresh = np.array([scope.covers(other) for other in self.scopes[done:]], bool)
            known = fresh if known is None else np.concatenate((known, fresh))
            self._covered.put(scope, known)
        return known

    def conversation_codes(self, ids: Sequence[int | None]) -> SmallArray:
        codes = self._conversation_codes
        return np.fromiter((codes.setdefault(value, len(codes) - 1) for value in ids), np.int32, len(ids))

    @property
    def conversations(self) -> int:
        return len(self._conversation_codes) - 1

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
            conversation=self.conversation_codes(values.conversation_id),  # type: ignore[arg-type]
        )


def _moments(values: object, missing: int) -> IntArray:
    moments: Sequence[int | None] = values  # type: ignore[assignment]
    return np.fromiter((missing if value is None else value for value in moments), np.int64, len(moments))
