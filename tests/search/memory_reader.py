"""A reader over records in memory, for the tests and measurements of search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from holdfast.domain.ranking import FloatArray
from holdfast.domain.scope import Partition, Scope
from holdfast.ports import IndexRow, NearestIndex, PartitionDelta, VectorRow
from holdfast.search.analyzer import TextAnalyzer

Vectorize = Callable[[Sequence[str]], FloatArray]


@dataclass(frozen=True)
class Entry:
    """A record as written in a test."""

    text: str
    sender: str | None = None
    role: str | None = "user"
    conversation: int | None = 0
    said_at: int = 0
    kind: int = 0
    plane: str | None = None
    status: str = "accepted"
    source: str | None = None
    recorded_at: int = 0
    superseded_at: int | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    scope: Scope = field(default_factory=lambda: Scope(subject="anna"))


class MemoryReader:
    """Implements what search needs of `IndexReader`, for one partition."""

    def __init__(self, vectorize: Vectorize | None = None, partition: Partition | None = None) -> None:
        self._analyzer = TextAnalyzer()
        self._vectorize = vectorize
        self._partition = partition or Scope(subject="anna").partition
        self._rows: dict[int, tuple[int, IndexRow, list[VectorRow]]] = {}
        self._removed: list[tuple[int, int]] = []
        self._scopes: list[Scope] = []
        self._change = 0
        self._next = 1

    @property
    def numbers(self) -> list[int]:
        return list(self._rows)

    def add(self, *entries: Entry) -> list[int]:
        """Add records in one change; return their numbers."""
        self._change += 1
        numbers = list(range(self._next, self._next + len(entries)))
        self._next += len(entries)
        self._write(numbers, entries)
        return numbers

    def put(self, number: int, entry: Entry) -> None:
        """Change a record in place."""
        self._change += 1
        self._write([number], [entry])

    def remove(self, *numbers: int) -> None:
        self._change += 1
        for number in numbers:
            del self._rows[number]
            self._removed.append((self._change, number))

    def at(self, change: int) -> MemoryReader:
        """Return a reader on an older snapshot: rows written up to that change and never changed since."""
        older = MemoryReader(self._vectorize, self._partition)
        older._scopes, older._change = self._scopes, change
        older._rows = {number: row for number, row in self._rows.items() if row[0] <= change}
        return older

    def _write(self, numbers: Sequence[int], entries: Sequence[Entry]) -> None:
        analyses = [self._analyzer.analyze(entry.text) for entry in entries]
        pieces = [
            (number, at, piece)
            for number, a in zip(numbers, analyses, strict=True)
            for at, piece in enumerate(a.pieces)
        ]
        vectors: dict[int, list[VectorRow]] = {number: [] for number in numbers}
        if self._vectorize is not None:
            rows = self._vectorize([piece for _, _, piece in pieces]).astype("<f2")
            for (number, at, _), row in zip(pieces, rows, strict=True):
                vectors[number].append(VectorRow(number, at, row.tobytes()))
        for number, entry, analysis in zip(numbers, entries, analyses, strict=True):
            if entry.scope not in self._scopes:
                self._scopes.append(entry.scope)
            row = IndexRow(
                number, entry.kind, entry.plane, entry.status, 3, self._scopes.index(entry.scope), entry.conversation,
                number, entry.sender, entry.role, entry.source, entry.said_at, entry.recorded_at, entry.superseded_at,
                entry.valid_from, entry.valid_to, int(analysis.flags), analysis.length, analysis.terms,
            )  # fmt: skip
            self._rows[number] = (self._change, row, vectors[number])

    # `IndexReader`

    def partitions(self) -> Sequence[Partition]:
        return [self._partition]

    def change_of(self, partition: Partition) -> int:
        return self._change if partition == self._partition else 0

    def nearest(self, partition: Partition, embedder: str) -> NearestIndex | None:
        return None

    def delta(self, partition: Partition, since: int, embedder: str, vectors_after: int = 0) -> PartitionDelta:
        changed = [row for row in self._rows.values() if row[0] > since]
        return PartitionDelta(
            self._change,
            [row for _, row, _ in changed],
            [vector for change, _, vectors in changed for vector in vectors if change > vectors_after],
            [number for change, number in self._removed if change > since],
            dict(enumerate(self._scopes)),
        )
