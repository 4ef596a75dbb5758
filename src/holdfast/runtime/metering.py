"""Turn the metered usage of a call into cost events, in the commit that settles the call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.domain import ids
from holdfast.domain.access import Grant
from holdfast.domain.contract import BillingType, Usage
from holdfast.domain.costs import CostEvent, Price, cost_of, index_prices
from holdfast.domain.ids import CostEventId, OperationId
from holdfast.domain.jobs import Cause, Job
from holdfast.domain.scope import Scope
from holdfast.domain.usage import checked_usage, is_billed
from holdfast.ports import Transaction, models
from holdfast.runtime.requests import Core


def record_costs(
    transaction: Transaction,
    core: Core,
    operation_id: OperationId | None,
    binding: str | None,
    scope: Scope,
    usage: Iterable[Usage],
    at: datetime,
    known_prices: Sequence[Price] | None = None,
) -> tuple[CostEvent, ...]:
    """Write one cost event for each billed entry. Their ids go into the operation's row.

    `usage` is validated (`checked_usage`), `scope` is the call's own, `at` is the time it ended.
    `known_prices` were read beforehand: for a transaction that belongs to no single space.
    """
    metered = [entry for entry in usage if is_billed(entry)]
    # Most calls cost nothing: read prices only if they are needed.
    prices: Mapping[tuple[str, str], Price] = {}
    if any(entry.cost_cents is None for entry in metered):
        prices = index_prices(transaction.costs.prices() if known_prices is None else known_prices)
    events = tuple(_event(core, operation_id, binding, scope, entry, prices, at) for entry in metered)
    for event in events:
        transaction.costs.add(event)
    return events


def _event(
    core: Core,
    operation_id: OperationId | None,
    binding: str | None,
    scope: Scope,
    entry: Usage,
    prices: Mapping[tuple[str, str], Price],
    at: datetime,
) -> CostEvent:
    micros, currency, estimated = cost_of(entry, prices)
    event_id = CostEventId(core.ids.new(ids.COST_EVENT))
    return CostEvent(event_id, operation_id, binding, scope, entry, micros, currency, estimated, at)


def embedding_usage(provider: str, took: models.ModelCallUsage) -> tuple[Usage, ...]:
    """Convert an embedder's reported usage to a call's usage."""
    usage = Usage(
        provider,
        model=took.model,
        billing_type=BillingType.METERED_API,
        embedding_tokens=took.input_tokens,
        details={"requests": took.requests},
    )
    return checked_usage((usage,), provider)


Effect = Callable[[Transaction], None]


async def with_costs(
    core: Core,
    grant: Grant,
    took: tuple[Usage, ...],
    effect: Effect,
    job: Job | None = None,
    cause: Cause | None = None,
) -> Effect:
    """Return the effect; if it was preceded by metered usage, its cost events are written in the same commit.

    They are charged to the cause of the job, or to the given one.
    """
    if not took:
        return effect
    prices = tuple(await core.store.read(grant, lambda reader: reader.costs.prices()))
    charged = (cause if job is None else job.cause) or Cause()
    return _MeteredEffect(core, grant.scope, charged, took, prices, effect)


@dataclass(slots=True)
class _MeteredEffect:
    """An effect with its metered usage, charged to the call that caused it. If run again, it replaces `costs`."""

    core: Core
    scope: Scope
    cause: Cause
    took: tuple[Usage, ...]
    prices: tuple[Price, ...]
    effect: Effect
    costs: tuple[CostEvent, ...] = ()

    def __call__(self, transaction: Transaction) -> None:
        self.effect(transaction)
        core, cause = self.core, self.cause
        self.costs = record_costs(
            transaction, core, cause.operation_id, cause.binding, self.scope, self.took, core.clock.now(), self.prices
        )


def report_costs(core: Core, effect: Effect) -> None:
    """Report an effect's cost events to the watcher, after the commit."""
    costs: Sequence[CostEvent] = getattr(effect, "costs", ())
    if core.watcher is not None and costs:
        core.watcher.on_costs(tuple(costs))
