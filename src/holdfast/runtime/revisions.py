"""Revisions: a write based on an outdated one is refused, and a new one may repeat the text of an earlier one."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from holdfast.domain.arguments import whole_number
from holdfast.domain.checks import checked_whole
from holdfast.domain.memory import MemoryRecord
from holdfast.domain.results import Record
from holdfast.errors import RevisionConflict
from holdfast.ports import NewRevision

MAX_REVISION = 2**31
# The reason of a revision that only has further evidence.
RESTATED = "stated again"
_TICK = timedelta(microseconds=1)
ExpectedRevision = Annotated[int, whole_number(1, MAX_REVISION), "Fail if the record is at another revision."]


def validate_expected_revision(expected: int | None) -> None:
    if expected is not None:
        checked_whole(expected, "expected_revision", 1, MAX_REVISION)


def require_revision(found: Record, expected: int | None) -> None:
    """Refuse a write that expects another revision. None accepts any revision."""
    if expected not in (None, found.revision):
        raise RevisionConflict(f"{found.id} is at revision {found.revision}, not {expected}; read it again, then retry")


def time_after(now: datetime, old: Record) -> datetime:
    """Return a time after the replaced revision, also if the clock went backwards."""
    return max(now, old.recorded_at + _TICK)


def repeat_revision(
    current: MemoryRecord, now: datetime, author: str, reason: str | None, of: MemoryRecord | None = None
) -> NewRevision:
    """Return a revision after `current` that repeats it, or the earlier revision `of`: text, evidence and all else."""
    earlier = of or current
    return NewRevision(
        id=current.id,
        scope=earlier.scope,
        plane=earlier.plane,
        text=earlier.text,
        trust=earlier.trust,
        status=earlier.status,
        validity=earlier.validity,
        recorded_at=time_after(now, current),
        source=earlier.source,
        author=author,
        reason=reason,
        evidence=(),
        metadata=earlier.metadata,
        analysis=None,
        supersedes=current.revision,
        repeats=earlier.revision,
        contradicts=earlier.contradicts,
    )
