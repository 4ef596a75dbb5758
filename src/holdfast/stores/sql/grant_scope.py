"""Limit statements to a grant. Every statement over records carries the condition built here; nothing else decides.

A repository has its connection from this scope alone. It is created on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Generic, TypeVar

from holdfast.domain.access import Grant
from holdfast.domain.results import Finding
from holdfast.domain.scope import FILTER_PARTS, Partition, PartitionKind
from holdfast.errors import AccessDenied
from holdfast.ports import NearestIndex
from holdfast.stores.sql.dialect import Database, Dialect, chunks

R = TypeVar("R", covariant=True)

_PARTITIONS = "SELECT id, space, kind, owner, change FROM partitions"
_ONE = f"{_PARTITIONS} WHERE space = ? AND kind = ? AND owner = ?"


@cache
def _select_partitions(count: int) -> str:
    return " UNION ALL ".join([_ONE] * count)


class GrantScope:
    """A connection inside one transaction, and its grant. All repositories of the transaction share it.

    Databases differ in `dialect`, and in the methods that a subclass overrides.
    """

    __slots__ = ("_found", "_looked", "_seen_change", "database", "dialect", "grant")

    def __init__(self, database: Database, grant: Grant, dialect: Dialect) -> None:
        self.database = database
        self.grant = grant
        self.dialect = dialect
        self._found: dict[Partition, int] = {}
        self._seen_change: dict[int, int] = {}
        self._looked = False

    def partitions(self) -> dict[Partition, int]:
        """Return the existing partitions that the grant reaches, with their numbers."""
        if not self._looked:
            self._note(self._partition_rows())
            self._looked = True
        return self._found

    def _partition_rows(self) -> Iterable[Sequence[Any]]:
        if self.grant.partitions is not None:
            return self._named_partitions(sorted(self.grant.partitions))
        if self.grant.everywhere:
            return self.database.execute(_PARTITIONS)
        return self.database.execute(f"{_PARTITIONS} WHERE space = ?", (self.grant.scope.space,))

    def _named_partitions(self, partitions: Sequence[Partition]) -> Iterable[Sequence[Any]]:
        if not partitions:
            return ()
        values = [value for each in partitions for value in (each.space, each.kind, each.owner)]
        return self.database.execute(_select_partitions(len(partitions)), values)

    def _note(self, found: Iterable[Sequence[Any]]) -> None:
        for number, space, kind, owner, change in found:
            self._found[Partition(space, PartitionKind(kind), owner)] = number
            self._seen_change[number] = change

    def number_of(self, partition: Partition) -> int | None:
        """Return the partition's number; None if it does not exist, or the grant does not reach it."""
        number = self._found.get(partition)
        if number is None and not self._looked and self.grant.reaches(partition):
            if self.grant.partitions is None:
                # Look up only this one: there may be very many.
                self._note(self._named_partitions([partition]))
            else:
                self.partitions()
            number = self._found.get(partition)
        return number

    def change_of(self, partition: Partition) -> int:
        """Return the partition's change number; 0 if it does not exist, or the grant does not reach it."""
        number = self.number_of(partition)
        # Read together with the number; it does not change within a snapshot.
        return 0 if number is None else self._seen_change[number]

    def nearest(self, partition: int, embedder: str) -> NearestIndex | None:
        """Return the approximate index of a partition, if there is a usable one."""
        return None

    def check_nearest(self) -> tuple[dict[str, int], list[Finding]]:
        """Check approximate indexes that are stored outside the database."""
        return {}, []

    def reach(self, alias: str = "r", *, keyed: bool = False) -> tuple[str, list[Any]]:
        """Build the condition on a table with `partition_id` that keeps a statement inside the grant.

        A `keyed` statement finds its rows by ids or numbers, and only checks the partition: the plus sign keeps the
        database from scanning all of it.
        """
        column = f"{'+' if keyed else ''}{alias}.partition_id"
        if self.grant.partitions is None:
            if self.grant.everywhere:
                return "TRUE", []
            return f"{column} IN (SELECT id FROM partitions WHERE space = ?)", [self.grant.scope.space]
        return self.dialect.among(column, list(self.partitions().values()))

    def within(self, alias: str = "r", *, keyed: bool = False) -> tuple[str, list[Any]]:
        """Add the other parts of the grant's scope to `reach`; for statements over records and scopes."""
        condition, values = self.reach(alias, keyed=keyed)
        for part in FILTER_PARTS:
            if (value := getattr(self.grant.scope, part)) is not None:
                condition += f" AND s.{part} = ?"
                values.append(value)
        return condition, values

    def within_scope_of(self, alias: str, reach: tuple[str, list[Any]] | None = None) -> tuple[str, list[Any]]:
        """Do the same for tables whose rows hold their scope as JSON."""
        condition, values = reach or self.reach(alias)
        for part in FILTER_PARTS:
            if (value := getattr(self.grant.scope, part)) is not None:
                condition += f" AND {self.dialect.part_of(f'{alias}.scope', part)} = ?"
                values.append(value)
        return condition, values

    def in_space(self) -> tuple[str, list[Any]]:
        if self.grant.everywhere:
            return "TRUE", []
        return "+r.partition_id IN (SELECT id FROM partitions WHERE space = ?)", [self.grant.scope.space]

    def in_any_space(self, alias: str = "x") -> tuple[str, list[Any]]:
        """Match rows of the grant's space, for any grant in it."""
        return ("TRUE", []) if self.grant.everywhere else (f"{alias}.space = ?", [self.grant.scope.space])

    def in_own_space(self, alias: str = "x") -> tuple[str, list[Any]]:
        """Match rows of the grant's space if the grant reaches the whole of it, else none."""
        return self.in_any_space(alias) if self.grant.partitions is None else ("FALSE", [])

    def within_space(self) -> tuple[str, list[Any]]:
        """Match rows `x` of the grant. By space first: a job or operation without a partition still belongs to it."""
        space, values = self.in_any_space()
        if self.grant.partitions is not None:
            reach, numbers = self.reach("x")
            space, values = f"{space} AND {reach}", [*values, *numbers]
        return self.within_scope_of("x", (space, values))

    def whole_space(self) -> str:
        """Return the grant's space; refuse a grant that is not over the whole of it."""
        if self.grant.partitions is not None or self.grant.everywhere:
            raise AccessDenied("the grant is not over one whole space")
        return self.grant.scope.space

    def among(self, column: str, values: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
        """Yield conditions that together match all values, as many at a time as a statement may hold."""
        for chunk in chunks(values, self.dialect.chunk):
            yield self.dialect.among(column, chunk)

    def rows_among(
        self, column: str, keys: Sequence[Any], statement: str, after: Sequence[Any] = (), before: Sequence[Any] = ()
    ) -> list[Any]:
        """Return the rows for all these keys of a column: `{}` in the statement is the condition on it.

        The statement has further values before and after those of the condition.
        """
        return [
            row
            for condition, named in self.among(column, keys)
            for row in self.database.execute(statement.format(condition), [*before, *named, *after])
        ]


class SqlRepository:
    """A view of the transaction's scope without state of its own: where another one is needed, it is made anew."""

    def __init__(self, scope: GrantScope) -> None:
        self._scope = scope
        self._db = scope.database


class Lazy(Generic[R]):
    """A repository of a reader or transaction: made on first use, then an attribute of the instance.

    `functools.cached_property` does the same under a lock.
    """

    def __init__(self, make: Callable[[Any], R]) -> None:
        self._make = make
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> R:
        made = self._make(instance.scope)
        setattr(instance, self._name, made)
        return made
