"""The audit trail's rows."""

from __future__ import annotations

from holdfast.domain.operations import Operation
from holdfast.domain.times import to_micros
from holdfast.stores.sql import rows
from holdfast.stores.sql.dialect import Database

_INSERT = (
    "INSERT INTO operations (id, space, scope, partition_id, actor_kind, actor_id, action, outcome, error_code,"
    " touched, started_at, duration_micros) VALUES (?, ?, ?, {}, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_KNOWN = _INSERT.format("?")
_LOOKED_UP = _INSERT.format("(SELECT id FROM partitions WHERE space = ? AND kind = ? AND owner = ?)")
_UNLESS_THERE = f"{_LOOKED_UP} ON CONFLICT DO NOTHING"


def record_operation(
    database: Database, operation: Operation, *, unless_there: bool = False, partition: int | None = None
) -> None:
    """Write an audit row. It names the partition it belongs to, so that only those who reach that can read it.

    `partition` is that one's number, where it is known.
    """
    place = operation.scope.partition
    placed: tuple[str | int, ...]
    if partition is None or unless_there:
        statement, placed = _UNLESS_THERE if unless_there else _LOOKED_UP, (place.space, place.kind, place.owner)
    else:
        statement, placed = _KNOWN, (partition,)
    database.execute(
        statement,
        (
            operation.id, operation.scope.space, rows.scope_json(operation.scope), *placed, operation.actor.kind,
            operation.actor.id, operation.action, operation.outcome, operation.error_code, operation.touched,
            to_micros(operation.started_at), operation.duration_micros,
        ),
    )  # fmt: skip
