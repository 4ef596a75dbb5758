"""Compare-and-set on revisions: a write based on an outdated revision is refused."""

from __future__ import annotations

from typing import Annotated

from holdfast.domain.arguments import whole_number
from holdfast.domain.checks import checked_whole
from holdfast.domain.results import Record
from holdfast.errors import RevisionConflict

_MOST_REVISIONS = 2**31
ExpectedRevision = Annotated[int, whole_number(1, _MOST_REVISIONS), "Fail if the record is at another revision."]


def validate_expected_revision(expected: int | None) -> None:
    if expected is not None:
        checked_whole(expected, "expected_revision", 1, _MOST_REVISIONS)


def require_revision(found: Record, expected: int | None) -> None:
    """Refuse a write that expects another revision. None accepts any revision."""
    if expected not in (None, found.revision):
        raise RevisionConflict(f"{found.id} is at revision {found.revision}, not {expected}; read it again, then retry")
