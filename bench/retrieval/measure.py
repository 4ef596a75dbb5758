"""One system over one dataset: the run, and its times.

Systems that receive vectors are timed without embedding; the cost of embedding on this machine is measured separately,
one text at a time, and added for the figures "with embedding".
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np

from bench.retrieval.datasets import Dataset
from bench.retrieval.embedders import Model
from bench.retrieval.scoring import Ranked
from bench.retrieval.systems.protocol import System

TOP_K = 20
_EMBEDDING_SAMPLE = 200


@dataclass(frozen=True, slots=True)
class EmbeddingCost:
    """Milliseconds of embedding: each query by its text, and the mean of a sample of the records."""

    query_ms: dict[str, float]
    record_ms: float


@dataclass(frozen=True, slots=True)
class Timings:
    """Rates and percentiles. Those without embedding are None for a system that embeds by itself."""

    adds_per_second: float | None
    adds_per_second_with_embedding: float
    search_p50_ms: float | None
    search_p95_ms: float | None
    search_p50_ms_with_embedding: float
    search_p95_ms_with_embedding: float


@dataclass(frozen=True, slots=True)
class Run:
    ranked: Ranked
    timings: Timings


def embedding_cost(model: Model, dataset: Dataset) -> EmbeddingCost:
    records = list(islice(dataset.texts(), _EMBEDDING_SAMPLE))
    return EmbeddingCost(
        query_ms={query: _embedding_ms(model, [query]) for query in dataset.queries()},
        record_ms=_embedding_ms(model, records) / len(records),
    )


def run(system: System, dataset: Dataset, cost: EmbeddingCost) -> Run:
    """Add every scope, then ask every question in its scope."""
    started = time.perf_counter()
    for scope in dataset.scopes:
        system.add(scope.name, scope.records)
    add_seconds = time.perf_counter() - started
    ranked: Ranked = {}
    search_ms: list[float] = []
    for scope in dataset.scopes:
        for question in scope.questions:
            started = time.perf_counter()
            ranked[question.qid] = system.search(scope.name, question.query, TOP_K)
            search_ms.append((time.perf_counter() - started) * 1_000)
    return Run(ranked, _timings(system, dataset, cost, add_seconds, search_ms))


def _timings(
    system: System, dataset: Dataset, cost: EmbeddingCost, add_seconds: float, search_ms: list[float]
) -> Timings:
    records = sum(len(scope.records) for scope in dataset.scopes)
    given = not system.embeds_itself
    embedding_seconds = records * cost.record_ms / 1_000 if given else 0.0
    whole_ms = [
        ms + (cost.query_ms[query] if given else 0.0) for ms, query in zip(search_ms, dataset.queries(), strict=True)
    ]
    return Timings(
        adds_per_second=records / add_seconds if given else None,
        adds_per_second_with_embedding=records / (add_seconds + embedding_seconds),
        search_p50_ms=_percentile(search_ms, 50) if given else None,
        search_p95_ms=_percentile(search_ms, 95) if given else None,
        search_p50_ms_with_embedding=_percentile(whole_ms, 50),
        search_p95_ms_with_embedding=_percentile(whole_ms, 95),
    )


def _embedding_ms(model: Model, texts: Iterable[str]) -> float:
    started = time.perf_counter()
    for text in texts:
        model.embed(text)
    return (time.perf_counter() - started) * 1_000


def _percentile(values: list[float], percent: float) -> float:
    return float(np.percentile(values, percent))
