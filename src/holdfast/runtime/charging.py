"""What a call took becomes cost events, in the commit in which the call is settled: both are there, or neither."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from holdfast.domain import ids
from holdfast.domain.access import Grant
from holdfast.domain.contract import BillingType, Usage
from holdfast.domain.costs import CostEvent, Price, amount, by_model
from holdfast.domain.ids import CostEventId, OperationId
from holdfast.domain.jobs import Cause, Job
from holdfast.domain.scope import Scope
from holdfast.domain.usage import billed, checked_usage
from holdfast.ports import Transaction, models
from holdfast.runtime.requests import Core


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


def embedding(provider: str, took: models.Usage) -> tuple[Usage, ...]:
    """What an embedder says that it took, as what a call took."""
    told = Usage(
        provider,
        model=took.model,
        billing_type=BillingType.METERED_API,
        embedding_tokens=took.input_tokens,
        details={"requests": took.requests},
    )
    return checked_usage((told,), provider)


Effect = Callable[[Transaction], None]


async def paid(core: Core, grant: Grant, took: tuple[Usage, ...], effect: Effect, job: Job | None = None) -> Effect:
    """The same effect; if something was paid for on the way to it, with that in the ledger, in the same commit."""
    if not took:
        return effect
    prices = tuple(await core.store.read(grant, lambda reader: reader.prices()))
    cause = (None if job is None else job.cause) or Cause()
    return _Paid(core, grant.scope, cause, took, prices, effect)


@dataclass(slots=True)
class _Paid:
    """An effect, and what it took, put down to the call that it goes back to. Done again, it says it again."""

    core: Core
    scope: Scope
    cause: Cause
    took: tuple[Usage, ...]
    prices: tuple[Price, ...]
    effect: Effect
    costs: tuple[CostEvent, ...] = ()

    def __call__(self, transaction: Transaction) -> None:
        self.effect(transaction)
        ledger, cause = Priced(transaction, self.prices), self.cause
        now = self.core.clock.now()
        self.costs = charged(ledger, self.core, cause.operation_id, cause.binding, self.scope, self.took, now)


def tell_costs(core: Core, effect: Effect) -> None:
    """Have whoever watches know what an effect wrote into the ledger, now that it is there."""
    costs: Sequence[CostEvent] = getattr(effect, "costs", ())
    if core.watcher is not None and costs:
        core.watcher.cost(tuple(costs))
