"""The audit trail's rows."""

from __future__ import annotations

from typing import Any

from holdfast.domain.contract import Concern, concern
from holdfast.domain.operations import Attribution, Operation
from holdfast.domain.times import to_micros
from holdfast.stores.sql import rows
from holdfast.stores.sql.control_rows import attribution_json
from holdfast.stores.sql.dialect import Database

_COLUMNS = (
    "id, space, scope, partition_id, actor_kind, actor_id, action, outcome, error_code, touched, started_at,"
    " duration_micros, agent, project, issue, run"
)
_VALUES = "?, ?, ?, {}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"
_PLAIN = f"INSERT INTO operations ({_COLUMNS}) VALUES ({_VALUES})"
_ATTRIBUTED = f"INSERT INTO operations ({_COLUMNS}, binding, source_kind, hook, details) VALUES ({_VALUES}, ?, ?, ?, ?)"
_LOOKED_UP = "(SELECT id FROM partitions WHERE space = ? AND kind = ? AND owner = ?)"
# By whether the partition's number is known, and whether there is an attribution.
_INSERTS = {
    (known, attributed): statement.format("?" if known else _LOOKED_UP)
    for known in (True, False)
    for attributed, statement in ((False, _PLAIN), (True, _ATTRIBUTED))
}
_UNLESS_THERE = {
    attributed: f"{statement} ON CONFLICT DO NOTHING"
    for (known, attributed), statement in _INSERTS.items()
    if not known
}
_SETTLE = (
    "UPDATE operations SET outcome = ?, error_code = ?, touched = ?, duration_micros = ?, binding = ?,"
    " source_kind = ?, hook = ?, details = ?, agent = ?, project = ?, issue = ?, run = ?"
    " WHERE space = ? AND action = ? AND id = ? AND outcome = 'unknown'"
)


def record_operation(
    database: Database, operation: Operation, *, unless_there: bool = False, partition: int | None = None
) -> None:
    """Write an audit row. It names the partition it belongs to, so that only those who reach that can read it.

    `partition` is that one's number, where it is known.
    """
    scope, given = operation.scope, operation.attribution
    place = scope.partition
    placed: tuple[str | int, ...]
    attributed = given is not None
    if partition is None or unless_there:
        statement = _UNLESS_THERE[attributed] if unless_there else _INSERTS[False, attributed]
        placed = (place.space, place.kind, place.owner)
    else:
        statement, placed = _INSERTS[True, attributed], (partition,)
    database.execute(
        statement,
        (
            operation.id, scope.space, rows.scope_json(scope), *placed, operation.actor.kind,
            operation.actor.id, operation.action, operation.outcome, operation.error_code, operation.touched,
            to_micros(operation.started_at), operation.duration_micros, *_looked_up_by(operation),
            *(() if given is None else _attributed(given)),
        ),
    )  # fmt: skip


def settle_operation(database: Database, operation: Operation) -> int:
    """Write down what came of one that was recorded as `unknown`; how many rows that were (1, or none)."""
    given = operation.attribution
    return database.execute(
        _SETTLE,
        (
            operation.outcome, operation.error_code, operation.touched, operation.duration_micros,
            *((None,) * 4 if given is None else _attributed(given)), *_looked_up_by(operation),
            operation.scope.space, operation.action, operation.id,
        ),
    ).rowcount  # fmt: skip


def _looked_up_by(operation: Operation) -> Concern:
    """What the explorer asks by. The scope is shown as it was given, from a column of its own."""
    scope, given = operation.scope, operation.attribution
    if given is None:
        return Concern(scope.agent, scope.project, scope.issue, scope.run)
    return concern(scope, given.source, given.hook)


def _attributed(given: Attribution) -> tuple[Any, ...]:
    source = None if given.source is None else given.source.kind
    hook = None if given.hook is None else given.hook.kind
    return given.binding, source, hook, attribution_json(given)
