"""Where a list goes on. A cursor belongs to one query, and says nothing but where the last page ended."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Protocol, TypeVar

from holdfast.domain.numbers import checked_whole
from holdfast.domain.text import checked_text
from holdfast.errors import InvalidCursor, InvalidText


class _Named(Protocol):
    @property
    def id(self) -> str: ...


N = TypeVar("N", bound=_Named)


class Paged:
    """What every verb has that reads a list page by page. One more is read than is shown: it tells whether to go on."""

    __slots__ = ()
    cursor: str | None
    limit: int

    def _query(self) -> str:
        """Tells this list from another: a cursor goes on with the same one only."""
        raise NotImplementedError

    def _check_page(self, most: int) -> None:
        checked_whole(self.limit, "limit", 1, most)
        self._before()

    def _before(self) -> str | None:
        """Where the page before ended; None on the first."""
        return None if self.cursor is None else place_of(self.cursor, self._query())

    def _page(self, found: Sequence[N]) -> tuple[tuple[N, ...], str | None]:
        items = tuple(found[: self.limit])
        more = len(found) > self.limit
        return items, cursor_after(self._query(), items[-1].id) if more else None


def cursor_after(query: str, last: str) -> str:
    payload = json.dumps([query, last], separators=(",", ":"))
    return base64.urlsafe_b64encode(payload.encode()).decode().rstrip("=")


def place_of(cursor: str, query: str) -> str:
    """The last item of the page before, or `InvalidCursor`."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        of, last = json.loads(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
        place = checked_text(last, "cursor")
    except (ValueError, TypeError, AttributeError, binascii.Error, RecursionError, InvalidText):
        raise InvalidCursor("cursor", "is malformed; pass on the `next_cursor` of a page unchanged") from None
    if of != query:
        raise InvalidCursor("cursor", "belongs to another query; start that one from its first page")
    return place
