"""Who hears of what has happened, once it is written down: whatever counts and measures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.domain.costs import CostEvent
from holdfast.domain.jobs import Job
from holdfast.domain.operations import Operation


class Watcher(Protocol):
    """Told after the commit, in the thread that called: it is quick, keeps nothing of what it is told, and does not
    raise.
    """

    def operation(self, operation: Operation) -> None:
        """A call has ended, however it did."""

    def cost(self, events: Sequence[CostEvent]) -> None:
        """These are in the ledger."""

    def job_failed(self, job: Job, *, last: bool) -> None:
        """An attempt at background work came to nothing; after the `last` there is no other."""
