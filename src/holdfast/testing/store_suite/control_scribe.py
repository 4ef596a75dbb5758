"""Test data for the control plane's tables: one builder per table, for any space."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from itertools import count
from typing import Any

from holdfast.domain.access import LOCAL_OPERATOR, Action, Grant, authorize
from holdfast.domain.bindings import Binding, Target, TargetKind
from holdfast.domain.contract import (
    AttributionMode,
    BillingType,
    HookContext,
    HookKind,
    SourceKind,
    SourcePayload,
    SourceRef,
    Usage,
)
from holdfast.domain.costs import CostEvent, FinanceEvent, FinanceKind, Price
from holdfast.domain.hooks import Delivery, HookDeliveryStatus, NewDelivery
from holdfast.domain.ids import BindingId, CostEventId, DeliveryId, FinanceEventId, JobId, OperationId
from holdfast.domain.jobs import Cause, JobKind, NewJob
from holdfast.domain.operations import Attribution, Operation, Outcome
from holdfast.domain.scope import Scope
from holdfast.domain.times import to_micros
from holdfast.ports import Transaction
from holdfast.testing import FixedClock


def management_grant(space: str = "default") -> Grant:
    return authorize(LOCAL_OPERATOR, Action.MANAGE_BINDINGS, Scope(space=space))


@dataclass(slots=True)
class ControlScribe:
    """Builds rows of the tables, with increasing ids that contain the time of its clock."""

    space: str = "default"
    clock: FixedClock = field(default_factory=FixedClock)
    _counter: Any = field(init=False)

    def __post_init__(self) -> None:
        # Ids are unique across spaces.
        self._counter = count(sum(self.space.encode()) << 32)

    def id(self, prefix: str) -> str:
        return f"{prefix}_{to_micros(self.clock.now()) // 1_000:012x}{next(self._counter):020x}"

    def now(self) -> datetime:
        return self.clock.now()

    def scope(self, **parts: str) -> Scope:
        return Scope(space=self.space, **parts)

    def binding(self, key: str = "other", **changes: Any) -> Binding:
        fields: dict[str, Any] = {"config": {"url": "https://a", "ü": [1]}, "created_at": self.now(), **changes}
        return Binding(BindingId(self.id("bnd")), self.space, key, "http", **fields)

    def hook(self, kind: HookKind = HookKind.POST_RUN_CAPTURE, hook_id: str | None = None) -> HookContext:
        return HookContext(kind, hook_id or self.id("hook"), self.now(), "agent-1", "run-1")

    def source(self, kind: SourceKind = SourceKind.RUN, **parts: str) -> SourceRef:
        return SourceRef(kind, self.space, **parts)

    def usage(self, **changes: Any) -> Usage:
        fields: dict[str, Any] = {
            "model": "small",
            "billing_type": BillingType.METERED_API,
            "attribution_mode": AttributionMode.BILLED_DIRECTLY,
            "input_tokens": 7,
            "cost_cents": Decimal("0.1250"),
            "latency_ms": 1.5,
            "details": {"region": "eu"},
            **changes,
        }
        return Usage(fields.pop("provider", f"vendor-of-{self.space}"), **fields)

    def attribution(self, **changes: Any) -> Attribution:
        fields: dict[str, Any] = {
            "binding": "other",
            "provider": "http",
            "source": self.source(run_id="run-1"),
            "hook": self.hook(),
            "usage": (self.usage(), self.usage(cost_cents=None, latency_ms=None)),
            "mode": AttributionMode.BILLED_DIRECTLY,
            "cost_events": (CostEventId("cost_1"),),
            "handles": ("a", "b"),
            "dropped": 2,
            **changes,
        }
        return Attribution(**fields)

    def operation(self, **changes: Any) -> Operation:
        fields: dict[str, Any] = {
            "actor": LOCAL_OPERATOR,
            "action": Action.CAPTURE,
            "scope": self.scope(),
            "outcome": Outcome.SUCCEEDED,
            "error_code": None,
            "record_count": 1,
            "started_at": self.now(),
            "duration_micros": 5,
            **changes,
        }
        return Operation(OperationId(self.id("op")), **fields)

    def delivery(self, **changes: Any) -> Delivery:
        fields: dict[str, Any] = {
            "to": "binding:other",
            "hook": self.hook(),
            "scope": self.scope(subject="ana", run="run-1"),
            "source": self.source(run_id="run-1"),
            "status": HookDeliveryStatus.PENDING,
            "created_at": self.now(),
            "digest": "abc",
            **changes,
        }
        return Delivery(DeliveryId(self.id("dlv")), **fields)

    def cost(self, **changes: Any) -> CostEvent:
        fields: dict[str, Any] = {
            "operation_id": None,
            "binding": "other",
            "scope": self.scope(agent="agent-1", project="p", issue="i", run="r"),
            "usage": self.usage(),
            "amount_micros": 1_250,
            "currency": "USD",
            "estimated": False,
            "occurred_at": self.now(),
            **changes,
        }
        return CostEvent(CostEventId(self.id("cost")), **fields)

    def finance(self, **changes: Any) -> FinanceEvent:
        fields: dict[str, Any] = {
            "kind": FinanceKind.SUBSCRIPTION,
            "description": "the month of May",
            "amount_micros": 20_000_000,
            "currency": "USD",
            "occurred_at": self.now(),
            "provider": f"vendor-of-{self.space}",
            **changes,
        }
        return FinanceEvent(FinanceEventId(self.id("fin")), self.space, **fields)

    def job(self, **changes: Any) -> tuple[JobId, NewJob]:
        cause = Cause(OperationId("op_1"), "other", self.hook(), self.source(run_id="run-1"))
        fields: dict[str, Any] = {
            "kind": JobKind.DELIVER,
            "scope": self.scope(agent="agent-1", project="p", issue="i", run="r"),
            "record_ids": ("dlv_1",),
            "cause": cause,
            **changes,
        }
        return JobId(self.id("job")), NewJob(**fields)

    def everything(self) -> Callable[[Transaction], WrittenRows]:
        """A write that puts rows into every table of the control plane."""

        def write(transaction: Transaction) -> WrittenRows:
            transaction.bindings.add(self.binding())
            transaction.bindings.add(self.binding("gone"))
            transaction.bindings.remove("gone", self.now())
            transaction.bindings.set_target(Target(TargetKind.AGENT, f"agent-of-{self.space}", "other"))
            scope = self.scope(agent="agent-1", project="p", issue="i", run="r")
            done = self.operation(scope=scope, attribution=self.attribution())
            open_one = self.operation(attribution=Attribution("other"), outcome=Outcome.UNKNOWN)
            transaction.operations.add(done)
            transaction.operations.add(open_one)
            payload = SourcePayload(f"on its way in {self.space}", object={"a": 1})
            pending = transaction.deliveries.add(NewDelivery(self.delivery(), payload))
            dead = transaction.deliveries.add(NewDelivery(self.delivery(), payload))
            transaction.deliveries.end(dead.id, HookDeliveryStatus.DEAD, self.now(), "gave_up", None, tried=True)
            skipped = transaction.deliveries.add(NewDelivery(self.delivery(status=HookDeliveryStatus.SKIPPED), None))
            arrived = transaction.deliveries.add(NewDelivery(self.delivery(), SourcePayload("it arrived")))
            ended = (HookDeliveryStatus.DELIVERED, self.now(), None, OperationId("op_1"))
            transaction.deliveries.end(arrived.id, *ended, tried=True)
            transaction.costs.add(self.cost())
            transaction.costs.add_finance(self.finance())
            transaction.costs.put_price(Price(f"vendor-of-{self.space}", "small", input_micros=150_000))
            job_id, job = self.job(record_ids=(pending.id,))
            transaction.jobs.enqueue(job_id, job, self.now())
            failed_id, failed = self.job()
            transaction.jobs.enqueue(failed_id, failed, self.now())
            transaction.jobs.cancel(failed_id, self.now())
            retried_id, retried = self.job()
            transaction.jobs.enqueue(retried_id, retried, self.now())
            transaction.jobs.cancel(retried_id, self.now())
            transaction.jobs.restart(retried_id, self.now())
            return WrittenRows(done, open_one, pending, dead, skipped, job_id, failed_id, retried_id)

        return write


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """The rows and ids that `everything` wrote."""

    done: Operation
    unknown: Operation
    pending: Delivery
    dead: Delivery
    skipped: Delivery
    job: JobId
    cancelled: JobId
    retried: JobId
