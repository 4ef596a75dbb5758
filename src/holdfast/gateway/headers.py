"""The headers that routes read."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Header
from starlette.responses import Response

from holdfast.errors import RevisionConflict

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=256,
        description="Makes a retry safe: the same key and body get the answer of the first call.",
    ),
]
IfMatch = Annotated[
    str | None, Header(max_length=1_000, description="The ETag of the revision that this is meant for.")
]
_TAG = re.compile(r'"([^"]*)"')  # a weak one never matches


def etag(record_id: str, revision: int) -> str:
    return f'"{record_id}.{revision}"'


def set_etag(response: Response, record_id: str, revision: int) -> None:
    response.headers["ETag"] = etag(record_id, revision)


def expected_revision(if_match: str | None, record_id: str) -> int | None:
    """The revision that If-Match names; None if any will do."""
    if if_match is None or if_match.strip() == "*":
        return None
    found = _TAG.fullmatch(if_match.strip())
    number = found.group(1).removeprefix(f"{record_id}.") if found else ""
    if not number.isdecimal() or len(number) > 9:
        raise RevisionConflict("If-Match names no revision of this memory; send the one ETag that GET answered")
    return int(number)
