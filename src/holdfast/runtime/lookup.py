"""`get`, `list` and `history`: records as they are stored."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import ClassVar

from holdfast.domain.access import Action, Grant
from holdfast.domain.checks import checked_whole
from holdfast.domain.ids import checked_id
from holdfast.domain.memory import OPEN_PLANES
from holdfast.domain.results import Page, Record
from holdfast.domain.scope import Scope
from holdfast.errors import NotFound
from holdfast.ports import ListFilter, Reader
from holdfast.runtime.cursors import decode_cursor, encode_cursor
from holdfast.runtime.gate import Core, Read
from holdfast.runtime.idempotency import digest_of
from holdfast.runtime.search import check_names

MAX_PAGE = 1_000


class _NothingToPrepare:
    """A verb that has nothing slow to prepare."""

    async def prepare(self, core: Core, grant: Grant) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Get(_NothingToPrepare, Read[None, Record]):
    """One memory or message by its id, now or `as_of` a time."""

    action: ClassVar[Action] = Action.GET
    scope: Scope
    record_id: str
    as_of: datetime | None = None

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
    """Every revision of a memory, oldest first, preceded by the message it replaced."""

    action: ClassVar[Action] = Action.HISTORY
    scope: Scope
    record_id: str

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
    """Records, newest first. A cursor belongs to one scope and filter, and reveals nothing about other records."""

    action: ClassVar[Action] = Action.LIST
    scope: Scope
    wanted: ListFilter = field(default_factory=ListFilter)
    limit: int = 50
    cursor: str | None = None

    def __post_init__(self) -> None:
        checked_whole(self.limit, "limit", 1, MAX_PAGE)
        check_names(sender=self.wanted.sender, source=self.wanted.source)
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
