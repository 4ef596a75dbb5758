"""`get`, `list` and `history`: records as they are stored."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

from holdfast.domain.access import Action
from holdfast.domain.arguments import GROUP
from holdfast.domain.contract import Cursor
from holdfast.domain.ids import Id
from holdfast.domain.memory import OPEN_PLANES
from holdfast.domain.results import Page, Record
from holdfast.domain.scope import Scope
from holdfast.domain.search import AsOf
from holdfast.errors import NotFound
from holdfast.ports import ListFilter, Reader
from holdfast.runtime.cursors import PageLimit, PageRead
from holdfast.runtime.gate import Core
from holdfast.runtime.idempotency import digest_of
from holdfast.runtime.requests import SimpleRead


@dataclass(frozen=True, slots=True)
class Get(SimpleRead[Record]):
    """Get a memory or message by its id."""

    action: ClassVar[Action] = Action.GET
    scope: Scope
    record_id: Id
    as_of: AsOf | None = None

    def apply(self, reader: Reader, prepared: Core) -> Record:
        found = reader.records.find(self.record_id, self.as_of)
        if found is None:
            when = f" as of {self.as_of:%Y-%m-%d %H:%M:%S}" if self.as_of else ""
            raise NotFound(f"there is no memory or message {self.record_id!r:.80} in this scope{when}")
        return found[1]

    def record_count(self, result: Record) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class GetHistory(SimpleRead[tuple[Record, ...]]):
    """List every revision of a memory, oldest first, after the message that it replaced, if any.

    That message's id gives the same result.
    """

    action: ClassVar[Action] = Action.HISTORY
    scope: Scope
    record_id: Id

    def apply(self, reader: Reader, prepared: Core) -> tuple[Record, ...]:
        found = reader.records.revisions(self.record_id)
        if not found:
            raise NotFound(f"there is no memory or message {self.record_id!r:.80} in this scope")
        return tuple(found)

    def record_count(self, result: tuple[Record, ...]) -> int:
        return len(result)


@dataclass(frozen=True, slots=True)
class List(PageRead[Page]):
    """List memories and messages, newest first, page by page. A cursor is valid for the same scope and filter."""

    action: ClassVar[Action] = Action.LIST
    scope: Scope
    filters: Annotated[ListFilter, GROUP] = field(default_factory=ListFilter)
    limit: PageLimit = 50
    cursor: Cursor | None = None

    def apply(self, reader: Reader, prepared: Core) -> Page:
        record_filter = self.filters
        if record_filter.planes is None:
            record_filter = replace(record_filter, planes=OPEN_PLANES)
        return Page(*self._page(reader.records.page(record_filter, self._before(), self.limit + 1)))

    def _position(self, last_id: str) -> str:
        return last_id.partition("_")[2]

    def _query(self) -> str:
        return self.query_digest()

    def query_digest(self) -> str:
        """Identifies the query that a cursor belongs to."""
        return digest_of(self.scope.given(), _shallow(self.filters) | {"planes": sorted(self.filters.planes or ())})[
            :16
        ]


def _shallow(wanted: ListFilter) -> dict[str, object]:
    return {name: getattr(wanted, name) for name in wanted.__slots__}
