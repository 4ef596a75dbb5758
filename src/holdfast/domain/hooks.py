"""Hooks: events from outside that trigger memory, and the delivery of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from holdfast.domain.arguments import text_rule
from holdfast.domain.bindings import HOOKS_AT_FIRST, Binding
from holdfast.domain.contract import (
    MAX_NAME_CHARS,
    CaptureMode,
    HookContext,
    HookKind,
    Snippet,
    SourceKind,
    SourcePayload,
    SourceRef,
)
from holdfast.domain.ids import DeliveryId, OperationId
from holdfast.domain.presentable import Presentable, PresentableList
from holdfast.domain.scope import Scope

# Hooks that query memory. All others write to it.
ANSWERED = frozenset({HookKind.PRE_RUN_HYDRATE})
CAPTURED = frozenset(HookKind) - ANSWERED
# Manual notes are stored unchanged; the rest is evidence to extract memories from.
MODES: Mapping[HookKind, CaptureMode] = {
    kind: CaptureMode.RECORD if kind is HookKind.MANUAL_CAPTURE else CaptureMode.RESIDUE for kind in CAPTURED
}
NOWHERE = "binding"  # the destination of a hook that no binding serves
_TO_BINDING, _TO_SUBSCRIBER = "binding:", "subscriber:"


class HookDeliveryStatus(StrEnum):
    """The status of a delivery. `pending` ones are retried; `dead` ones (dead letters) wait for an operator."""

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
    """Return the key of the binding, if the destination is one."""
    return to.removeprefix(_TO_BINDING) if to.startswith(_TO_BINDING) else None


def subscriber_of(to: str) -> str | None:
    return to.removeprefix(_TO_SUBSCRIBER) if to.startswith(_TO_SUBSCRIBER) else None


def skip_reason(binding: Binding | None, kind: HookKind) -> SkipReason | None:
    """Return the reason to skip a hook for a binding, or None."""
    if binding is None:
        return SkipReason.NO_BINDING
    if not binding.enabled:
        return SkipReason.BINDING_DISABLED
    return None if binding.delivers(kind) else SkipReason.HOOK_DISABLED


def subscriber_skip_reason(binding: Binding | None, kind: HookKind) -> SkipReason | None:
    """Return the reason to skip a hook for its subscribers: the same as for the binding of its scope.

    Without a binding there is no switch, and the defaults of a new binding apply: runs are delivered, comments and
    documents are not.
    """
    if binding is None:
        return None if HOOKS_AT_FIRST[kind] else SkipReason.HOOK_DISABLED
    return skip_reason(binding, kind)


@dataclass(frozen=True, slots=True)
class Delivery(Presentable):
    """The delivery of one hook to one destination: `binding:<key>` or `subscriber:<name>`.

    A hook id is delivered to a destination once per memory: emitting it again returns the first delivery. The payload
    is stored apart, and only until it is delivered.
    """

    id: DeliveryId
    to: str
    hook: HookContext
    scope: Scope
    source: SourceRef
    status: HookDeliveryStatus
    created_at: datetime
    attempts: int = 0
    reason: str | None = None  # of a skip: `SkipReason`; else the last error's code
    operation_id: OperationId | None = None  # of the last attempt
    updated_at: datetime | None = None
    digest: str = ""  # of the payload: another one under the same hook id is a conflict; empty if it was forgotten
    binding: str | None = None  # the binding of the scope when the hook was emitted, whatever the destination


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """A delivery with its payload, which is deleted when the delivery ends or its subject matter is forgotten."""

    delivery: Delivery
    payload: SourcePayload | None


@dataclass(frozen=True, slots=True)
class DeliveryFilter:
    status: Annotated[HookDeliveryStatus | None, "In this status."] = None
    kind: Annotated[HookKind | None, "Of this kind of hook."] = None
    to: Annotated[str | None, text_rule(MAX_NAME_CHARS, "PLACE"), "To binding:KEY or subscriber:NAME."] = None
    source_kind: Annotated[SourceKind | None, "From this kind of source."] = None


@dataclass(frozen=True, slots=True)
class DeliveryPage(PresentableList[Delivery]):
    items: tuple[Delivery, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class HookEvent:
    """An event for a subscriber: delivered at least once, in no order. `idempotency_id` is the same each time.

    `binding` is the key of the scope's binding, which has this hook switched on; None if there is none.
    """

    hook: HookContext
    scope: Scope
    source: SourceRef
    payload: SourcePayload
    idempotency_id: str
    binding: str | None = None


@dataclass(frozen=True, slots=True)
class EmittedHook(Presentable):
    """The deliveries of a hook: to the binding of its scope, and to each subscriber.

    `repeated` if it had been emitted before, and there was nothing left to do.
    """

    operation_id: OperationId
    deliveries: tuple[Delivery, ...]
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Hydration(Presentable):
    """The memory for a run before it begins: a bounded preamble, or an empty one with the reason.

    The reason is a `SkipReason`, `nothing_found`, or an error code.
    """

    operation_id: OperationId
    preamble: str = ""
    snippets: tuple[Snippet, ...] = ()
    binding: str | None = None
    reason: str | None = None
    dropped: int = 0
