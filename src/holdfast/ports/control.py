"""Store port of the control plane.

Everything belongs to the grant's space, and only a grant over the whole space reaches it. Exceptions: any grant in the
space reads bindings, targets and prices, and adds costs; a narrower grant reads and writes its own operations,
deliveries and jobs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from holdfast.domain.bindings import Binding, Target, TargetKind
from holdfast.domain.contract import SourcePayload
from holdfast.domain.costs import CostEvent, CostGroup, CostLine, FinanceEvent, Price
from holdfast.domain.hooks import Delivery, DeliveryFilter, HookDeliveryStatus, NewDelivery
from holdfast.domain.ids import DeliveryId, JobId, OperationId
from holdfast.domain.jobs import Job, JobFilter
from holdfast.domain.operations import MemoryMetrics, Operation, OperationFilter
from holdfast.domain.scope import Scope


class ControlReader(Protocol):
    def bindings(self, keys: Collection[str] | None = None) -> Sequence[Binding]:
        """Return all, or those of these keys, ordered by key. A space that never had any has `first_binding`. Any grant
        of the space may read them."""

    def targets(self, of: Collection[str] | None = None) -> Sequence[Target]:
        """Return all, or those of these companies and agents; the company's first. In a space that never had any
        binding, the company is bound to `first_binding`. Any grant of the space may read them."""

    def operation(self, operation_id: str) -> Operation | None: ...

    def operations_page(self, wanted: OperationFilter, before: str | None, limit: int) -> Sequence[Operation]:
        """Return operations with ids below `before`, newest first."""

    def metrics(self, since: datetime | None, until: datetime | None) -> MemoryMetrics: ...

    def job(self, job_id: str) -> Job | None: ...

    def jobs_page(self, wanted: JobFilter, now: datetime, before: str | None, limit: int) -> Sequence[Job]:
        """Return jobs with ids below `before`, newest first; `now` decides which are stuck."""

    def delivering(self, delivery_id: str) -> Job | None:
        """Return the queued or running job of a delivery, if any."""

    def tried_again(self, job_ids: Collection[str]) -> frozenset[str]:
        """Return those of these jobs that have a later attempt."""

    def delivery(self, delivery_id: str) -> Delivery | None: ...

    def dead_deliveries(self, delivery_ids: Collection[str]) -> frozenset[str]:
        """Return those of these that are dead letters: not delivered unless revived."""

    def delivery_of(self, to: str, hook_id: str, scope: Scope) -> Delivery | None:
        """Return the delivery of this hook id in this memory, even of another run or issue."""

    def payload_of(self, delivery_id: str) -> SourcePayload | None:
        """Return the payload; None if it was delivered, skipped or dropped, or its subject matter was forgotten."""

    def deliveries_page(self, wanted: DeliveryFilter, before: str | None, limit: int) -> Sequence[Delivery]:
        """Return deliveries with ids below `before`, newest first."""

    def prices(self) -> Sequence[Price]:
        """Return prices ordered by provider and model. Any grant of the space may read them."""

    def cost_events_page(self, before: str | None, limit: int) -> Sequence[CostEvent]: ...

    def finance_events_page(self, before: str | None, limit: int) -> Sequence[FinanceEvent]: ...

    def cost_summary(self, group: CostGroup, since: datetime | None, until: datetime | None) -> Sequence[CostLine]:
        """Sum metered calls by group: highest first, days in order."""

    def finance_summary(self, since: datetime | None, until: datetime | None) -> Sequence[CostLine]:
        """Sum flat fees by provider."""


class ControlTransaction(Protocol):
    def add_binding(self, binding: Binding) -> None:
        """Add a binding; raises `BindingExists` if its key is taken. Also stores the space's implicit first binding."""

    def put_binding(self, binding: Binding) -> None:
        """Replace the binding of that key; stores the implicit first binding of a space if it is that one.

        Raises `RevisionConflict` unless the stored one is the preceding revision (compare-and-set).
        """

    def remove_binding(self, key: str, at: datetime) -> None:
        """Remove it with its targets; raises `BindingNotFound` if missing. Its operations stay, its key is free."""

    def set_target(self, target: Target) -> None: ...

    def clear_target(self, kind: TargetKind, target_id: str) -> bool: ...

    def settle(self, operation: Operation) -> None:
        """Record the outcome of an operation whose outcome is `unknown`; raises `RevisionConflict` if it is not."""

    def add_delivery(self, new: NewDelivery) -> Delivery:
        """Add it, or return the one of this destination and hook id; `DuplicateId` if the grant cannot reach that."""

    def end_delivery(
        self,
        delivery_id: DeliveryId,
        status: HookDeliveryStatus,
        at: datetime,
        reason: str | None,
        operation_id: OperationId | None,
        *,
        tried: bool,
    ) -> None:
        """End a delivery and delete its payload, unless it is dead: then it may be retried. An ended one stays so.

        With `tried`, an attempt led to this, and is counted.
        """

    def note_attempt(
        self, delivery_id: DeliveryId, at: datetime, reason: str | None, operation_id: OperationId | None
    ) -> None:
        """Record a failed attempt that will be retried."""

    def resume_delivery(self, delivery_id: DeliveryId, new: NewDelivery) -> bool:
        """Resume a skipped delivery with the new one of the same hook, which is no longer skipped. It keeps its id and
        creation time. False if it is not skipped (another caller was faster), or had another payload.
        """

    def revive_delivery(self, delivery_id: DeliveryId, at: datetime) -> bool:
        """Make a dead one pending again; False if it is not dead."""

    def add_cost(self, event: CostEvent) -> None:
        """Add a cost, with any grant of the event's space: it commits together with its call."""

    def add_finance(self, event: FinanceEvent) -> None: ...

    def put_price(self, price: Price) -> None: ...

    def remove_price(self, provider: str, model: str) -> bool: ...

    def retry_job(self, job_id: JobId, now: datetime) -> Job | None:
        """Queue a new attempt, due now, after one that failed or was cancelled; None if it did not end so, or has been
        retried."""

    def cancel_job(self, job_id: JobId, now: datetime) -> Job | None:
        """Cancel a job; a running worker can no longer commit. None if it had ended."""
