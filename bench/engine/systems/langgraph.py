"""LangGraph's stores with a vector index over the text, one namespace per user: in memory, and on PostgreSQL."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from bench import peers
from bench.engine.systems.protocol import TOP_K, Place

_POOL = 8


class _Store:
    """The common part of both stores."""

    _store: Any

    def __init__(self) -> None:
        self._keys = itertools.count()

    def add(self, user: str, texts: Sequence[str]) -> None:
        from langgraph.store.base import PutOp

        entries = [(str(next(self._keys)), {"text": text}) for text in texts]
        if len(entries) == 1:
            self._store.put((user,), *entries[0])
        else:
            self._store.batch([PutOp((user,), key, value) for key, value in entries])

    def settle(self) -> None:
        """Nothing to do."""

    def search(self, user: str, query: str) -> int:
        return len(self._store.search((user,), query=query, limit=TOP_K))


class LangGraphMemory(_Store):
    note = "in memory, nothing on disk"

    def __init__(self, place: Place) -> None:
        from langgraph.store.memory import InMemoryStore

        super().__init__()
        self.name = f"LangGraph InMemoryStore {version('langgraph')}"
        self._store = InMemoryStore(index=peers.langgraph_index(place.embedder))

    def close(self) -> None:
        """Nothing to do: the store is in memory only."""


class LangGraphPostgres(_Store):
    note = f"HNSW index, its default; a pool of {_POOL} connections"

    def __init__(self, place: Place) -> None:
        from langgraph.store.postgres import PostgresStore

        super().__init__()
        self.name = f"LangGraph PostgresStore {version('langgraph-checkpoint-postgres')}"
        self._opened: Any = PostgresStore.from_conn_string(
            place.url,
            pool_config={"min_size": _POOL, "max_size": _POOL},
            index=peers.langgraph_index(place.embedder),
        )
        self._store = self._opened.__enter__()
        self._store.setup()

    def close(self) -> None:
        self._opened.__exit__(None, None, None)
