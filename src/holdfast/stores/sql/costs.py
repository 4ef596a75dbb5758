"""Costs of memory: metered calls, flat fees, and prices."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from holdfast.domain.costs import CostEvent, CostGroup, CostLine, FinanceEvent, Price
from holdfast.domain.times import to_micros
from holdfast.errors import AccessDenied
from holdfast.stores.sql import rows
from holdfast.stores.sql.dialect import insert_statement
from holdfast.stores.sql.grant_scope import SqlRepository
from holdfast.stores.sql.pagination import PageQuery, read_newest
from holdfast.stores.sql.rows import as_json, builder_of, column_values

_COST_COLUMNS = (
    "id", "space", "operation_id", "binding", "scope", "agent", "project", "issue", "run", "provider", "model", "day",
    "input_tokens", "cached_input_tokens", "output_tokens", "embedding_tokens", "amount_micros", "currency",
    "estimated", "occurred_at", "usage",
)  # fmt: skip
_COST_READ = "id, operation_id, binding, scope, amount_micros, currency, estimated, occurred_at, usage"
_cost = builder_of(CostEvent, _COST_READ)
_FINANCE_COLUMNS = (
    "id", "space", "kind", "description", "amount_micros", "currency", "occurred_at", "binding", "provider",
    "external_invoice_id", "estimated",
)  # fmt: skip
_finance = builder_of(FinanceEvent, ", ".join(_FINANCE_COLUMNS))
_PRICE_COLUMNS = (
    "space", "provider", "model", "currency", "input_micros", "cached_input_micros", "output_micros",
    "embedding_micros",
)  # fmt: skip
_SUMMED = ("input_tokens", "cached_input_tokens", "output_tokens", "embedding_tokens")


def _sum_expression(column: str) -> str:
    return f"CAST(coalesce(sum({column}), 0) AS BIGINT)"


_ESTIMATED = _sum_expression("CASE WHEN x.estimated = 1 THEN x.amount_micros ELSE 0 END")
_SUMMARY = (
    f"SELECT {{}}, x.currency, {_sum_expression('x.amount_micros')}, count(*), {{}}, {_ESTIMATED} FROM {{}} x"
    " WHERE {} GROUP BY 1, 2"
)


class SqlCostReader(SqlRepository):
    """Implements `CostReader`."""

    def prices(self) -> Sequence[Price]:
        own, values = self._scope.in_any_space()
        found = self._db.execute(
            f"SELECT {', '.join(_PRICE_COLUMNS[1:])} FROM prices x WHERE {own} ORDER BY x.provider, x.model", values
        )
        return [Price(*row) for row in found]

    def page(self, before: str | None, limit: int) -> Sequence[CostEvent]:
        query = PageQuery(self._scope.in_own_space())
        return [_cost(row) for row in read_newest(self._scope, "cost_events", _COST_READ, query, (), before, limit)]

    def finance_page(self, before: str | None, limit: int) -> Sequence[FinanceEvent]:
        query = PageQuery(self._scope.in_own_space())
        columns = ", ".join(_FINANCE_COLUMNS)
        return [_finance(row) for row in read_newest(self._scope, "finance_events", columns, query, (), before, limit)]

    def summary(self, group: CostGroup, since: datetime | None, until: datetime | None) -> Sequence[CostLine]:
        tokens = ", ".join(_sum_expression(f"x.{column}") for column in _SUMMED)
        lines = self._sum(f"x.{group.value}", tokens, "cost_events", since, until)
        return sorted(lines, key=_by_day) if group is CostGroup.DAY else sorted(lines, key=_by_amount)

    def finance_summary(self, since: datetime | None, until: datetime | None) -> Sequence[CostLine]:
        return sorted(self._sum("x.provider", "0, 0, 0, 0", "finance_events", since, until), key=_by_amount)

    def _sum(
        self, name: str, tokens: str, table: str, since: datetime | None, until: datetime | None
    ) -> list[CostLine]:
        within, values = self._scope.in_own_space()
        for condition, at in (("x.occurred_at >= ?", since), ("x.occurred_at < ?", until)):
            if at is not None:
                within += f" AND {condition}"
                values.append(to_micros(at))
        return [CostLine(*row) for row in self._db.execute(_SUMMARY.format(name, tokens, table, within), values)]


def _by_day(line: CostLine) -> tuple[str, str]:
    return line.name or "", line.currency


def _by_amount(line: CostLine) -> tuple[int, bool, str, str]:
    return -line.amount_micros, line.name is None, line.name or "", line.currency


class SqlCostWriter(SqlCostReader):
    """Implements `CostWriter`."""

    def add(self, event: CostEvent) -> None:
        scope, usage = event.scope, event.usage
        # Costs belong to the space, whichever partition the call was for.
        if not (self._scope.grant.everywhere or scope.space == self._scope.grant.scope.space):
            raise AccessDenied("the grant does not reach the costs of this space")
        values = (
            event.id, scope.space, event.operation_id, event.binding, rows.scope_json(scope), scope.agent,
            scope.project, scope.issue, scope.run, usage.provider, usage.model,
            event.occurred_at.astimezone(UTC).date().isoformat(), usage.input_tokens, usage.cached_input_tokens,
            usage.output_tokens, usage.embedding_tokens, event.amount_micros, event.currency, int(event.estimated),
            to_micros(event.occurred_at), as_json(usage),
        )  # fmt: skip
        self._scope.dialect.insert(self._db, "cost_events", _COST_COLUMNS, [values])

    def add_finance(self, event: FinanceEvent) -> None:
        if event.space != self._scope.whole_space():
            raise AccessDenied("the grant does not reach the costs of this space")
        values = column_values(event, _FINANCE_COLUMNS)
        self._scope.dialect.insert(self._db, "finance_events", _FINANCE_COLUMNS, [values])

    def put_price(self, price: Price) -> None:
        changed = ", ".join(f"{column} = excluded.{column}" for column in _PRICE_COLUMNS[3:])
        self._db.execute(
            f"{insert_statement('prices', _PRICE_COLUMNS)}"
            f" ON CONFLICT (space, provider, model) DO UPDATE SET {changed}",
            [self._scope.whole_space(), *column_values(price, _PRICE_COLUMNS[1:])],
        )

    def remove_price(self, provider: str, model: str) -> bool:
        removed = self._db.execute(
            "DELETE FROM prices WHERE space = ? AND provider = ? AND model = ?",
            (self._scope.whole_space(), provider, model),
        )
        return removed.rowcount == 1
