"""Observer port for metrics: called after a commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.domain.costs import CostEvent
from holdfast.domain.jobs import Job
from holdfast.domain.operations import Operation


class MetricsObserver(Protocol):
    """Called after the commit, in the calling thread. It must be fast, keep nothing of its arguments, and not raise."""

    def on_operation(self, operation: Operation) -> None:
        """A call has ended, with any outcome."""

    def on_costs(self, events: Sequence[CostEvent]) -> None:
        """These cost events were stored."""

    def on_job_failed(self, job: Job, *, last: bool) -> None:
        """An attempt of a job failed; after the `last` there is no other."""
