"""Port of deliveries: hooks on their way to a memory or a subscriber. A narrower grant reaches its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from holdfast.domain.contract import SourcePayload
from holdfast.domain.hooks import Delivery, DeliveryFilter, HookDeliveryStatus, NewDelivery
from holdfast.domain.ids import DeliveryId, OperationId
from holdfast.domain.scope import Scope


class DeliveryReader(Protocol):
    def find(self, delivery_id: str) -> Delivery | None: ...

    def find_by_hook(self, to: str, hook_id: str, scope: Scope) -> Delivery | None:
        """Return the delivery of this hook id in this memory, even of another run or issue."""

    def dead_letters(self, delivery_ids: Collection[str]) -> frozenset[str]:
        """Return those of these that are dead letters: not delivered unless revived."""

    def payload(self, delivery_id: str) -> SourcePayload | None:
        """Return the payload; None if it was delivered, skipped or dropped, or its subject matter was forgotten."""

    def page(self, wanted: DeliveryFilter, before: str | None, limit: int) -> Sequence[Delivery]:
        """Return deliveries with ids below `before`, newest first."""


class DeliveryWriter(DeliveryReader, Protocol):
    def add(self, new: NewDelivery) -> Delivery:
        """Add it, or return the one of this destination and hook id; `DuplicateId` if the grant cannot reach that."""

    def end(
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

    def resume(self, delivery_id: DeliveryId, new: NewDelivery) -> bool:
        """Resume a skipped delivery with the new one of the same hook, which is no longer skipped. It keeps its id and
        creation time. False if it is not skipped (another caller was faster), or had another payload.
        """

    def revive(self, delivery_id: DeliveryId, at: datetime) -> bool:
        """Make a dead one pending again; False if it is not dead."""
