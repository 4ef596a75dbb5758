"""Pages of the trail, of jobs and of deliveries: newest first, by whatever is asked for.

A page is read off an index whose last column is the id, so that it costs the same however long the table is. Where
several things are asked for, one of them leads, and the others are looked at row by row: the one that the fewest rows
have, which a short look into each index tells. The database is not left the choice: without statistics it guesses, and
with them it may walk a whole table in search of what is rare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from holdfast.domain.ids import OPERATION
from holdfast.domain.times import to_micros
from holdfast.stores.sql.reach import Reach

_GLANCE = 1_000  # rows of an index that are looked at before one is chosen
_HEX_OF_MILLIS = 12
# Ids are made by the machine's clock, the times beside them by the caller's: they agree about this well, or not at all.
_SLACK = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Lead:
    """An index: a space, these columns, the id. With its own condition, if that does not follow from the columns.

    Without a name it is the primary key.
    """

    index: str | None
    columns: tuple[str, ...]
    also: str = ""


@dataclass(slots=True)
class Asked:
    """What rows `x` of a table must have: within reach, for each column one of some values, and further conditions."""

    reach: tuple[str, list[Any]]
    from_id: str | None = None  # the first that counts
    below_id: str | None = None  # the first that does not: where both a page and a time end, the earlier
    equal: dict[str, Sequence[Any]] = field(default_factory=dict)
    conditions: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def where(self, condition: str, *values: Any) -> None:
        self.conditions.append(condition)
        self.values.extend(values)

    def end(self, below: str) -> None:
        self.below_id = below if self.below_id is None else min(self.below_id, below)

    def one(self, **given: Any) -> None:
        """Each column that is given has that value."""
        self.equal.update({column: (value,) for column, value in given.items() if value is not None})


class Pages(Reach):
    def _in_own_space(self, alias: str = "x") -> tuple[str, list[Any]]:
        """Rows of the grant's space, for a grant that reaches the whole of it; none for another."""
        if self._grant.partitions is not None:
            return "FALSE", []
        return self._in_any_space(alias)

    def _in_any_space(self, alias: str = "x") -> tuple[str, list[Any]]:
        """Rows of the grant's space, for any grant in it."""
        return ("TRUE", []) if self._grant.everywhere else (f"{alias}.space = ?", [self._grant.scope.space])

    def _newest(
        self, table: str, columns: str, asked: Asked, leads: Sequence[Lead], before: str | None, limit: int
    ) -> list[Any]:
        """Rows of a page; the first column is the id."""
        if not all(asked.equal.values()):
            return []
        if before is not None:
            asked.end(before)
        usable = [] if self._grant.everywhere else narrowest(asked, leads)
        lead = self._lead(table, asked, usable)
        named = () if lead is None else lead.columns
        rest, values = self._unled({column: each for column, each in asked.equal.items() if column not in named})
        conditions = " AND ".join([asked.reach[0], *asked.conditions, *rest])
        also, by = ("", "") if lead is None else (lead.also, self.dialect.by(lead.index))
        leading = "".join(f" AND x.{column} = ?" for column in named)
        found: list[Any] = []
        for each in product(*(asked.equal[column] for column in named)):
            # From the second on, only what comes before the last that is known so far. One bound on each side: of
            # two, the database would seek by either.
            lowest = asked.from_id if len(found) < limit else found[limit - 1][0]
            bounds = [*([] if lowest is None else [lowest]), *([] if asked.below_id is None else [asked.below_id])]
            between = ("" if lowest is None else " AND x.id >= ?") + ("" if asked.below_id is None else " AND x.id < ?")
            found += self._db.execute(
                f"SELECT {columns} FROM {table} x{by} WHERE {conditions}{leading}{also}{between}"
                " ORDER BY x.id DESC LIMIT ?",
                [*asked.reach[1], *asked.values, *values, *each, *bounds, limit],
            ).fetchall()
            found.sort(key=_id_of, reverse=True)
        return found[:limit]

    def _lead(self, table: str, asked: Asked, leads: Sequence[Lead]) -> Lead | None:
        if len(leads) < 2:
            return leads[0] if leads else None
        glance = f"SELECT count(*) FROM (SELECT 1 FROM {table} x{{}} WHERE x.space = ?{{}} LIMIT {_GLANCE}) AS found"
        # All asked before any is looked at: on a network they travel together.
        glances = [
            [
                self._db.execute(
                    glance.format(
                        self.dialect.by(lead.index),
                        "".join(f" AND x.{column} = ?" for column in lead.columns) + lead.also,
                    ),
                    [self._grant.scope.space, *each],
                )
                for each in product(*(asked.equal[column] for column in lead.columns))
            ]
            for lead in leads
        ]
        counts = [sum(int(told.fetchone()[0]) for told in each) for each in glances]
        return leads[counts.index(min(counts))]

    def _unled(self, equal: Mapping[str, Sequence[Any]]) -> tuple[list[str], list[Any]]:
        """Conditions that no index is used for."""
        conditions, values = [], []
        for column, allowed in equal.items():
            condition, named = self.dialect.among(f"(x.{column} || '')", [str(each) for each in allowed])
            conditions.append(condition)
            values += named
        return conditions, values

    def _since_and_until(
        self, table: str, prefix: str, asked: Asked, column: str, since: datetime | None, until: datetime | None
    ) -> None:
        """Bound a column of moments, and with them the ids, which were made then or before.

        Where ids are not of the time that stands beside them (somebody gave a clock, or ids, of their own), only the
        moments count. A job that is tried again keeps its first id: from below, only ids of operations are bounded.
        """
        if since is not None:
            asked.where(f"x.{column} >= ?", to_micros(since))
        if until is not None:
            asked.where(f"x.{column} < ?", to_micros(until))
        if (since is None and until is None) or not self._ids_tell_time(table, prefix, asked, column):
            return
        if since is not None and prefix == OPERATION:
            asked.from_id = _first_id(prefix, since - _SLACK)
        if until is not None:
            asked.end(_first_id(prefix, until + _SLACK))

    def _ids_tell_time(self, table: str, prefix: str, asked: Asked, column: str) -> bool:
        space, values = asked.reach
        by_action = table == "operations" and self.dialect.trail_by_action
        ends = [
            self._db.execute(
                f"SELECT x.id, x.{column} FROM {table} x WHERE {space}"
                f" ORDER BY {f'x.action {order}, ' if by_action else ''}x.id {order} LIMIT 1",
                values,
            )
            for order in ("", "DESC")
        ]
        return all(_agree(prefix, *row) for end in ends for row in end.fetchall())


def _id_of(row: Sequence[Any]) -> str:
    return str(row[0])


def narrowest(asked: Asked, leads: Sequence[Lead]) -> list[Lead]:
    """Those that lead to what is asked for, without any whose columns are among another's."""
    usable = [lead for lead in leads if asked.equal.keys() >= set(lead.columns)]
    return [lead for lead in usable if not any(set(lead.columns) < set(other.columns) for other in usable)]


def _first_id(prefix: str, at: datetime) -> str:
    return f"{prefix}_{max(to_micros(at), 0) // 1_000:0{_HEX_OF_MILLIS}x}"


def _agree(prefix: str, made: str, at: int) -> bool:
    try:
        millis = int(made.removeprefix(f"{prefix}_")[:_HEX_OF_MILLIS], 16)
    except ValueError:
        return False
    return abs(millis * 1_000 - at) <= _SLACK / timedelta(microseconds=1)
