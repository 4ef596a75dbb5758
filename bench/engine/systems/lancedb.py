"""LanceDB: one table, the user as a column, hybrid search with its own fusion, filtered before the search."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from bench import peers
from bench.engine.systems.protocol import TOP_K, Place

_TABLE = "memories"


class LanceDB:
    note = "never syncs; hybrid; indexes of texts and users made after adding, then optimize()"

    def __init__(self, place: Place) -> None:
        self._database: Any = peers.lancedb(place.directory)
        self.name = f"LanceDB {version('lancedb')}"
        self._embedder = place.embedder
        self._table: Any = self._opened()

    def _opened(self) -> Any:
        import pyarrow

        fields = {"id": pyarrow.string(), "user": pyarrow.string(), "text": pyarrow.string()}
        vector = pyarrow.list_(pyarrow.float32(), self._embedder.dims)
        schema = pyarrow.schema({**fields, "vector": vector})
        return self._database.create_table(_TABLE, schema=schema, exist_ok=True)

    def add(self, user: str, texts: Sequence[str]) -> None:
        vectors = self._embedder.many(texts)
        self._table.add(
            [
                {"id": uuid.uuid4().hex, "user": user, "text": text, "vector": vector}
                for text, vector in zip(texts, vectors, strict=True)
            ]
        )

    def settle(self) -> None:
        from lancedb.index import Bitmap

        peers.lancedb_full_text(self._table)
        self._table.create_index("user", config=Bitmap())
        self._table.optimize()

    def search(self, user: str, query: str) -> int:
        search = peers.lancedb_hybrid(self._table, query, self._embedder.of(query)).where(f"user = '{user}'")
        return len(search.limit(TOP_K).select(["id", "text"]).to_list())

    def close(self) -> None:
        self._table = None
