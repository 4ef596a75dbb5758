"""`get`, `list` and `history`: records as they are stored."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

from holdfast.domain.access import Action, Grant
from holdfast.domain.arguments import GROUP
from holdfast.domain.checks import checked_flag, checked_whole
from holdfast.domain.ids import Id, checked_id
from holdfast.domain.memory import OPEN_PLANES
from holdfast.domain.results import Page, Record
from holdfast.domain.scope import Scope
from holdfast.domain.search import AsOf
from holdfast.errors import NotFound
from holdfast.ports import ListFilter, Reader
from holdfast.runtime.cursors import MAX_PAGE, Cursor, PageLimit, decode_cursor, encode_cursor
from holdfast.runtime.gate import Core, Read
from holdfast.runtime.idempotency import digest_of
from holdfast.runtime.search import check_names


class _NothingToPrepare:
    """A verb that has nothing slow to prepare."""

    async def prepare(self, core: Core, grant: Grant) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Get(_NothingToPrepare, Read[None, Record]):
    """Get a memory or message by its id."""

    action: ClassVar[Action] = Action.GET
    scope: Scope
    record_id: Id
    as_of: AsOf | None = None

    def __post_init__(self) -> None:
        checked_id(self.record_id, "record_id")

    def apply(self, reader: Reader, prepared: None) -> Record:
        found = reader.records.find(self.record_id, self.as_of)
        if found is None:
            when = f" as of {self.as_of:%Y-%m-%d %H:%M:%S}" if self.as_of else ""
            raise NotFound(f"there is no memory or message {self.record_id!r:.80} in this scope{when}")
        return found[1]

    def record_count(self, result: Record) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class GetHistory(_NothingToPrepare, Read[None, tuple[Record, ...]]):
    """List every revision of a memory, oldest first, after the message that it replaced, if any.

    That message's id gives the same result.
    """

    action: ClassVar[Action] = Action.HISTORY
    scope: Scope
    record_id: Id

    def __post_init__(self) -> None:
        checked_id(self.record_id, "record_id")

    def apply(self, reader: Reader, prepared: None) -> tuple[Record, ...]:
        found = reader.records.revisions(self.record_id)
        if not found:
            raise NotFound(f"there is no memory or message {self.record_id!r:.80} in this scope")
        return tuple(found)

    def record_count(self, result: tuple[Record, ...]) -> int:
        return len(result)


@dataclass(frozen=True, slots=True)
class List(_NothingToPrepare, Read[None, Page]):
    """List memories and messages, newest first, page by page. A cursor is valid for the same scope and filter."""

    action: ClassVar[Action] = Action.LIST
    scope: Scope
    wanted: Annotated[ListFilter, GROUP] = field(default_factory=ListFilter)
    limit: PageLimit = 50
    cursor: Cursor | None = None

    def __post_init__(self) -> None:
        checked_whole(self.limit, "limit", 1, MAX_PAGE)
        check_names(sender=self.wanted.sender, source=self.wanted.source)
        checked_flag(self.wanted.unsealed, "unsealed")
        if self.cursor is not None:
            decode_cursor(self.cursor, self.query_digest())

    def apply(self, reader: Reader, prepared: None) -> Page:
        record_filter = self.wanted
        if record_filter.planes is None:
            record_filter = replace(record_filter, planes=OPEN_PLANES)
        before = None if self.cursor is None else decode_cursor(self.cursor, self.query_digest())
        rows = reader.records.page(record_filter, before, self.limit + 1)
        items = tuple(rows[: self.limit])
        more = len(rows) > self.limit
        return Page(items, encode_cursor(self.query_digest(), items[-1].id.partition("_")[2]) if more else None)

    def record_count(self, result: Page) -> int:
        return len(result.items)

    def query_digest(self) -> str:
        """Identifies the query that a cursor belongs to."""
        return digest_of(self.scope.given(), _shallow(self.wanted) | {"planes": sorted(self.wanted.planes or ())})[:16]


def _shallow(wanted: ListFilter) -> dict[str, object]:
    return {name: getattr(wanted, name) for name in wanted.__slots__}
