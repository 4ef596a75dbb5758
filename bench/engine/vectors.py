"""The one embedder of the run: Holdfast's static one, for every system, with queries remembered.

Texts that are added are embedded when they are added, so that adding is measured with it. Queries are embedded
beforehand, so that a search is measured without it. `surprises` counts queries that were not: it must stay 0.
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
        """A batch at once, as Holdfast embeds it."""
        if len(texts) == 1:
            return [self.of(texts[0])]
        return list(self._model.vectors(texts))

    @property
    def dims(self) -> int:
        return self._model.dimensions

    # What the library asks of an embedder.

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
        """Like the default embedder, which it stands for: blocking calls run in the thread that makes them."""
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
