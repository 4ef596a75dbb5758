"""Chroma, persistent: one collection with cosine distance, the user as metadata."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from bench import peers
from bench.engine.systems.protocol import TOP_K, Place


class Chroma:
    note = "persistent client"

    def __init__(self, place: Place) -> None:
        self.name = f"Chroma {version('chromadb')}"
        self._embedder = place.embedder
        self._client: Any = peers.chroma(place.directory)
        self._collection: Any = peers.chroma_collection(self._client, "memories")

    def add(self, user: str, texts: Sequence[str]) -> None:
        self._collection.add(
            ids=[uuid.uuid4().hex for _ in texts],
            embeddings=self._embedder.many(texts),
            documents=list(texts),
            metadatas=[{"user": user}] * len(texts),
        )

    def settle(self) -> None:
        """Nothing to do."""

    def search(self, user: str, query: str) -> int:
        found = self._collection.query(
            query_embeddings=[self._embedder.of(query)], n_results=TOP_K, where={"user": user}, include=["documents"]
        )
        return len(found["ids"][0])

    def close(self) -> None:
        self._client.close()
