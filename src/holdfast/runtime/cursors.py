"""Cursors for keyset pagination. A cursor belongs to one query and holds only the position where a page ended."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Annotated, Protocol, TypeVar

from holdfast.domain.access import Grant
from holdfast.domain.arguments import check_arguments, whole_number
from holdfast.domain.checks import checked_text
from holdfast.errors import InvalidCursor, InvalidText
from holdfast.runtime.requests import Core, Read


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


N = TypeVar("N", bound=_HasId)
R = TypeVar("R")
MAX_PAGE = 1_000
PageLimit = Annotated[int, whole_number(1, MAX_PAGE), "At most N."]


class Pagination:
    """Mixin of verbs that return pages. They read one row more than the limit to see if there is a next page."""

    __slots__ = ()
    cursor: str | None
    limit: int

    def _query(self) -> str:
        """Identifies the query: a cursor is only valid for the same one."""
        raise NotImplementedError

    def _before(self) -> str | None:
        """The position where the previous page ended; None for the first page."""
        return None if self.cursor is None else decode_cursor(self.cursor, self._query())

    def _page(self, rows: Sequence[N]) -> tuple[tuple[N, ...], str | None]:
        items = tuple(rows[: self.limit])
        more = len(rows) > self.limit
        return items, encode_cursor(self._query(), self._position(items[-1].id)) if more else None

    def _position(self, last_id: str) -> str:
        """The position of a page's last item in the query."""
        return last_id


class PageRead(Pagination, Read[Core, R]):
    """A read of one page with nothing slow to prepare. Its arguments obey the rules that they declare."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check_arguments(self)
        self._before()

    async def prepare(self, core: Core, grant: Grant) -> Core:
        return core

    def record_count(self, result: R) -> int:
        return len(result.items)  # type: ignore[attr-defined]


def encode_cursor(query: str, last: str) -> str:
    payload = json.dumps([query, last], separators=(",", ":"))
    return base64.urlsafe_b64encode(payload.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, query: str) -> str:
    """Decode a cursor to the last item of the previous page, or raise `InvalidCursor`."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        cursor_query, last = json.loads(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
        place = checked_text(last, "cursor")
    except (ValueError, TypeError, AttributeError, binascii.Error, RecursionError, InvalidText):
        raise InvalidCursor("cursor", "is malformed; pass on the `next_cursor` of a page unchanged") from None
    if cursor_query != query:
        raise InvalidCursor("cursor", "belongs to another query; start that one from its first page")
    return place
