"""Hook deliveries: list and read them, retry dead letters, drop what should not be delivered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from holdfast.control.company_requests import CompanyPage, CompanyRead, CompanyWrite, WakesWorker, log_change
from holdfast.domain import ids
from holdfast.domain.access import Action, Grant
from holdfast.domain.arguments import GROUP
from holdfast.domain.contract import DEFAULT_PAGE, Cursor, PageLimit
from holdfast.domain.events import EventKind
from holdfast.domain.hooks import Delivery, DeliveryFilter, DeliveryPage, HookDeliveryStatus
from holdfast.domain.ids import DeliveryId, Id, JobId, OperationId
from holdfast.domain.jobs import Cause, JobKind, NewJob
from holdfast.errors import Conflict, NotFound
from holdfast.ports import Reader, Transaction
from holdfast.runtime.forget import scrub_store
from holdfast.runtime.gate import Core
from holdfast.runtime.job_queue import enqueue_for_store

_DROPPED = "dropped_by_operator"


@dataclass(frozen=True, slots=True)
class ListDeliveries(CompanyPage[DeliveryPage]):
    """List hook deliveries, newest first, one per destination. Retry or drop the dead ones."""

    action: ClassVar[Action] = Action.READ_DELIVERIES
    filter: Annotated[DeliveryFilter, GROUP] = field(default_factory=DeliveryFilter)
    cursor: Cursor | None = None
    limit: PageLimit = DEFAULT_PAGE

    def apply(self, reader: Reader, prepared: Core) -> DeliveryPage:
        return DeliveryPage(*self._page(reader.deliveries.page(self.filter, self._before(), self.limit + 1)))


@dataclass(frozen=True, slots=True)
class GetDelivery(CompanyRead[Delivery]):
    """Get one delivery: its hook, destination and last result."""

    action: ClassVar[Action] = Action.READ_DELIVERIES
    delivery_id: Id

    def apply(self, reader: Reader, prepared: Core) -> Delivery:
        return _require_delivery(reader, self.delivery_id)


@dataclass(frozen=True, slots=True)
class RetryDelivery(WakesWorker, CompanyWrite[Delivery]):
    """Retry a dead delivery with a new job, which has all its attempts again."""

    action: ClassVar[Action] = Action.MANAGE_DELIVERIES
    delivery_id: Id

    def apply(self, transaction: Transaction, prepared: tuple[Core, Grant]) -> Delivery:
        found = _require_delivery(transaction, self.delivery_id)
        if found.status is HookDeliveryStatus.SKIPPED:
            raise Conflict(
                f"the delivery {found.id} was skipped ({found.reason}) and its payload was not kept; enable the hook,"
                " then emit it again with the same id and payload"
            )
        if not revive_dead_delivery(transaction, prepared, found):
            raise Conflict(f"the delivery {found.id} is {found.status}; only a dead delivery can be retried")
        queue_delivery(prepared[0], transaction, found)
        return _require_delivery(transaction, self.delivery_id)


@dataclass(frozen=True, slots=True)
class DropDelivery(CompanyWrite[Delivery]):
    """Drop a dead or pending delivery. Its payload is deleted at once, and its job is cancelled."""

    action: ClassVar[Action] = Action.MANAGE_DELIVERIES
    delivery_id: Id

    def apply(self, transaction: Transaction, prepared: tuple[Core, Grant]) -> Delivery:
        found = _require_delivery(transaction, self.delivery_id)
        if found.status not in (HookDeliveryStatus.PENDING, HookDeliveryStatus.DEAD):
            raise Conflict(f"the delivery {found.id} is {found.status}; only a pending or dead delivery can be dropped")
        now = prepared[0].clock.now()
        transaction.deliveries.end(found.id, HookDeliveryStatus.DROPPED, now, _DROPPED, None, tried=False)
        if (job := transaction.jobs.find_for_delivery(found.id)) is not None:
            transaction.jobs.cancel(job.id, now)
        # As after a forget: in the same commit, so that the payload's bytes leave the log even after a crash.
        enqueue_for_store(transaction, prepared[0], JobKind.SCRUB)
        log_change(transaction, prepared, EventKind.DELIVERY_DROPPED, found.id, {"to": found.to})
        return _require_delivery(transaction, self.delivery_id)

    async def finish(self, core: Core, result: Delivery, operation_id: OperationId) -> Delivery:
        await scrub_store(core)
        return result


def revive_dead_delivery(transaction: Transaction, prepared: tuple[Core, Grant], delivery: Delivery) -> bool:
    """Make a dead delivery pending again; return False if it is not dead."""
    if not transaction.deliveries.revive(delivery.id, prepared[0].clock.now()):
        return False
    log_change(transaction, prepared, EventKind.DELIVERY_RETRIED, delivery.id, {"to": delivery.to})
    return True


def queue_delivery(
    core: Core, transaction: Transaction, delivery: Delivery, operation_id: OperationId | None = None
) -> None:
    """Queue a job that delivers it."""
    cause = Cause(operation_id, delivery.binding, delivery.hook, delivery.source)
    job = NewJob(JobKind.DELIVER, delivery.scope, (delivery.id,), cause)
    transaction.jobs.enqueue(JobId(core.ids.new(ids.JOB)), job, core.clock.now())


def _require_delivery(reader: Reader, delivery_id: str) -> Delivery:
    found = reader.deliveries.find(DeliveryId(delivery_id))
    if found is None:
        raise NotFound(f"there is no delivery {delivery_id!r:.80} in this space; list its deliveries")
    return found
