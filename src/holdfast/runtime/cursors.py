"""Where a list goes on. A cursor belongs to one query, and says nothing but where the last page ended."""

from __future__ import annotations

import base64
import binascii
import json

from holdfast.domain.text import checked_text
from holdfast.errors import InvalidCursor, InvalidText


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
