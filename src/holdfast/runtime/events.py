"""`events`: read the event log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from holdfast.domain.access import Action
from holdfast.domain.contract import Cursor
from holdfast.domain.events import EventKind, EventPage
from holdfast.domain.scope import Scope
from holdfast.ports import Reader
from holdfast.runtime.cursors import PageLimit, PageRead
from holdfast.runtime.gate import Core
from holdfast.runtime.idempotency import digest_of


@dataclass(frozen=True, slots=True)
class ListEvents(PageRead[EventPage]):
    """List the event log, newest first: which records were written, merged and deleted. `space="*"` lists all."""

    action: ClassVar[Action] = Action.EVENTS
    scope: Scope
    kind: Annotated[EventKind | None, "Events of this kind."] = None
    limit: PageLimit = 50
    cursor: Cursor | None = None

    def apply(self, reader: Reader, prepared: Core) -> EventPage:
        kinds = None if self.kind is None else frozenset({self.kind})
        return EventPage(*self._page(reader.events.page(self.limit + 1, kinds, self._before())))

    def _query(self) -> str:
        return digest_of("events", self.scope.given(), self.kind)[:16]
