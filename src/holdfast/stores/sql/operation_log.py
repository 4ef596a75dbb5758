"""Write rows of the audit trail (table `operations`)."""

from __future__ import annotations

from typing import Any

from holdfast.domain.contract import LookupKeys, lookup_keys
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
# Keyed by (partition number is known, attribution is present).
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
    """Write an audit row. It names its partition, so that only grants that reach the partition can read it.

    `partition` is the partition's number, if known.
    """
    scope, attribution = operation.scope, operation.attribution
    home = scope.partition
    partition_values: tuple[str | int, ...]
    attributed = attribution is not None
    if partition is None or unless_there:
        statement = _UNLESS_THERE[attributed] if unless_there else _INSERTS[False, attributed]
        partition_values = (home.space, home.kind, home.owner)
    else:
        statement, partition_values = _INSERTS[True, attributed], (partition,)
    database.execute(
        statement,
        (
            operation.id, scope.space, rows.scope_json(scope), *partition_values, operation.actor.kind,
            operation.actor.id, operation.action, operation.outcome, operation.error_code, operation.touched,
            to_micros(operation.started_at), operation.duration_micros, *_filter_columns(operation),
            *(() if attribution is None else _attribution_columns(attribution)),
        ),
    )  # fmt: skip


def settle_operation(database: Database, operation: Operation) -> int:
    """Write the outcome of an operation that was recorded as `unknown`; return the number of rows changed (0 or 1)."""
    attribution = operation.attribution
    return database.execute(
        _SETTLE,
        (
            operation.outcome, operation.error_code, operation.touched, operation.duration_micros,
            *((None,) * 4 if attribution is None else _attribution_columns(attribution)), *_filter_columns(operation),
            operation.scope.space, operation.action, operation.id,
        ),
    ).rowcount  # fmt: skip


def _filter_columns(operation: Operation) -> LookupKeys:
    """Return the columns that the explorer filters by. The scope as given has a column of its own."""
    scope, attribution = operation.scope, operation.attribution
    if attribution is None:
        return LookupKeys(scope.agent, scope.project, scope.issue, scope.run)
    return lookup_keys(scope, attribution.source, attribution.hook)


def _attribution_columns(attribution: Attribution) -> tuple[Any, ...]:
    source = None if attribution.source is None else attribution.source.kind
    hook = None if attribution.hook is None else attribution.hook.kind
    return attribution.binding, source, hook, attribution_json(attribution)
