"""Results of the control plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from holdfast.domain.bindings import Binding, ResolutionRule, Target
from holdfast.domain.contract import Capabilities
from holdfast.domain.events import EventKind
from holdfast.domain.ids import EventId, OperationId
from holdfast.domain.presentable import Presentable, PresentableList

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ProviderResponse(Presentable, Generic[T]):
    """The result of a provider. `dropped` counts returned records that are out of the call's scope."""

    binding: str
    provider: str
    operation_id: OperationId
    result: T
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class ResolvedBinding(Presentable):
    """The binding that serves a caller, and the rules that were checked. Never its configuration.

    `binding_key` is None if no binding serves it.
    """

    source: ResolutionRule
    checked: tuple[ResolutionRule, ...]
    binding_key: str | None = None
    provider: str | None = None
    enabled: bool = False
    capabilities: Capabilities | None = None


@dataclass(frozen=True, slots=True)
class ProviderInfo(Presentable):
    """An installed provider. `schema` is the JSON Schema of its configuration."""

    key: str
    description: str
    outside: bool
    capabilities: Capabilities
    schema: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProviderCheck:
    """A provider and its checked configuration, with defaults filled in.

    If a query was made: its duration, and the number of records returned.
    """

    provider: str
    outside: bool
    config: Mapping[str, Any]
    seconds: float | None = None
    snippets: int | None = None


@dataclass(frozen=True, slots=True)
class BindingList:
    """All bindings of a space, and their targets."""

    items: tuple[Binding, ...]
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class Activity(Presentable):
    """One administrative change. `details` are names, never values of a configuration."""

    id: EventId
    kind: EventKind
    at: datetime
    key: str | None
    details: Mapping[str, str | int | None]


@dataclass(frozen=True, slots=True)
class ActivityPage(PresentableList[Activity]):
    """A page of activities, newest first. `next_cursor` is None on the last page."""

    items: tuple[Activity, ...]
    next_cursor: str | None
