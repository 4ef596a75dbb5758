"""Operations: record and settle them, query them by attribution, and compute metrics of memory from them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.domain.access import Action, Actor, ActorKind
from holdfast.domain.contract import HookKind, LookupKeys, lookup_keys
from holdfast.domain.ids import OPERATION
from holdfast.domain.operations import (
    ALL_OPERATIONS,
    FOR_MODELS,
    QUESTIONS,
    TYPE_OF,
    Attribution,
    BindingCounts,
    MemoryMetrics,
    Operation,
    OperationFilter,
    OperationType,
    Outcome,
)
from holdfast.domain.times import from_micros, to_micros
from holdfast.errors import AccessDenied, RevisionConflict
from holdfast.stores.sql import rows
from holdfast.stores.sql.dialect import Database, Dialect
from holdfast.stores.sql.grant_scope import SqlRepository
from holdfast.stores.sql.pagination import LeadingIndex, PageQuery, bound_times, read_newest, usable_indexes
from holdfast.stores.sql.rows import as_json, from_entry, to_entry
from holdfast.stores.sql.write_scope import WriteScope

_READ = (
    "id, actor_kind, actor_id, action, scope, outcome, error_code, touched, started_at, duration_micros,"
    " binding, details"
)
# The details of a call that asks no provider begin with this. Only the prefix is compared: not every database can parse
# the rest, which may hold any text of a provider.
_UNASKED = '{"asked":false'
_UNWELL = " AND x.outcome <> 'succeeded'"
_BY_ACTION = LeadingIndex(None, ("action",))
_ACTIONS = tuple(sorted(Action))
# The first wins a tie.
_LEADS = (
    LeadingIndex("operations_agent_action", ("agent", "action")),
    LeadingIndex("operations_agent_outcome", ("agent", "outcome"), _UNWELL),
    LeadingIndex("operations_run", ("run",)),
    LeadingIndex("operations_issue", ("issue",)),
    LeadingIndex("operations_agent", ("agent",)),
    LeadingIndex("operations_project", ("project",)),
    LeadingIndex("operations_source", ("source_kind",)),
    LeadingIndex("operations_outcome", ("outcome",), _UNWELL),
    _BY_ACTION,
    LeadingIndex("operations_binding", ("binding",)),
)
_OF_TYPE: Mapping[OperationType, frozenset[Action]] = {
    each: frozenset(action for action, of in TYPE_OF.items() if of is each) for each in OperationType
}
_METRICS = (
    "SELECT x.binding, x.outcome, x.action, x.touched > 0,"
    f" coalesce(x.hook, '') = '{HookKind.PRE_RUN_HYDRATE}' OR x.actor_kind = 'agent', count(*)"
    " FROM operations x WHERE {} GROUP BY 1, 2, 3, 4, 5"
)
_ASKED = f"coalesce(substr(x.details, 1, {len(_UNASKED)}), '') <> ?"


class SqlOperationReader(SqlRepository):
    """Implements `OperationReader`."""

    def find(self, operation_id: str) -> Operation | None:
        within, values = self._scope.within_space()
        acted, actions = self._of_actions()
        row = self._db.execute(
            f"SELECT {_READ} FROM operations x WHERE {within} AND {acted} AND x.id = ?",
            [*values, *actions, operation_id],
        ).fetchone()
        return _operation(row) if row else None

    def _of_actions(self) -> tuple[str, list[Any]]:
        """Match all actions; by name where rows are ordered by action, so that each is looked up in order."""
        return (
            self._scope.dialect.among("x.action", _ACTIONS)
            if self._scope.dialect.operations_by_action
            else ("TRUE", [])
        )

    def page(
        self, wanted: OperationFilter = ALL_OPERATIONS, before: str | None = None, limit: int = 100
    ) -> Sequence[Operation]:
        query = PageQuery(self._scope.within_space())
        for part in ("agent", "project", "issue", "run", "binding", "source_kind", "outcome"):
            query.require(**{part: getattr(wanted, part)})
        if wanted.type is not None or wanted.action is not None or wanted.of_memory:
            query.equal["action"] = sorted(_matching_actions(wanted))
        bound_times(self._scope, "operations", OPERATION, query, "started_at", wanted.since, wanted.until)
        well = wanted.outcome is Outcome.SUCCEEDED
        leads = [lead for lead in _LEADS if not (well and lead.also)]
        if self._scope.dialect.operations_by_action and not usable_indexes(query, leads):
            query.equal["action"] = _ACTIONS
        found = read_newest(self._scope, "operations", _READ, query, leads, before, limit)
        return [_operation(row) for row in found]

    def metrics(self, since: datetime | None, until: datetime | None) -> MemoryMetrics:
        query = PageQuery(self._scope.in_own_space())
        bound_times(self._scope, "operations", OPERATION, query, "started_at", since, until)
        of_memory, actions = self._scope.dialect.among("x.action", sorted(TYPE_OF))
        for bound, limit in (("x.id >= ?", query.from_id), ("x.id < ?", query.below_id)):
            if limit is not None:
                query.where(bound, limit)
        query.where(_ASKED, _UNASKED)
        conditions = " AND ".join([query.reach[0], of_memory, *query.conditions])
        found = self._db.execute(_METRICS.format(conditions), [*query.reach[1], *actions, *query.values])
        failures = self._extraction_failures(since, until)
        tally = _MetricsTally()
        for binding, outcome, action, hit, to_model, count in found:
            tally.add(binding, Outcome(outcome), Action(action), bool(hit), bool(to_model), int(count))
        return tally.metrics(int(failures))

    def _extraction_failures(self, since: datetime | None, until: datetime | None) -> int:
        """Count extractions that failed and were not retried."""
        own, values = self._scope.in_own_space("j")
        for condition, at in (("j.finished_at >= ?", since), ("j.finished_at < ?", until)):
            if at is not None:
                own += f" AND {condition}"
                values.append(to_micros(at))
        row = self._db.execute(
            "SELECT count(*) FROM jobs j WHERE j.kind IN ('extract', 'maintain') AND j.status = 'failed'"
            f" AND j.status IN ('failed', 'cancelled') AND {own}"
            " AND NOT EXISTS (SELECT 1 FROM jobs n WHERE n.retry_of = j.id)",
            values,
        ).fetchone()
        return int(row[0])


def _matching_actions(wanted: OperationFilter) -> frozenset[Action]:
    actions = frozenset(Action) if wanted.type is None else _OF_TYPE[wanted.type]
    if wanted.action is not None:
        actions &= {wanted.action}
    return actions & TYPE_OF.keys() if wanted.of_memory else actions


class SqlOperationWriter(SqlOperationReader):
    """Implements `OperationWriter`."""

    _scope: WriteScope

    def add(self, operation: Operation) -> None:
        record_operation(
            self._db, self._scope.dialect, operation, partition=self._scope.known.get(operation.scope.partition)
        )

    def settle(self, operation: Operation) -> None:
        if not (self._scope.grant.everywhere or operation.scope.space == self._scope.grant.scope.space):
            raise AccessDenied("the grant does not reach the operations of this space")
        if settle_operation(self._db, operation) != 1:
            raise RevisionConflict(f"{operation.id} has no open outcome: it was already settled, or never recorded")


class _MetricsTally:
    def __init__(self) -> None:
        self.recalls = self.hits = self.queries = self.empty = self.corrections = 0
        self.bindings: dict[str | None, dict[Outcome, int]] = {}

    def add(self, binding: str | None, outcome: Outcome, action: Action, hit: bool, to_model: bool, count: int) -> None:
        of_memory = TYPE_OF.get(action)
        if of_memory is None:
            return
        counts = self.bindings.setdefault(binding, dict.fromkeys(Outcome, 0))
        counts[outcome] += count
        if outcome is not Outcome.SUCCEEDED:
            return
        if action in QUESTIONS:
            self.queries += count
            self.empty += 0 if hit else count
            if to_model or action in FOR_MODELS:
                self.recalls += count
                self.hits += count if hit else 0
        elif of_memory is OperationType.CORRECT:
            self.corrections += count

    def metrics(self, extraction_failures: int) -> MemoryMetrics:
        return MemoryMetrics(
            recalls=self.recalls,
            recall_hits=self.hits,
            queries=self.queries,
            empty_queries=self.empty,
            corrections=self.corrections,
            extraction_failures=extraction_failures,
            bindings=tuple(
                BindingCounts(
                    binding,
                    counts[Outcome.SUCCEEDED],
                    counts[Outcome.FAILED],
                    counts[Outcome.REFUSED],
                    counts[Outcome.UNKNOWN],
                )
                for binding, counts in sorted(self.bindings.items(), key=lambda each: (each[0] is None, each[0] or ""))
            ),
        )


_COLUMNS = (
    "id", "space", "scope", "partition_id", "actor_kind", "actor_id", "action", "outcome", "error_code", "touched",
    "started_at", "duration_micros", "agent", "project", "issue", "run",
)  # fmt: skip
_ATTRIBUTED = (*_COLUMNS, "binding", "source_kind", "hook", "details")
_HOME = "SELECT id FROM partitions WHERE space = ? AND kind = ? AND owner = ?"
_SETTLE = (
    "UPDATE operations SET outcome = ?, error_code = ?, touched = ?, duration_micros = ?, binding = ?,"
    " source_kind = ?, hook = ?, details = ?, agent = ?, project = ?, issue = ?, run = ?"
    " WHERE space = ? AND action = ? AND id = ? AND outcome = 'unknown'"
)


def record_operation(
    database: Database,
    dialect: Dialect,
    operation: Operation,
    *,
    unless_there: bool = False,
    partition: int | None = None,
) -> None:
    """Write an audit row. It names its partition, so that only grants that reach the partition can read it.

    `partition` is the partition's number, if known.
    """
    scope, attribution = operation.scope, operation.attribution
    home = scope.partition
    if partition is None:
        found = database.execute(_HOME, (home.space, home.kind, home.owner)).fetchone()
        partition = found[0] if found else None
    values = (
        operation.id, scope.space, rows.scope_json(scope), partition, str(operation.actor.kind), operation.actor.id,
        str(operation.action), str(operation.outcome), operation.error_code,
        operation.record_count, to_micros(operation.started_at), operation.duration_micros, *_filter_columns(operation),
        *(() if attribution is None else _attribution_columns(attribution)),
    )  # fmt: skip
    columns = _COLUMNS if attribution is None else _ATTRIBUTED
    dialect.insert(database, "operations", columns, [values], " ON CONFLICT DO NOTHING" if unless_there else "")


def settle_operation(database: Database, operation: Operation) -> int:
    """Write the outcome of an operation that was recorded as `unknown`; return the number of rows changed (0 or 1)."""
    attribution = operation.attribution
    return database.execute(
        _SETTLE,
        (
            operation.outcome, operation.error_code, operation.record_count, operation.duration_micros,
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
    return attribution.binding, source, hook, _attribution_json(attribution)


def _attribution_json(attribution: Attribution) -> str | None:
    """Return None if it holds only a binding, which has its own column: true of nearly every call."""
    entry = to_entry(attribution)
    entry.pop("binding", None)
    if entry.pop("provider_called"):
        return as_json(entry) if entry or attribution.binding is None else None
    return as_json({"asked": False, **entry})  # first: see `_UNASKED`


def _operation(row: Sequence[Any]) -> Operation:
    operation_id, actor_kind, actor_id, action, scope, outcome, error_code, touched, started_at, duration = row[:10]
    binding, details = row[10:]
    entry = {"binding": binding, **json.loads(details or "{}")}
    entry["provider_called"] = entry.pop("asked", True)  # the name in the store
    return Operation(
        id=operation_id,
        actor=Actor(ActorKind(actor_kind), actor_id),
        action=Action(action),
        scope=rows.scope_from_json(scope),
        outcome=Outcome(outcome),
        error_code=error_code,
        record_count=touched,
        started_at=from_micros(started_at),
        duration_micros=duration,
        attribution=None if binding is details is None else from_entry(Attribution, entry),
    )
