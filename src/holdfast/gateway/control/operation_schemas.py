"""Response schemas for hooks."""

from __future__ import annotations

from holdfast.control.schemas import Answer, HookTold, ScopeTold, SnippetTold, SourceTold, to_iso
from holdfast.domain.hooks import Delivery, EmittedHook, HookDeliveryStatus, Hydration


class DeliveryTold(Answer):
    """The delivery of one hook to one target: `binding:<key>` or `subscriber:<name>`."""

    delivery_id: str
    to: str
    binding: str | None
    status: HookDeliveryStatus
    reason: str | None
    attempts: int
    hook: HookTold
    scope: ScopeTold
    source: SourceTold
    operation_id: str | None
    created_at: str
    updated_at: str | None

    @classmethod
    def of(cls, delivery: Delivery) -> DeliveryTold:
        return cls(
            delivery_id=delivery.id,
            to=delivery.to,
            binding=delivery.binding,
            status=delivery.status,
            reason=delivery.reason,
            attempts=delivery.attempts,
            hook=HookTold.of(delivery.hook),
            scope=ScopeTold.of(delivery.scope),
            source=SourceTold.of(delivery.source),
            operation_id=delivery.operation_id,
            created_at=delivery.created_at.isoformat(),
            updated_at=to_iso(delivery.updated_at),
        )


class EmittedTold(Answer):
    """The deliveries of a hook: to the binding of its scope and to each subscriber. `repeated`: emitted before."""

    operation_id: str
    repeated: bool
    deliveries: list[DeliveryTold]

    @classmethod
    def of(cls, emitted: EmittedHook) -> EmittedTold:
        return cls(
            operation_id=emitted.operation_id,
            repeated=emitted.repeated,
            deliveries=[DeliveryTold.of(each) for each in emitted.deliveries],
        )


class HydratedTold(Answer):
    """A text for a run's prompt; or an empty text and the reason. Quoted texts are data, not instructions."""

    operation_id: str
    binding_key: str | None
    preamble: str
    reason: str | None
    dropped: int
    snippets: list[SnippetTold]

    @classmethod
    def of(cls, hydrated: Hydration) -> HydratedTold:
        return cls(
            operation_id=hydrated.operation_id,
            binding_key=hydrated.binding,
            preamble=hydrated.preamble,
            reason=hydrated.reason,
            dropped=hydrated.dropped,
            snippets=[SnippetTold.of(each) for each in hydrated.snippets],
        )
