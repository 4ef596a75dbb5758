"""Holdfast through its public API on one dataset: added once, then reopened with each ranking's weights."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import holdfast
from bench.retrieval.datasets import Dataset
from bench.retrieval.embedders import FloatArray, Vectors
from bench.retrieval.kinds.compare import FULL, PLAIN, Quality
from bench.retrieval.scoring import Scorer
from bench.retrieval.systems.holdfast import added
from holdfast.ports import Purpose

_TOP_K = 10


class KeptEmbedder:
    """Implements `ports.Embedder` with vectors cached on disk: the next run embeds nothing again.

    For models that are slow to run. The static embedder is passed by name: it is as fast, and rankings know it.
    """

    def __init__(self, vectors: Vectors) -> None:
        self.fingerprint = vectors.name
        self.dimensions = vectors.dims
        self.local = True
        self._vectors = vectors

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        return np.stack(self._vectors.many(texts))

    async def close(self) -> None:
        """Nothing to do: the caller owns the vectors."""


def measured(dataset: Dataset, embedder: KeptEmbedder | str, scorer: Scorer) -> dict[str, Quality]:
    """Every ranking's scores for every counted question."""
    rankings = {FULL: None, **{name: holdfast.Weights.plain(*parts) for name, parts in PLAIN.items()}}
    with tempfile.TemporaryDirectory(prefix="bench-kinds-") as directory:
        store = Path(directory) / "memory.db"
        with holdfast.open(store, embedder=embedder) as memory:
            for scope in dataset.scopes:
                added(memory, scope.name, scope.records)
        return {name: _quality(store, embedder, weights, dataset, scorer) for name, weights in rankings.items()}


def _quality(
    store: Path, embedder: KeptEmbedder | str, weights: holdfast.Weights | None, dataset: Dataset, scorer: Scorer
) -> Quality:
    with holdfast.open(store, embedder=embedder, weights=weights) as memory:
        rows = [
            scorer.one(_ids(memory, question.query, scope.name), question.gold)
            for scope in dataset.scopes
            for question in scope.questions
            if question.counted
        ]
    return Quality(tuple(row["recall@10"] for row in rows), tuple(row["ndcg@10"] for row in rows))


def _ids(memory: holdfast.Memory, query: str, scope: str) -> list[str]:
    return [hit.external_id or "" for hit in memory.search(query, subject=scope, top_k=_TOP_K)]
