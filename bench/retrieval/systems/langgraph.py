"""LangGraph's `InMemoryStore` with a vector index over the text field, one namespace per scope."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from bench import peers
from bench.retrieval.datasets import Record
from bench.retrieval.systems.protocol import Hit, Setup


class LangGraph:
    embeds_itself = False

    def __init__(self, setup: Setup) -> None:
        from langgraph.store.memory import InMemoryStore

        self.name = f"LangGraph {version('langgraph')} InMemoryStore"
        self.embedder_name = setup.vectors.name
        self._store: Any = InMemoryStore(index=peers.langgraph_index(setup.vectors))

    def add(self, scope: str, records: Sequence[Record]) -> None:
        for record in records:
            value = {
                "text": record.text,
                "sender": record.sender,
                "timestamp": record.timestamp,
                "session": record.session_id,
            }
            self._store.put((scope,), record.id, value)

    def search(self, scope: str, query: str, k: int) -> list[Hit]:
        return [Hit(item.key, item.value["text"]) for item in self._store.search((scope,), query=query, limit=k)]

    def close(self) -> None:
        """Nothing to do: the store is in memory only."""
