"""mem0 with `infer=False` and its default local store. A list of messages is one call; it adds them one by one."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from bench import peers
from bench.engine.systems.protocol import TOP_K, Place


class Mem0:
    note = "infer=False, Qdrant local"

    def __init__(self, place: Place) -> None:
        self._memory: Any = peers.mem0(place.directory, place.embedder)
        self.name = f"mem0 {version('mem0ai')}"

    def add(self, user: str, texts: Sequence[str]) -> None:
        self._memory.add([{"role": "user", "content": text} for text in texts], user_id=user, infer=False)

    def settle(self) -> None:
        """Nothing to do."""

    def search(self, user: str, query: str) -> int:
        return len(self._memory.search(query, top_k=TOP_K, filters={"user_id": user})["results"])

    def close(self) -> None:
        peers.close_mem0(self._memory)
