"""Hook deliveries: list and read them, retry dead letters, drop what should not be delivered."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import ClassVar

from holdfast.control import validation
from holdfast.domain import ids
from holdfast.domain.access import Action, Grant
from holdfast.domain.checks import checked_text
from holdfast.domain.contract import DEFAULT_PAGE, MAX_PAGE, HookKind, SourceKind
from holdfast.domain.events import EventKind
from holdfast.domain.hooks import Delivery, DeliveryFilter, DeliveryPage, HookDeliveryStatus
from holdfast.domain.ids import DeliveryId, JobId, OperationId, checked_id
from holdfast.domain.jobs import Cause, JobKind, NewJob
from holdfast.domain.scope import Scope
from holdfast.errors import Conflict, InvalidInput, NotFound
from holdfast.ports import Reader, Transaction
from holdfast.runtime.activity_events import activity_event
from holdfast.runtime.cursors import Pagination
from holdfast.runtime.gate import Core, Read, Write
from holdfast.runtime.idempotency import digest_of

_DROPPED = "dropped_by_operator"
_Prepared = tuple[Core, Grant]


@dataclass(frozen=True, slots=True)
class ListDeliveries(Pagination, Read[None, DeliveryPage]):
    """List deliveries, newest first. The cursor is bound to the filter."""

    action: ClassVar[Action] = Action.READ_DELIVERIES
    scope: Scope
    filter: DeliveryFilter = field(default_factory=DeliveryFilter)
    cursor: str | None = None
    limit: int = DEFAULT_PAGE

    def __post_init__(self) -> None:
        validation.check_one_company(self.scope)
        _check_filter(self.filter)
        self._check_page(MAX_PAGE)

    async def prepare(self, core: Core, grant: Grant) -> None:
        return None

    def apply(self, reader: Reader, prepared: None) -> DeliveryPage:
        return DeliveryPage(*self._page(reader.deliveries_page(self.filter, self._before(), self.limit + 1)))

    def _query(self) -> str:
        values = [str(getattr(self.filter, each.name)) for each in fields(self.filter)]
        return digest_of("deliveries", self.scope.given(), values)[:16]

    def record_count(self, result: DeliveryPage) -> int:
        return len(result.items)


@dataclass(frozen=True, slots=True)
class GetDelivery(Read[None, Delivery]):
    action: ClassVar[Action] = Action.READ_DELIVERIES
    scope: Scope
    delivery_id: str

    def __post_init__(self) -> None:
        validation.check_one_company(self.scope)
        checked_id(self.delivery_id, "delivery_id")

    async def prepare(self, core: Core, grant: Grant) -> None:
        return None

    def apply(self, reader: Reader, prepared: None) -> Delivery:
        return _require_delivery(reader, self.delivery_id)

    def record_count(self, result: Delivery) -> int:
        return 1


class _DeliveryChange(Write[_Prepared, Delivery]):
    """A change to one delivery."""

    __slots__ = ()
    delivery_id: str

    def __post_init__(self) -> None:
        validation.check_one_company(self.scope)
        checked_id(self.delivery_id, "delivery_id")

    async def prepare(self, core: Core, grant: Grant) -> _Prepared:
        return core, grant

    def record_count(self, result: Delivery) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class RetryDelivery(_DeliveryChange):
    """Retry a dead delivery with a new job, which has all its attempts again."""

    action: ClassVar[Action] = Action.MANAGE_DELIVERIES
    scope: Scope
    delivery_id: str

    def apply(self, transaction: Transaction, prepared: _Prepared) -> Delivery:
        core, grant = prepared
        found = _require_delivery(transaction, self.delivery_id)
        if found.status is HookDeliveryStatus.SKIPPED:
            raise Conflict(
                f"the delivery {found.id} was skipped ({found.reason}) and its payload was not kept; enable the hook,"
                " then emit it again with the same id and payload"
            )
        if not revive_dead_delivery(core, grant, transaction, found):
            raise Conflict(f"the delivery {found.id} is {found.status}; only a dead delivery can be retried")
        queue_delivery(core, transaction, found)
        return _require_delivery(transaction, self.delivery_id)

    async def finish(self, core: Core, result: Delivery, operation_id: OperationId) -> Delivery:
        core.wake()
        return result


@dataclass(frozen=True, slots=True)
class DropDelivery(_DeliveryChange):
    """Drop a dead or pending delivery. Its payload is deleted at once, and its job is cancelled."""

    action: ClassVar[Action] = Action.MANAGE_DELIVERIES
    scope: Scope
    delivery_id: str

    def apply(self, transaction: Transaction, prepared: _Prepared) -> Delivery:
        core, grant = prepared
        found = _require_delivery(transaction, self.delivery_id)
        if found.status not in (HookDeliveryStatus.PENDING, HookDeliveryStatus.DEAD):
            raise Conflict(f"the delivery {found.id} is {found.status}; only a pending or dead delivery can be dropped")
        now = core.clock.now()
        transaction.end_delivery(found.id, HookDeliveryStatus.DROPPED, now, _DROPPED, None, tried=False)
        if (job := transaction.delivering(found.id)) is not None:
            transaction.cancel_job(job.id, now)
        transaction.append_event(activity_event(core, grant, EventKind.DELIVERY_DROPPED, found.id, {"to": found.to}))
        return _require_delivery(transaction, self.delivery_id)


def revive_dead_delivery(core: Core, grant: Grant, transaction: Transaction, delivery: Delivery) -> bool:
    """Make a dead delivery pending again; return False if it is not dead."""
    if not transaction.revive_delivery(delivery.id, core.clock.now()):
        return False
    transaction.append_event(activity_event(core, grant, EventKind.DELIVERY_RETRIED, delivery.id, {"to": delivery.to}))
    return True


def queue_delivery(
    core: Core, transaction: Transaction, delivery: Delivery, operation_id: OperationId | None = None
) -> None:
    """Queue a job that delivers it."""
    cause = Cause(operation_id, delivery.binding, delivery.hook, delivery.source)
    job = NewJob(JobKind.DELIVER, delivery.scope, (delivery.id,), cause)
    transaction.enqueue(JobId(core.ids.new(ids.JOB)), job, core.clock.now())


def _require_delivery(reader: Reader, delivery_id: str) -> Delivery:
    found = reader.delivery(DeliveryId(delivery_id))
    if found is None:
        raise NotFound(f"there is no delivery {delivery_id!r:.80} in this company; list its deliveries")
    return found


def _check_filter(criteria: DeliveryFilter) -> None:
    if not isinstance(criteria, DeliveryFilter):
        raise InvalidInput("filter", f"expected a DeliveryFilter, got {type(criteria).__name__}")
    kinds = {"status": HookDeliveryStatus, "kind": HookKind, "source_kind": SourceKind}
    for name, kind in kinds.items():
        if (value := getattr(criteria, name)) is not None:
            validation.check_enum(value, kind, name)
    if criteria.to is not None:
        checked_text(criteria.to, "to", max_chars=validation.MAX_NAME_CHARS)
