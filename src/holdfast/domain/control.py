"""What the control plane answers: what served a call, and what was left out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from holdfast.domain.bindings import Binding, Chosen, Target
from holdfast.domain.contract import Capabilities
from holdfast.domain.events import EventKind
from holdfast.domain.ids import EventId, OperationId

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answered(Generic[T]):
    """What a provider gave. `dropped` counts what it gave besides and was not its to give."""

    binding: str
    provider: str
    operation_id: OperationId
    result: T
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Resolved:
    """Which memory serves somebody, and what was looked at to find it. Never its configuration.

    Without a `binding_key`, nothing does.
    """

    source: Chosen
    checked: tuple[Chosen, ...]
    binding_key: str | None = None
    provider: str | None = None
    enabled: bool = False
    capabilities: Capabilities | None = None


@dataclass(frozen=True, slots=True)
class ProviderInfo:
    """A provider that is installed here. `schema` is of its configuration."""

    key: str
    description: str
    outside: bool
    capabilities: Capabilities
    schema: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProviderChecked:
    """A provider with the configuration that it would be bound with, defaults filled in.

    If it was asked: how long it took, and how many records it gave.
    """

    provider: str
    outside: bool
    config: Mapping[str, Any]
    seconds: float | None = None
    snippets: int | None = None


@dataclass(frozen=True, slots=True)
class BindingList:
    """All bindings of a company, and what they are bound to."""

    items: tuple[Binding, ...]
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class Activity:
    """One change of what serves whom. `details` are names, never values of a configuration."""

    id: EventId
    kind: EventKind
    at: datetime
    key: str | None
    details: Mapping[str, str | int | None]


@dataclass(frozen=True, slots=True)
class ActivityPage:
    """Newest first. `next_cursor` is None on the last page."""

    items: tuple[Activity, ...]
    next_cursor: str | None
