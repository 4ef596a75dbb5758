"""What a store keeps for the control plane.

All of it is of the grant's space, and only a grant over that whole space reaches it; but for bindings, targets and
prices, which any grant in the space reads, for costs, which any adds (whoever's call it was), and for operations,
deliveries and jobs, of which a narrower grant reaches its own, to read and to write.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from holdfast.domain.bindings import Binding, Target, TargetKind
from holdfast.domain.contract import SourcePayload
from holdfast.domain.costs import CostEvent, CostGroup, CostLine, FinanceEvent, Price
from holdfast.domain.hooks import Delivery, DeliveryFilter, DeliveryStatus, NewDelivery
from holdfast.domain.ids import DeliveryId, JobId, OperationId
from holdfast.domain.jobs import Job, JobFilter
from holdfast.domain.operations import MemoryMetrics, Operation, OperationFilter
from holdfast.domain.scope import Scope


class ControlReader(Protocol):
    def bindings(self, keys: Collection[str] | None = None) -> Sequence[Binding]:
        """All, or those of these keys, in the order of their keys. A space that never had any has `first_binding`. Any
        grant of it may ask."""

    def targets(self, of: Collection[str] | None = None) -> Sequence[Target]:
        """All, or those of these companies and agents; the company's first. A space that never had any binding has its
        company bound to the first. As `bindings`."""

    def operation(self, operation_id: str) -> Operation | None: ...

    def operations_page(self, wanted: OperationFilter, before: str | None, limit: int) -> Sequence[Operation]:
        """Newest first, with ids below `before`."""

    def metrics(self, since: datetime | None, until: datetime | None) -> MemoryMetrics: ...

    def job(self, job_id: str) -> Job | None: ...

    def jobs_page(self, wanted: JobFilter, now: datetime, before: str | None, limit: int) -> Sequence[Job]:
        """Newest first, with ids below `before`; `now` decides what is stuck."""

    def delivering(self, delivery_id: str) -> Job | None:
        """The attempt that is to deliver it, if one waits or is under way."""

    def tried_again(self, job_ids: Collection[str]) -> frozenset[str]:
        """Those of these after which there was another attempt."""

    def delivery(self, delivery_id: str) -> Delivery | None: ...

    def dead_deliveries(self, delivery_ids: Collection[str]) -> frozenset[str]:
        """Those of these that are dead: nobody delivers them any more, unless somebody revives them."""

    def delivery_of(self, to: str, hook_id: str, scope: Scope) -> Delivery | None:
        """The one that a hook of this id in this memory made, be it of another run or issue."""

    def payload_of(self, delivery_id: str) -> SourcePayload | None:
        """None if it was delivered, skipped, dropped, or is about something that was forgotten."""

    def deliveries_page(self, wanted: DeliveryFilter, before: str | None, limit: int) -> Sequence[Delivery]:
        """Newest first, with ids below `before`."""

    def prices(self) -> Sequence[Price]:
        """In the order of provider and model. Any grant of the space may ask."""

    def cost_events_page(self, before: str | None, limit: int) -> Sequence[CostEvent]: ...

    def finance_events_page(self, before: str | None, limit: int) -> Sequence[FinanceEvent]: ...

    def cost_summary(self, group: CostGroup, since: datetime | None, until: datetime | None) -> Sequence[CostLine]:
        """Of metered calls; dearest first, days in their order."""

    def finance_summary(self, since: datetime | None, until: datetime | None) -> Sequence[CostLine]:
        """Of flat fees, by provider."""


class ControlTransaction(Protocol):
    def add_binding(self, binding: Binding) -> None:
        """`BindingExists` if the company has one of that key. The first one of a space is written down beside it."""

    def put_binding(self, binding: Binding) -> None:
        """Replace the binding of that key: the first one of a space is written down by it.

        `RevisionConflict` unless what is there is the revision before.
        """

    def remove_binding(self, key: str, at: datetime) -> None:
        """With what was bound to it; `BindingNotFound` if there is none. Its operations stay, and the key is free."""

    def set_target(self, target: Target) -> None: ...

    def clear_target(self, kind: TargetKind, target_id: str) -> bool: ...

    def settle(self, operation: Operation) -> None:
        """Write down what came of an operation that was recorded as `unknown`; `RevisionConflict` if it is not."""

    def add_delivery(self, new: NewDelivery) -> Delivery:
        """Or the one that is there for this place and hook id; `DuplicateId` if that is out of the grant's reach."""

    def end_delivery(
        self,
        delivery_id: DeliveryId,
        status: DeliveryStatus,
        at: datetime,
        reason: str | None,
        operation_id: OperationId | None,
        *,
        tried: bool,
    ) -> None:
        """Its payload goes, unless it is dead: then somebody may want to try again. One that has ended stays so.

        If an attempt was made that came to this, it was `tried`, and the attempt is counted.
        """

    def note_attempt(
        self, delivery_id: DeliveryId, at: datetime, reason: str | None, operation_id: OperationId | None
    ) -> None:
        """An attempt that failed; there will be another."""

    def resume_delivery(self, delivery_id: DeliveryId, new: NewDelivery) -> bool:
        """One that was skipped goes the way of the new one, which is the same hook, wanted by now. It keeps its id and
        when it was made. False if it is not skipped (somebody was faster), or carried something else.
        """

    def revive_delivery(self, delivery_id: DeliveryId, at: datetime) -> bool:
        """A dead one, pending again; False if it is not dead."""

    def add_cost(self, event: CostEvent) -> None:
        """By any grant of the event's space: what a call cost is written down with the call."""

    def add_finance(self, event: FinanceEvent) -> None: ...

    def put_price(self, price: Price) -> None: ...

    def remove_price(self, provider: str, model: str) -> bool: ...

    def retry_job(self, job_id: JobId, now: datetime) -> Job | None:
        """A new attempt after one that failed or was cancelled, due at once; None if it did not end so, or was tried
        again already."""

    def cancel_job(self, job_id: JobId, now: datetime) -> Job | None:
        """From then on whoever is at work on it commits nothing. None if it had ended."""
