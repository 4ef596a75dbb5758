"""Hooks: what sets memory off from outside, and what became of each delivery."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from holdfast.domain.bindings import HOOKS_AT_FIRST, Binding
from holdfast.domain.contract import CaptureMode, HookContext, HookKind, Snippet, SourceKind, SourcePayload, SourceRef
from holdfast.domain.ids import DeliveryId, OperationId
from holdfast.domain.scope import Scope

# What is asked of memory rather than given to it.
ANSWERED = frozenset({HookKind.PRE_RUN_HYDRATE})
CAPTURED = frozenset(HookKind) - ANSWERED
# What somebody notes by hand is to be kept as it is; the rest is evidence, to be learned from.
MODES: Mapping[HookKind, CaptureMode] = {
    kind: CaptureMode.RECORD if kind is HookKind.MANUAL_CAPTURE else CaptureMode.RESIDUE for kind in CAPTURED
}
NOWHERE = "binding"  # the place of a hook that no binding serves
_TO_BINDING, _TO_SUBSCRIBER = "binding:", "subscriber:"


class DeliveryStatus(StrEnum):
    """`pending` until it was delivered, tried again meanwhile; `dead` after the last try, until somebody acts."""

    PENDING = "pending"
    DELIVERED = "delivered"
    SKIPPED = "skipped"
    DEAD = "dead"
    DROPPED = "dropped"


class SkipReason(StrEnum):
    NO_BINDING = "no_binding"
    BINDING_DISABLED = "binding_disabled"
    HOOK_DISABLED = "hook_disabled"


def to_binding(key: str) -> str:
    return f"{_TO_BINDING}{key}"


def to_subscriber(name: str) -> str:
    return f"{_TO_SUBSCRIBER}{name}"


def binding_of(to: str) -> str | None:
    """The key of the binding that a place is, if it is one."""
    return to.removeprefix(_TO_BINDING) if to.startswith(_TO_BINDING) else None


def subscriber_of(to: str) -> str | None:
    return to.removeprefix(_TO_SUBSCRIBER) if to.startswith(_TO_SUBSCRIBER) else None


def why_not(binding: Binding | None, kind: HookKind) -> SkipReason | None:
    """What keeps a hook from a binding."""
    if binding is None:
        return SkipReason.NO_BINDING
    if not binding.enabled:
        return SkipReason.BINDING_DISABLED
    return None if binding.delivers(kind) else SkipReason.HOOK_DISABLED


def why_unheard(binding: Binding | None, kind: HookKind) -> SkipReason | None:
    """What keeps a hook from those who subscribed to it: whatever keeps it from the binding that serves its scope.

    Where nothing is bound there is no switch, and the ones that every binding begins with hold: a company without a
    memory may have its runs heard of, and has asked nobody to listen to comments.
    """
    if binding is None:
        return None if HOOKS_AT_FIRST[kind] else SkipReason.HOOK_DISABLED
    return why_not(binding, kind)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One hook on its way to one place: `binding:<key>`, or `subscriber:<name>`.

    A hook of the same id in the same memory goes to a place once: whoever emits it again gets the first delivery. What
    it carries is kept apart, and only until it was delivered.
    """

    id: DeliveryId
    to: str
    hook: HookContext
    scope: Scope
    source: SourceRef
    status: DeliveryStatus
    created_at: datetime
    attempts: int = 0
    reason: str | None = None  # of a skip: `SkipReason`; else the last error's code
    operation_id: OperationId | None = None  # of the last attempt
    updated_at: datetime | None = None
    digest: str = ""  # of the payload: another under the same hook id is a conflict; empty once it was forgotten
    binding: str | None = None  # what served the scope when the hook was emitted, whoever it goes to


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """With its payload, which goes when the delivery ends or what it is about is forgotten."""

    delivery: Delivery
    payload: SourcePayload | None


@dataclass(frozen=True, slots=True)
class DeliveryFilter:
    status: DeliveryStatus | None = None
    kind: HookKind | None = None
    to: str | None = None
    source_kind: SourceKind | None = None


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    items: tuple[Delivery, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class HookEvent:
    """What a subscriber is given: at least once, and in no order. `idempotency_id` is the same each time.

    `binding` is the key of what serves the scope, and has this hook switched on; None if nothing is bound there.
    """

    hook: HookContext
    scope: Scope
    source: SourceRef
    payload: SourcePayload
    idempotency_id: str
    binding: str | None = None


@dataclass(frozen=True, slots=True)
class Emitted:
    """Where a hook went: to what serves its scope, and to each subscriber.

    `repeated` if it had been emitted before, and there was nothing left to do.
    """

    operation_id: OperationId
    deliveries: tuple[Delivery, ...]
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Hydrated:
    """What a run is given of memory before it begins: a bounded text, or an empty one with the reason.

    The reason is a `SkipReason`, `nothing_found`, or the code of what went wrong on the way.
    """

    operation_id: OperationId
    preamble: str = ""
    snippets: tuple[Snippet, ...] = ()
    binding: str | None = None
    reason: str | None = None
    dropped: int = 0
