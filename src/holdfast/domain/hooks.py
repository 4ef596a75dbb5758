"""Hooks: what sets memory off from outside, and what became of each delivery."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from holdfast.domain.contract import HookContext, HookKind, SourceKind, SourcePayload, SourceRef
from holdfast.domain.ids import DeliveryId, OperationId
from holdfast.domain.scope import Scope


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


@dataclass(frozen=True, slots=True)
class Delivery:
    """One hook on its way to one place: `binding:<key>`, or `subscriber:<name>`.

    A hook of the same id goes to a place once: whoever emits it again gets the first delivery. What it carries is kept
    apart, and only until it was delivered.
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
