"""Writes that are meant for one revision: somebody read it, decided, and must not undo what came in between."""

from __future__ import annotations

from holdfast.domain.numbers import checked_whole
from holdfast.domain.results import Record
from holdfast.errors import RevisionConflict

_MOST_REVISIONS = 2**31


def checked_revision(expected: int | None) -> None:
    if expected is not None:
        checked_whole(expected, "expected_revision", 1, _MOST_REVISIONS)


def check_revision(found: Record, expected: int | None) -> None:
    """Refuse what was decided about another revision. Without one, any will do."""
    if expected not in (None, found.revision):
        raise RevisionConflict(
            f"{found.id} is at revision {found.revision}, not {expected}; read it again and decide anew"
        )
