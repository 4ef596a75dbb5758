"""LanceDB's hybrid search: its full-text index and its vectors, fused by its own reciprocal rank reranker.

One table per scope. The full-text index has its default settings (English stemming and stop words).
"""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from bench import peers
from bench.retrieval.datasets import Record
from bench.retrieval.systems.protocol import Hit, Setup


class LanceDB:
    embeds_itself = False

    def __init__(self, setup: Setup) -> None:
        self._database: Any = peers.lancedb(setup.directory)
        self.name = f"LanceDB {version('lancedb')} hybrid"
        self.embedder_name = setup.vectors.name
        self._vectors = setup.vectors
        self._tables: dict[str, Any] = {}

    def add(self, scope: str, records: Sequence[Record]) -> None:
        table = self._database.create_table(
            f"scope_{len(self._tables)}",
            data=[
                {
                    "id": record.id,
                    "text": record.text,
                    "sender": record.sender,
                    "timestamp": record.timestamp,
                    "session": record.session_id,
                    "vector": self._vectors.of(record.text),
                }
                for record in records
            ],
        )
        peers.lancedb_full_text(table)
        self._tables[scope] = table

    def search(self, scope: str, query: str, k: int) -> list[Hit]:
        search = peers.lancedb_hybrid(self._tables[scope], query, self._vectors.of(query))
        rows = search.limit(k).select(["id", "text"]).to_list()
        return [Hit(row["id"], row["text"]) for row in rows]

    def close(self) -> None:
        self._tables.clear()
