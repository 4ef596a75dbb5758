"""Keyset pagination of operations, jobs and deliveries: newest first, with filters.

A page is read from an index whose last column is the id, so its cost does not depend on the table's size. With several
filters, one index leads, and the other filters are applied row by row: the index with the fewest matching rows, found
by counting a few in each. The database must not choose: without statistics it guesses, and with them it may scan a
whole table for rare rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from holdfast.domain.ids import OPERATION
from holdfast.domain.times import to_micros
from holdfast.stores.sql.grant_scope import GrantScope

_GLANCE = 1_000  # rows counted per index before one is chosen
_HEX_OF_MILLIS = 12
# Ids come from the machine's clock, the times beside them from the caller's: they agree this closely, or not at all.
_SLACK = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class LeadingIndex:
    """An index over the space, these columns and the id. `also` is its condition, if the columns do not imply it.

    Without a name it is the primary key.
    """

    index: str | None
    columns: tuple[str, ...]
    also: str = ""


@dataclass(slots=True)
class PageQuery:
    """Conditions on rows `x` of a table: grant scope, allowed values per column, and further conditions."""

    reach: tuple[str, list[Any]]
    from_id: str | None = None  # inclusive
    below_id: str | None = None  # exclusive: the lower of the page's and the time's bound
    equal: dict[str, Sequence[Any]] = field(default_factory=dict)
    conditions: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def where(self, condition: str, *values: Any) -> None:
        self.conditions.append(condition)
        self.values.extend(values)

    def limit_ids(self, below: str) -> None:
        self.below_id = below if self.below_id is None else min(self.below_id, below)

    def require(self, **columns: Any) -> None:
        """Require these values; columns with None are not restricted."""
        self.equal.update({column: (value,) for column, value in columns.items() if value is not None})


def read_newest(
    scope: GrantScope,
    table: str,
    columns: str,
    query: PageQuery,
    leads: Sequence[LeadingIndex],
    before: str | None,
    limit: int,
) -> list[Any]:
    """Read the rows of a page; the first column is the id."""
    if not all(query.equal.values()):
        return []
    if before is not None:
        query.limit_ids(before)
    usable = [] if scope.grant.everywhere else usable_indexes(query, leads)
    lead = _lead(scope, table, query, usable)
    named = () if lead is None else lead.columns
    rest, values = _remaining_conditions(
        scope, {column: each for column, each in query.equal.items() if column not in named}
    )
    conditions = " AND ".join([query.reach[0], *query.conditions, *rest])
    also, by = ("", "") if lead is None else (lead.also, scope.dialect.use_index(lead.index))
    leading = "".join(f" AND x.{column} = ?" for column in named)
    found: list[Any] = []
    for each in product(*(query.equal[column] for column in named)):
        # After the first pass, only rows newer than the last of the page so far. One bound on each side: with two,
        # the database would seek by either.
        lowest = query.from_id if len(found) < limit else found[limit - 1][0]
        bounds = [*([] if lowest is None else [lowest]), *([] if query.below_id is None else [query.below_id])]
        between = ("" if lowest is None else " AND x.id >= ?") + ("" if query.below_id is None else " AND x.id < ?")
        found += scope.database.execute(
            f"SELECT {columns} FROM {table} x{by} WHERE {conditions}{leading}{also}{between}"
            " ORDER BY x.id DESC LIMIT ?",
            [*query.reach[1], *query.values, *values, *each, *bounds, limit],
        ).fetchall()
        found.sort(key=_id_of, reverse=True)
    return found[:limit]


def _lead(scope: GrantScope, table: str, query: PageQuery, leads: Sequence[LeadingIndex]) -> LeadingIndex | None:
    if len(leads) < 2:
        return leads[0] if leads else None
    glance = f"SELECT count(*) FROM (SELECT 1 FROM {table} x{{}} WHERE x.space = ?{{}} LIMIT {_GLANCE}) AS found"
    # Send all before reading any result: over a network they travel together.
    glances = [
        [
            scope.database.execute(
                glance.format(
                    scope.dialect.use_index(lead.index),
                    "".join(f" AND x.{column} = ?" for column in lead.columns) + lead.also,
                ),
                [scope.grant.scope.space, *each],
            )
            for each in product(*(query.equal[column] for column in lead.columns))
        ]
        for lead in leads
    ]
    counts = [sum(int(result.fetchone()[0]) for result in each) for each in glances]
    return leads[counts.index(min(counts))]


def _remaining_conditions(scope: GrantScope, equal: Mapping[str, Sequence[Any]]) -> tuple[list[str], list[Any]]:
    """Build conditions for which the database cannot use an index."""
    conditions, values = [], []
    for column, allowed in equal.items():
        condition, named = scope.dialect.among(f"(x.{column} || '')", [str(each) for each in allowed])
        conditions.append(condition)
        values += named
    return conditions, values


def bound_times(
    scope: GrantScope,
    table: str,
    prefix: str,
    query: PageQuery,
    column: str,
    since: datetime | None,
    until: datetime | None,
) -> None:
    """Bound a column of times, and with it the ids, which were created then or before.

    If ids do not agree with the times beside them (custom clock or custom ids), only the times are bounded. A
    retried job keeps its first id, so only ids of operations get a lower bound.
    """
    if since is not None:
        query.where(f"x.{column} >= ?", to_micros(since))
    if until is not None:
        query.where(f"x.{column} < ?", to_micros(until))
    if (since is None and until is None) or not _ids_tell_time(scope, table, prefix, query, column):
        return
    if since is not None and prefix == OPERATION:
        query.from_id = _first_id(prefix, since - _SLACK)
    if until is not None:
        query.limit_ids(_first_id(prefix, until + _SLACK))


def _ids_tell_time(scope: GrantScope, table: str, prefix: str, query: PageQuery, column: str) -> bool:
    space, values = query.reach
    by_action = table == "operations" and scope.dialect.operations_by_action
    ends = [
        scope.database.execute(
            f"SELECT x.id, x.{column} FROM {table} x WHERE {space}"
            f" ORDER BY {f'x.action {order}, ' if by_action else ''}x.id {order} LIMIT 1",
            values,
        )
        for order in ("", "DESC")
    ]
    return all(_id_matches_time(prefix, *row) for end in ends for row in end.fetchall())


def _id_of(row: Sequence[Any]) -> str:
    return str(row[0])


def usable_indexes(query: PageQuery, leads: Sequence[LeadingIndex]) -> list[LeadingIndex]:
    """Return the indexes that serve the query, without those whose columns are a subset of another's."""
    usable = [lead for lead in leads if query.equal.keys() >= set(lead.columns)]
    return [lead for lead in usable if not any(set(lead.columns) < set(other.columns) for other in usable)]


def _first_id(prefix: str, at: datetime) -> str:
    return f"{prefix}_{max(to_micros(at), 0) // 1_000:0{_HEX_OF_MILLIS}x}"


def _id_matches_time(prefix: str, made: str, at: int) -> bool:
    try:
        millis = int(made.removeprefix(f"{prefix}_")[:_HEX_OF_MILLIS], 16)
    except ValueError:
        return False
    return abs(millis * 1_000 - at) <= _SLACK / timedelta(microseconds=1)
