"""mem0 with `infer=False`: each message is stored unchanged as one memory."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from bench import peers
from bench.retrieval.datasets import Record
from bench.retrieval.systems.protocol import Hit, Setup


class Mem0:
    embeds_itself = False

    def __init__(self, setup: Setup) -> None:
        self._memory: Any = peers.mem0(setup.directory, setup.vectors)
        self.name = f"mem0 {version('mem0ai')} infer=False"
        self.embedder_name = setup.vectors.name

    def add(self, scope: str, records: Sequence[Record]) -> None:
        for record in records:
            message = {"role": record.role, "content": record.text, "name": record.sender}
            metadata = {"record": record.id, "timestamp": record.timestamp, "session": record.session_id}
            self._memory.add([message], user_id=scope, metadata=metadata, infer=False)

    def search(self, scope: str, query: str, k: int) -> list[Hit]:
        found = self._memory.search(query, top_k=k, filters={"user_id": scope})
        return [Hit(item["metadata"]["record"], item["memory"]) for item in found["results"]]

    def close(self) -> None:
        peers.close_mem0(self._memory)
