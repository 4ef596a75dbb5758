"""The worker's side of a delivery: one attempt, through the gate, with its own operation row.

The attempt's outcome, the delivery's end and the job's end are one commit, under the job's fencing token. If the worker
dies before it, the operation's outcome stays `unknown`, and the next worker repeats the call with the same idempotency
id, by which the provider recognizes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from holdfast.control.binding_resolution import attribute_binding, read_resolution
from holdfast.control.dispatch import Also, call_provider
from holdfast.control.response_validation import validator
from holdfast.domain.access import SYSTEM, Action, authorize
from holdfast.domain.bindings import Binding, Resolution
from holdfast.domain.contract import CaptureRequest, CaptureResult, SourcePayload
from holdfast.domain.hooks import (
    MODES,
    Delivery,
    HookDeliveryStatus,
    HookEvent,
    SkipReason,
    binding_of,
    skip_reason,
    subscriber_of,
)
from holdfast.domain.ids import DeliveryId, OperationId
from holdfast.domain.jobs import Job, JobStatus
from holdfast.domain.operations import Attribution
from holdfast.domain.scope import Scope
from holdfast.errors import BindingDisabled, BindingNotFound, HoldfastError, LeaseLost, ProviderMisconfigured
from holdfast.ports import Reader, Transaction
from holdfast.runtime.attempts import AttemptFailed, Effect, Failure
from holdfast.runtime.gate import Call, CompositeRequest, Core, perform
from holdfast.runtime.worker import Handler

_FORGOTTEN = "forgotten"
_LOST = "worker_lost"


@dataclass(slots=True)
class _AttemptNotes:
    """Facts about a running attempt, for the record of its failure."""

    operation_id: OperationId | None = None
    reason: SkipReason | None = None  # set if the hook is no longer enabled


def delivery_handler() -> Handler:
    """Return the handler for jobs of the kind `deliver`."""
    return Handler(_deliver, _record_failure)


async def _deliver(core: Core, job: Job) -> Effect | None:
    grant = authorize(SYSTEM, Action.WORK, Scope(space=job.scope.space))
    found = await core.store.read(grant, lambda reader: _load_delivery(reader, job))
    if found is None:
        return lambda transaction: None
    delivery, payload = found
    if payload is None:
        return lambda transaction: transaction.deliveries.end(
            delivery.id, HookDeliveryStatus.DROPPED, core.clock.now(), _FORGOTTEN, None, tried=False
        )
    noted = _AttemptNotes()
    verb = _make_attempt(delivery, payload, job, noted)
    try:
        await perform(core, SYSTEM, verb.action, lambda: verb, space=delivery.scope.space)
    except LeaseLost:
        raise
    except HoldfastError as error:
        failed = AttemptFailed(error, noted, final=noted.reason is not None)
    else:
        return None
    # Raised outside the except block, so that an adapter's exception is not chained.
    raise failed


def _record_failure(transaction: Transaction, job: Job, failure: Failure) -> None:
    noted = failure.about if isinstance(failure.about, _AttemptNotes) else _AttemptNotes()
    for delivery_id in map(DeliveryId, job.record_ids):
        reason = noted.reason or failure.code or _LOST
        if failure.last:
            ended = (HookDeliveryStatus.DEAD, failure.at, reason, noted.operation_id)
            transaction.deliveries.end(delivery_id, *ended, tried=True)
        else:
            transaction.deliveries.note_attempt(delivery_id, failure.at, reason, noted.operation_id)


def _load_delivery(reader: Reader, job: Job) -> tuple[Delivery, SourcePayload | None] | None:
    """Load the delivery and its payload; None if it has ended meanwhile."""
    delivery = reader.deliveries.find(job.record_ids[0]) if job.record_ids else None
    if delivery is None or delivery.status is not HookDeliveryStatus.PENDING:
        return None
    return delivery, reader.deliveries.payload(delivery.id)


def _make_attempt(delivery: Delivery, payload: SourcePayload, job: Job, noted: _AttemptNotes) -> _Attempt:
    kind = _ToBinding if subscriber_of(delivery.to) is None else _ToSubscriber
    return kind(delivery.scope, delivery, payload, job, noted)


@dataclass(frozen=True, slots=True)
class _Attempt(CompositeRequest[None]):
    scope: Scope
    delivery: Delivery
    payload: SourcePayload
    job: Job
    noted: _AttemptNotes

    def attribution(self) -> Attribution:
        return Attribution(source=self.delivery.source, hook=self.delivery.hook)

    async def resolve_binding(self, call: Call, key: str | None) -> Resolution:
        """Read the current state of the binding that served when the hook was emitted."""
        try:
            return await call.read(lambda reader: read_resolution(reader, self.scope, key))
        except BindingNotFound:
            self.noted.reason = SkipReason.NO_BINDING
            raise

    def require_enabled(self, found: Resolution) -> Binding:
        """Return the binding if it still has the hook enabled; otherwise nothing is delivered."""
        kind = self.delivery.hook.kind
        self.noted.reason = skip_reason(found.binding, kind)
        binding = found.usable()
        if self.noted.reason is not None:
            raise BindingDisabled(f"the binding `{binding.key}` has {kind} disabled; enable it, and try again")
        return binding

    async def finish_if_cancelled(self, core: Core, call: Call) -> bool:
        """Return whether the delivery was dropped or forgotten meanwhile; if so, finish the job."""
        delivery = await call.read(lambda reader: reader.deliveries.find(self.delivery.id))
        if delivery is not None and delivery.status is HookDeliveryStatus.PENDING:
            return False
        call.attribute(provider_called=False)
        await call.write(lambda transaction: transaction.jobs.finish(self.job, JobStatus.SUCCEEDED, core.clock.now()))
        return True

    def finish_step(self, core: Core, call: Call) -> Callable[[Transaction], None]:
        """Return the step that ends delivery and job in the call's commit. It fails if the job's lease was lost."""

        def end(transaction: Transaction) -> None:
            now = core.clock.now()
            ended = (HookDeliveryStatus.DELIVERED, now, None, call.operation_id)
            transaction.deliveries.end(self.delivery.id, *ended, tried=True)
            transaction.jobs.finish(self.job, JobStatus.SUCCEEDED, now)

        return end


@dataclass(frozen=True, slots=True)
class _ToBinding(_Attempt):
    """Deliver to the binding chosen when the hook was emitted, in its current configuration."""

    action: ClassVar[Action] = Action.CAPTURE

    async def carry_out(self, core: Core, call: Call) -> None:
        self.noted.operation_id = call.operation_id
        found = await self.resolve_binding(call, binding_of(self.delivery.to))
        attribute_binding(call, found)
        binding = self.require_enabled(found)
        if await self.finish_if_cancelled(core, call):
            return
        await capture_delivery(core, call, binding, self.delivery, self.payload, self.finish_step(core, call))

    def record_count(self, result: None) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class _ToSubscriber(_Attempt):
    """Deliver to a subscriber if the binding still has the hook enabled. Not counted as the binding's outcome."""

    action: ClassVar[Action] = Action.DELIVER_HOOK

    def attribution(self) -> Attribution:
        return Attribution(source=self.delivery.source, hook=self.delivery.hook, provider_called=False)

    async def carry_out(self, core: Core, call: Call) -> None:
        self.noted.operation_id = call.operation_id
        if self.delivery.binding is not None:
            self.require_enabled(await self.resolve_binding(call, self.delivery.binding))
        name = subscriber_of(self.delivery.to) or ""
        subscribers = core.subscribers
        if subscribers is None or subscribers.handler(name) is None:
            raise ProviderMisconfigured(f"no subscriber {name!r} is installed where this worker runs; install it there")
        delivery = self.delivery
        if await self.finish_if_cancelled(core, call):
            return
        event = HookEvent(
            delivery.hook, delivery.scope, delivery.source, self.payload, delivery.hook.hook_id, delivery.binding
        )
        call.add_effect(self.finish_step(core, call))
        await call.run_external(lambda: subscribers.deliver(name, event))


async def capture_delivery(
    core: Core, call: Call, binding: Binding, delivery: Delivery, payload: SourcePayload, also: Also
) -> None:
    """Capture the payload through the binding. `also` runs in the commit that records it."""
    request = CaptureRequest(
        binding.key,
        delivery.scope,
        delivery.source,
        payload,
        delivery.hook,
        MODES[delivery.hook.kind],
        idempotency_id=delivery.hook.hook_id,
    )
    check = validator(CaptureResult)
    await call_provider(core, call, binding, lambda adapter: adapter.capture(request), check, also=also)
