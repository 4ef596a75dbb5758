"""The run's one embedder: Holdfast's static embedder, for every system, with cached queries.

Added texts are embedded when they are added, so adding includes embedding. Queries are embedded beforehand, so searches
exclude it. `surprises` counts queries that were not cached: it must stay 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from holdfast.ports import Purpose
from holdfast.search.embedders.static import StaticEmbedder

FloatArray = npt.NDArray[np.float32]


class RunEmbedder:
    """Implements `holdfast.ports.Embedder`, and gives peers their vectors."""

    name = "static (wordllama, 256 dimensions)"

    def __init__(self) -> None:
        self._model = StaticEmbedder()
        self._queries: dict[str, FloatArray] = {}
        self.surprises = 0

    def prepare(self, queries: Iterable[str]) -> None:
        for query in queries:
            self._queries[query] = self._model.vectors([query])[0]

    def of(self, text: str) -> FloatArray:
        known = self._queries.get(text)
        return self._model.vectors([text])[0] if known is None else known

    def many(self, texts: Sequence[str]) -> list[FloatArray]:
        """Embed a batch at once, as Holdfast does."""
        if len(texts) == 1:
            return [self.of(texts[0])]
        return list(self._model.vectors(texts))

    @property
    def dims(self) -> int:
        return self._model.dimensions

    # The `Embedder` interface.

    @property
    def fingerprint(self) -> str:
        return self._model.fingerprint

    @property
    def dimensions(self) -> int:
        return self._model.dimensions

    @property
    def local(self) -> bool:
        return True

    @property
    def sync_safe(self) -> bool:
        """True, like the default embedder that it stands for: blocking calls run in the calling thread."""
        return self._model.sync_safe

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        if purpose is not Purpose.QUERY:
            return await self._model.embed(texts, purpose)
        if any(text not in self._queries for text in texts):
            self.surprises += 1
            return await self._model.embed(texts, purpose)
        return np.stack([self._queries[text] for text in texts])

    async def close(self) -> None:
        return None
