"""Limit statements to a grant. Every statement over records carries the condition built here; nothing else decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, ClassVar

from holdfast.domain.access import Grant
from holdfast.domain.scope import FILTER_PARTS, Partition, PartitionKind
from holdfast.stores.sql.dialect import Database, Dialect, chunks

_PARTITIONS = "SELECT id, space, kind, owner, change FROM partitions"
_ONE = f"{_PARTITIONS} WHERE space = ? AND kind = ? AND owner = ?"


@cache
def _select_partitions(count: int) -> str:
    return " UNION ALL ".join([_ONE] * count)


class GrantScope:
    """A connection inside one transaction, and its grant."""

    dialect: ClassVar[Dialect]

    def __init__(self, database: Database, grant: Grant) -> None:
        self._db = database
        self._grant = grant
        self._found: dict[Partition, int] = {}
        self._seen_change: dict[int, int] = {}
        self._looked = False

    def _partitions(self) -> dict[Partition, int]:
        """Return the existing partitions that the grant reaches, with their numbers."""
        if not self._looked:
            self._note(self._partition_rows())
            self._looked = True
        return self._found

    def _partition_rows(self) -> Iterable[Sequence[Any]]:
        if self._grant.partitions is not None:
            return self._named_partitions(sorted(self._grant.partitions))
        if self._grant.everywhere:
            return self._db.execute(_PARTITIONS)
        return self._db.execute(f"{_PARTITIONS} WHERE space = ?", (self._grant.scope.space,))

    def _named_partitions(self, partitions: Sequence[Partition]) -> Iterable[Sequence[Any]]:
        if not partitions:
            return ()
        values = [value for each in partitions for value in (each.space, each.kind, each.owner)]
        return self._db.execute(_select_partitions(len(partitions)), values)

    def _note(self, found: Iterable[Sequence[Any]]) -> None:
        for number, space, kind, owner, change in found:
            self._found[Partition(space, PartitionKind(kind), owner)] = number
            self._seen_change[number] = change

    def _number_of(self, partition: Partition) -> int | None:
        """Return the partition's number; None if it does not exist, or the grant does not reach it."""
        number = self._found.get(partition)
        if number is None and not self._looked and self._grant.reaches(partition):
            if self._grant.partitions is None:
                # Look up only this one: there may be very many.
                self._note(self._named_partitions([partition]))
            else:
                self._partitions()
            number = self._found.get(partition)
        return number

    def _reach(self, alias: str = "r", *, keyed: bool = False) -> tuple[str, list[Any]]:
        """Build the condition on a table with `partition_id` that keeps a statement inside the grant.

        A `keyed` statement finds its rows by ids or numbers, and only checks the partition: the plus sign keeps the
        database from scanning all of it.
        """
        column = f"{'+' if keyed else ''}{alias}.partition_id"
        if self._grant.partitions is None:
            if self._grant.everywhere:
                return "TRUE", []
            return f"{column} IN (SELECT id FROM partitions WHERE space = ?)", [self._grant.scope.space]
        return self.dialect.among(column, list(self._partitions().values()))

    def _within(self, alias: str = "r", *, keyed: bool = False) -> tuple[str, list[Any]]:
        """Add the other parts of the grant's scope to `_reach`; for statements over records and scopes."""
        condition, values = self._reach(alias, keyed=keyed)
        for part in FILTER_PARTS:
            if (value := getattr(self._grant.scope, part)) is not None:
                condition += f" AND s.{part} = ?"
                values.append(value)
        return condition, values

    def _within_scope_of(self, alias: str, reach: tuple[str, list[Any]] | None = None) -> tuple[str, list[Any]]:
        """Do the same for tables whose rows hold their scope as JSON."""
        condition, values = reach or self._reach(alias)
        for part in FILTER_PARTS:
            if (value := getattr(self._grant.scope, part)) is not None:
                condition += f" AND {self.dialect.part_of(f'{alias}.scope', part)} = ?"
                values.append(value)
        return condition, values

    def _in_space(self) -> tuple[str, list[Any]]:
        if self._grant.everywhere:
            return "TRUE", []
        return "+r.partition_id IN (SELECT id FROM partitions WHERE space = ?)", [self._grant.scope.space]

    def _among(self, column: str, values: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
        """Yield conditions that together match all values, as many at a time as a statement may hold."""
        for chunk in chunks(values, self.dialect.chunk):
            yield self.dialect.among(column, chunk)
