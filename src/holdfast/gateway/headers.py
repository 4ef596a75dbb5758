"""Request and response headers of the routes: idempotency key, If-Match and ETag."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Header

from holdfast.errors import RevisionConflict

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=256,
        description="Makes a retry safe: the same key and body get the response of the first call.",
    ),
]
IfMatch = Annotated[
    str | None,
    Header(max_length=1_000, description="The ETag of the revision to change; 412 if it is no longer current."),
]
_TAG = re.compile(r'"([^"]*)"')  # a weak ETag never matches


def etag(record_id: str, revision: int) -> str:
    return f'"{record_id}.{revision}"'


def expected_revision(if_match: str | None, record_id: str) -> int | None:
    """The revision in If-Match; None without the header or with `*`."""
    if if_match is None or if_match.strip() == "*":
        return None
    match = _TAG.fullmatch(if_match.strip())
    number = match.group(1).removeprefix(f"{record_id}.") if match else ""
    if not number.isdecimal() or len(number) > 9:
        raise RevisionConflict("If-Match is not a revision of this memory; send the ETag that GET returned")
    return int(number)
