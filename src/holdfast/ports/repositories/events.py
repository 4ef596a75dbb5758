"""Port of the event log of a space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.domain.events import Event, EventKind


class EventReader(Protocol):
    def page(self, limit: int, kinds: frozenset[EventKind] | None = None, before: str | None = None) -> Sequence[Event]:
        """Return events with ids below `before`, newest first."""


class EventWriter(EventReader, Protocol):
    def append(self, event: Event) -> None: ...

    def prune(self, space: str, keep: int) -> int:
        """Delete all but the newest `keep` events of the space; returns the number deleted."""
