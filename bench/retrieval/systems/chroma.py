"""Chroma, persistent, with one collection per scope and cosine distance."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from bench import peers
from bench.retrieval.datasets import Record
from bench.retrieval.systems.protocol import Hit, Setup


class Chroma:
    embeds_itself = False

    def __init__(self, setup: Setup) -> None:
        self.name = f"Chroma {version('chromadb')}"
        self.embedder_name = setup.vectors.name
        self._vectors = setup.vectors
        self._client: Any = peers.chroma(setup.directory)
        self._collections: dict[str, Any] = {}

    def add(self, scope: str, records: Sequence[Record]) -> None:
        self._collections[scope] = peers.chroma_collection(self._client, f"scope-{len(self._collections)}")
        self._collections[scope].add(
            ids=[record.id for record in records],
            embeddings=[self._vectors.of(record.text) for record in records],
            documents=[record.text for record in records],
            metadatas=[
                {"sender": record.sender, "timestamp": record.timestamp, "session": record.session_id}
                for record in records
            ],
        )

    def search(self, scope: str, query: str, k: int) -> list[Hit]:
        found = self._collections[scope].query(
            query_embeddings=[self._vectors.of(query)], n_results=k, include=["documents"]
        )
        return [Hit(id_, text) for id_, text in zip(found["ids"][0], found["documents"][0], strict=True)]

    def close(self) -> None:
        self._client.close()
