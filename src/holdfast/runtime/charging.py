"""What a call took becomes cost events, in the commit in which the call is settled: both are there, or neither."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from holdfast.domain import ids
from holdfast.domain.contract import Usage
from holdfast.domain.costs import CostEvent, Price, amount, by_model
from holdfast.domain.ids import CostEventId, OperationId
from holdfast.domain.scope import Scope
from holdfast.domain.usage import billed
from holdfast.ports import Transaction
from holdfast.runtime.perform import Core


class Ledger(Protocol):
    """What is needed of a transaction."""

    def prices(self) -> Sequence[Price]: ...

    def add_cost(self, event: CostEvent) -> None: ...


@dataclass(frozen=True, slots=True)
class Priced:
    """A ledger by prices that were read beforehand: for a transaction that is of no one company."""

    transaction: Transaction
    known: tuple[Price, ...]

    def prices(self) -> Sequence[Price]:
        return self.known

    def add_cost(self, event: CostEvent) -> None:
        self.transaction.add_cost(event)


def charged(
    transaction: Ledger,
    core: Core,
    operation_id: OperationId | None,
    binding: str | None,
    scope: Scope,
    usage: Iterable[Usage],
    at: datetime,
) -> tuple[CostEvent, ...]:
    """One event for each entry that is to be in the ledger by itself. Their ids are for the operation's row.

    `usage` is what `checked_usage` made of what was reported, `scope` the call's own, `at` when it ended.
    """
    metered = [entry for entry in usage if billed(entry)]
    # Most calls cost nothing, and then nobody asks for prices.
    prices = by_model(transaction.prices()) if any(entry.cost_cents is None for entry in metered) else {}
    made = tuple(_event(core, operation_id, binding, scope, entry, prices, at) for entry in metered)
    for event in made:
        transaction.add_cost(event)
    return made


def _event(
    core: Core,
    operation_id: OperationId | None,
    binding: str | None,
    scope: Scope,
    entry: Usage,
    prices: Mapping[tuple[str, str], Price],
    at: datetime,
) -> CostEvent:
    micros, currency, estimated = amount(entry, prices)
    event_id = CostEventId(core.ids.new(ids.COST_EVENT))
    return CostEvent(event_id, operation_id, binding, scope, entry, micros, currency, estimated, at)
