"""A placeholder for a store's own embedder when none was named.

Calls that need no vectors work as usual, and new records wait for their vectors. A store is never embedded again with
an embedder that was not chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain.custom_embedder import DERIVED, NAMED
from holdfast.domain.ranking import FloatArray
from holdfast.errors import EmbedderNotNamed
from holdfast.ports import Purpose


class UnnamedEmbedder:
    """Implements `ports.Embedder`, except embedding."""

    dimensions = 0
    local = False

    def __init__(self, fingerprint: str, store: str) -> None:
        self.fingerprint = fingerprint
        self._store = store

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        raise self.missing_error()

    def missing_error(self) -> EmbedderNotNamed:
        kind, _, name = self.fingerprint.partition(":")
        if kind in (DERIVED, NAMED):
            return EmbedderNotNamed(
                f"{self._store} was embedded by {name.rsplit(':', 2)[0]:.80} of a Python program; search it by meaning"
                " there, with embedder= of holdfast.open, or here by words (method keyword), or name static to embed"
                " everything again"
            )
        return EmbedderNotNamed(
            f"{self._store} was embedded by {self.fingerprint:.80}, and no embedder is named now; name that one"
            " (embedder=, --embedder or HOLDFAST_EMBEDDER), or name static to embed everything again"
        )

    async def close(self) -> None:
        return None
