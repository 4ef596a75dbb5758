"""Metrics of memory operations for `/metrics`: calls by binding, query hits, failures and costs.

Labels are names of companies, bindings, providers and currencies, which operators chose; never content. Beyond a
maximum number of label sets, new ones are counted under `other`, so that new names cannot flood a monitoring system.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram

from holdfast.domain.costs import CostEvent
from holdfast.domain.jobs import Job, JobKind
from holdfast.domain.operations import QUESTIONS, TYPE_OF, Operation, Outcome, counts_in_metrics, is_recall

MOST_LABEL_SETS = 1_000  # per metric
OTHER = "other"
NO_BINDING = "none"
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

M = TypeVar("M")


class _CappedMetric(Generic[M]):
    """A metric with a limited number of label sets (cardinality limit)."""

    def __init__(self, labelled: Callable[..., M], names: int) -> None:
        self._labelled = labelled
        self._other = (OTHER,) * names
        self._known: dict[tuple[str, ...], M] = {}

    def of(self, *labels: str) -> M:
        found = self._known.get(labels)
        if found is None:
            chosen = labels if len(self._known) < MOST_LABEL_SETS else self._other
            found = self._labelled(*chosen)
            if chosen is labels:
                self._known[labels] = found
        return found


class MemoryCounters:
    """Implements `ports.observer.MetricsObserver`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, help_text: str, *labels: str) -> _CappedMetric[Counter]:
            metric = Counter(f"holdfast_memory_{name}", help_text, labels, registry=registry)
            return _CappedMetric(metric.labels, len(labels))

        self._operations = counter(
            "operations",
            "Memory calls by binding, type and outcome.",
            *("company", "binding", "type", "outcome"),
        )
        self._queries = counter("queries", "Answered queries by result: hit or empty.", "company", "result")
        self._recalls = counter("recalls", "Answered queries whose result goes to a model.", "company", "result")
        self._failures = counter("extraction_failures", "Extractions that failed their last attempt.", "company")
        self._dead = counter("dead_deliveries", "Hook deliveries that failed their last attempt.", "company")
        self._cost = counter(
            "cost_micros", "Cost of metered calls, in millionths of the currency unit.", "company", "currency"
        )
        self._seconds = _CappedMetric(
            Histogram(
                "holdfast_memory_operation_seconds",
                "Duration of memory calls in seconds, by provider.",
                ("provider", "type"),
                buckets=_BUCKETS,
                registry=registry,
            ).labels,
            2,
        )

    def on_operation(self, operation: Operation) -> None:
        if not counts_in_metrics(operation):
            return
        kind = TYPE_OF[operation.action]
        about, company = operation.attribution, operation.scope.space
        # A binding that was only named in a call and does not exist is user input, so it must not become a label.
        served = about if about is not None and about.provider is not None else None
        binding = NO_BINDING if served is None or served.binding is None else served.binding
        self._operations.of(company, binding, kind.value, operation.outcome.value).inc()
        if served is not None and served.provider is not None:
            self._seconds.of(served.provider, kind.value).observe(operation.duration_micros / 1e6)
        if operation.outcome is Outcome.SUCCEEDED and operation.action in QUESTIONS:
            result = "hit" if operation.touched else "empty"
            self._queries.of(company, result).inc()
            if is_recall(operation):
                self._recalls.of(company, result).inc()

    def on_costs(self, events: Sequence[CostEvent]) -> None:
        for event in events:
            self._cost.of(event.scope.space, event.currency).inc(event.amount_micros)

    def on_job_failed(self, job: Job, *, last: bool) -> None:
        if not last:
            return
        if job.kind in (JobKind.EXTRACT, JobKind.MAINTAIN):
            self._failures.of(job.scope.space).inc()
        elif job.kind is JobKind.DELIVER:
            self._dead.of(job.scope.space).inc()
