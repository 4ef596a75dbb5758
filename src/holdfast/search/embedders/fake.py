"""An embedder for tests: hashes terms into a few dimensions. It compares words, not meaning, and is never the default.

Deterministic on every machine; texts that share words are near each other, others are not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holdfast.domain.ranking import FloatArray
from holdfast.ports import Purpose
from holdfast.search.analyzer import TextAnalyzer, unpack_terms


class FakeEmbedder:
    """Implements `ports.Embedder`."""

    def __init__(self, dimensions: int = 64, *, local: bool = True) -> None:
        self.dimensions = dimensions
        self.fingerprint = f"fake:{dimensions}:1"
        self._local = local
        self._analyzer = TextAnalyzer()

    @property
    def local(self) -> bool:
        return self._local

    @property
    def sync_safe(self) -> bool:
        return self._local and type(self).embed is FakeEmbedder.embed

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        return self.vectors(texts)

    async def close(self) -> None:
        return None

    def vectors(self, texts: Sequence[str]) -> FloatArray:
        """Embed synchronously, without an event loop."""
        found = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(found, texts, strict=True):
            for term, count in unpack_terms(self._analyzer.analyze(text).terms).items():
                row[term % self.dimensions] += count if term >> 63 else -count
            length = float(np.linalg.norm(row))
            if length:
                row /= length
            else:
                row[0] = 1
        return found
