"""Hooks: host events are delivered to memory and to subscribers.

A hook goes to the binding that serves its scope and to each subscriber: one delivery each, recorded in the call's
commit. A hook that is disabled at that binding goes to no one. Our own store captures it in the same commit; workers
make external deliveries (`delivery_worker`), at least once, with the hook's id as idempotency key. A hook of the same
id is delivered to the same place once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, ClassVar

from holdfast.control.binding_resolution import attribute_binding, read_resolution, require_providers
from holdfast.control.company_requests import CompanyRequest
from holdfast.control.deliveries import queue_delivery
from holdfast.control.delivery_worker import capture_delivery
from holdfast.control.validation import Payload, Source, check_source_company
from holdfast.domain import ids
from holdfast.domain.access import Action
from holdfast.domain.bindings import Binding, BindingKey, Resolution
from holdfast.domain.contract import HookContext, HookKind, SourcePayload, SourceRef
from holdfast.domain.hooks import (
    ANSWERED,
    NOWHERE,
    Delivery,
    EmittedHook,
    HookDeliveryStatus,
    NewDelivery,
    SkipReason,
    skip_reason,
    subscriber_skip_reason,
    to_binding,
    to_subscriber,
)
from holdfast.domain.ids import DeliveryId, Id
from holdfast.domain.operations import Attribution
from holdfast.errors import Conflict, IdempotencyConflict, InvalidInput, UnknownProvider
from holdfast.ports import Transaction
from holdfast.runtime.gate import Call, CompositeRequest, Core
from holdfast.runtime.idempotency import digest_of


@dataclass(frozen=True, slots=True)
class EmitHook(CompanyRequest, CompositeRequest[EmittedHook]):
    """Emit an event. The binding that serves the scope captures it if that hook is enabled there.

    Its destinations are decided now; a disabled one is recorded as skipped, without the payload. It goes out if the
    hook is enabled and emitted again. Another payload under the same `hook_id` is a conflict.
    """

    action: ClassVar[Action] = Action.DELIVER_HOOK
    kind: Annotated[HookKind, "The kind of hook, such as post_run_capture."]
    hook_id: Annotated[Id, "The event's own id: emitted again, it is delivered once."]
    source: Source
    payload: Payload
    binding_key: BindingKey | None = None
    triggered_at: Annotated[datetime | None, "The time of the event; now by default."] = None

    def __post_init__(self) -> None:
        CompanyRequest.__post_init__(self)
        if self.kind in ANSWERED:
            raise InvalidInput("kind", f"{self.kind} carries no payload; call hydrate to get its preamble")
        check_source_company(self.source, self.scope)

    def attribution(self) -> Attribution:
        return Attribution(source=self.source)

    async def carry_out(self, core: Core, call: Call) -> EmittedHook:
        at = self.triggered_at or core.clock.now()
        hook = HookContext(self.kind, self.hook_id, at, self.scope.agent, self.scope.run)
        call.attribute(hook=hook)
        found = await call.read(lambda reader: read_resolution(reader, self.scope, self.binding_key))
        attribute_binding(call, found)
        deliveries = self._build_deliveries(core, hook, found)
        existing = await call.read(
            lambda reader: [
                reader.deliveries.find_by_hook(each.delivery.to, self.hook_id, self.scope) for each in deliveries
            ]
        )
        new: list[NewDelivery] = []
        before: list[Delivery] = []
        for each, known in zip(deliveries, existing, strict=True):
            _check_same(each.delivery, known)
            if known is None or _needs_delivery(each.delivery, known):
                new.append(each)
            else:
                before.append(known)
        if not new:
            call.attribute(provider_called=False)
            return EmittedHook(call.operation_id, tuple(before), repeated=True)
        stored = await self._deliver(core, call, found.binding, hook, new)
        return EmittedHook(call.operation_id, (*stored, *before))

    async def _deliver(
        self, core: Core, call: Call, binding: Binding | None, hook: HookContext, new: Sequence[NewDelivery]
    ) -> Sequence[Delivery]:
        stored: list[Delivery] = []

        def also(transaction: Transaction) -> None:
            stored[:] = [self._store_delivery(core, call, transaction, each) for each in new]

        here = [each for each in new if each.delivery.status is HookDeliveryStatus.DELIVERED]
        if here and binding is not None:
            await capture_delivery(core, call, binding, here[0].delivery, self.payload, also)
        else:
            call.attribute(provider_called=False)  # the worker that delivers it calls the provider
            await call.write(also)
        if any(each.status is HookDeliveryStatus.PENDING for each in stored):
            core.wake()
        return stored

    def _build_deliveries(self, core: Core, hook: HookContext, found: Resolution) -> list[NewDelivery]:
        """Build one delivery for the binding that serves the scope and one per subscriber; skipped if disabled."""
        places = [_destination(core, found, self.kind)]
        if core.subscribers is not None:
            unheard = subscriber_skip_reason(found.binding, self.kind)
            status = HookDeliveryStatus.PENDING if unheard is None else HookDeliveryStatus.SKIPPED
            places += [(to_subscriber(name), status, unheard) for name in core.subscribers.names_for(self.kind)]
        served = None if found.binding is None else found.binding.key
        return [self._build_delivery(core, hook, served, *place) for place in places]

    def _build_delivery(
        self,
        core: Core,
        hook: HookContext,
        served: str | None,
        to: str,
        status: HookDeliveryStatus,
        reason: SkipReason | None,
    ) -> NewDelivery:
        now = core.clock.now()
        delivery = Delivery(
            id=DeliveryId(core.ids.new(ids.DELIVERY)),
            to=to,
            hook=hook,
            scope=self.scope,
            source=self.source,
            status=status,
            created_at=now,
            attempts=int(status is HookDeliveryStatus.DELIVERED),
            reason=reason,
            digest=digest_of(self.kind, self.scope.given(), _field_values(self.source), _field_values(self.payload)),
            binding=served,
        )
        return NewDelivery(delivery, self.payload if status is HookDeliveryStatus.PENDING else None)

    def _store_delivery(self, core: Core, call: Call, transaction: Transaction, new: NewDelivery) -> Delivery:
        ended = new.delivery.status is HookDeliveryStatus.DELIVERED
        own = replace(new.delivery, operation_id=call.operation_id if ended else None)
        put = transaction.deliveries.add(NewDelivery(own, new.payload))
        if put.id != own.id:
            _check_same(own, put)
            if not _needs_delivery(own, put) or not transaction.deliveries.resume(
                put.id, NewDelivery(own, new.payload)
            ):
                if ended and put.status is HookDeliveryStatus.DROPPED:
                    raise Conflict(f"the delivery {put.id} was forgotten meanwhile; nothing of it was stored")
                return put  # a concurrent call was faster
            own = replace(own, id=put.id, created_at=put.created_at, updated_at=own.created_at)
        if own.status is HookDeliveryStatus.PENDING:
            queue_delivery(core, transaction, own, call.operation_id)
        return own


def _destination(core: Core, found: Resolution, kind: HookKind) -> tuple[str, HookDeliveryStatus, SkipReason | None]:
    """Return the destination, status and skip reason. Our own store captures at once, hence `delivered`."""
    binding = found.binding
    reason = skip_reason(binding, kind)
    to = NOWHERE if binding is None else to_binding(binding.key)
    if binding is None or reason is not None:
        return to, HookDeliveryStatus.SKIPPED, reason
    return to, HookDeliveryStatus.PENDING if _is_outside(core, binding) else HookDeliveryStatus.DELIVERED, None


def _is_outside(core: Core, binding: Binding) -> bool:
    try:
        return require_providers(core).get(binding.provider).outside
    except UnknownProvider:
        # It may be installed where the worker runs; if not, the delivery's failure records it.
        return True


def _needs_delivery(own: Delivery, known: Delivery | None) -> bool:
    """True if it is new, or was skipped and its hook is enabled by now."""
    if known is None:
        return True
    return (
        known.status is HookDeliveryStatus.SKIPPED
        and known.digest != ""
        and own.status is not HookDeliveryStatus.SKIPPED
    )


def _check_same(own: Delivery, known: Delivery | None) -> None:
    # A forgotten delivery has no digest to compare.
    if known is not None and known.digest and known.digest != own.digest:
        raise IdempotencyConflict("hook_id: this id was already emitted with other content; give each event its own id")


def _field_values(value: SourceRef | SourcePayload) -> list[object]:
    return [getattr(value, name) for name in value.__slots__]
