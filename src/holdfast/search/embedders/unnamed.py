"""Stands in for the embedder that a store's vectors are by, where nobody named it.

Whatever needs no vectors works as ever, and what is added waits for them. Nothing is embedded anew by an embedder that
nobody chose.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain.ranking import FloatArray
from holdfast.errors import EmbedderNotNamed
from holdfast.ports import Purpose


class UnnamedEmbedder:
    """Implements `ports.Embedder`, all but embedding."""

    dimensions = 0
    local = False

    def __init__(self, fingerprint: str, store: str) -> None:
        self.fingerprint = fingerprint
        self._store = store

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        raise self.missing()

    def missing(self) -> EmbedderNotNamed:
        return EmbedderNotNamed(
            f"{self._store} was embedded by {self.fingerprint:.80}, and no embedder is named now; name that one"
            " (embedder=, --embedder or HOLDFAST_EMBEDDER), or name static to have everything embedded anew"
        )

    async def close(self) -> None:
        return None
