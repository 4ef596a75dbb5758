"""The plain hybrid that any search must beat: 0.7 of the cosine and 0.3 of BM25, both min-max normalized.

Everything is in NumPy arrays, and every record of the scope is scored.
"""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from bench.retrieval.datasets import Record
from bench.retrieval.embedders import FloatArray
from bench.retrieval.systems.protocol import Hit, Setup

_VECTOR_WEIGHT, _WORD_WEIGHT = 0.7, 0.3
_K1, _B = 1.5, 0.75
# Scripts without spaces have no word borders: each character is a term.
_TERM = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")


class _Index:
    """One scope's vectors, and its BM25 weights as a dense array of records by terms."""

    def __init__(self, records: Sequence[Record], vectors: FloatArray) -> None:
        self.records = records
        self.vectors = vectors
        counts = [Counter(_terms(record.text)) for record in records]
        self._column = {term: column for column, term in enumerate(sorted(set().union(*counts)))}
        frequency = np.zeros((len(records), len(self._column)), dtype=np.float32)
        for row, count in enumerate(counts):
            frequency[row, [self._column[term] for term in count]] = list(count.values())
        holders = (frequency > 0).sum(axis=0)
        lengths = frequency.sum(axis=1, keepdims=True)
        saturation = frequency + _K1 * (1 - _B + _B * lengths / lengths.mean())
        rarity = np.log(1 + (len(records) - holders + 0.5) / (holders + 0.5))
        self._weights = (rarity * frequency * (_K1 + 1) / saturation).astype(np.float32)

    def words(self, query: str) -> FloatArray:
        columns = [self._column[term] for term in _terms(query) if term in self._column]
        return np.asarray(self._weights[:, columns].sum(axis=1), dtype=np.float32)


class Plain:
    name = "plain 0.7 cosine / 0.3 BM25"
    embeds_itself = False

    def __init__(self, setup: Setup) -> None:
        self.embedder_name = setup.vectors.name
        self._vectors = setup.vectors
        self._scopes: dict[str, _Index] = {}

    def add(self, scope: str, records: Sequence[Record]) -> None:
        self._scopes[scope] = _Index(records, np.stack([self._vectors.of(record.text) for record in records]))

    def search(self, scope: str, query: str, k: int) -> list[Hit]:
        index = self._scopes[scope]
        cosine = index.vectors @ self._vectors.of(query)
        scores = _VECTOR_WEIGHT * _normalized(cosine) + _WORD_WEIGHT * _normalized(index.words(query))
        best = np.argsort(-scores, kind="stable")[:k]
        return [Hit(index.records[position].id, index.records[position].text) for position in best]

    def close(self) -> None:
        """Nothing to do: everything is in memory."""


def _terms(text: str) -> list[str]:
    return _TERM.findall(text.lower())


def _normalized(scores: FloatArray) -> FloatArray:
    """Scale to 0..1 over the scope; equal scores carry no information and become 0."""
    low, high = scores.min(), scores.max()
    return np.zeros_like(scores) if high == low else (scores - low) / (high - low)
