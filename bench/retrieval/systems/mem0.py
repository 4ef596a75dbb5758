"""mem0 with `infer=False` and its default local Qdrant store: no key, no call to a language model, no telemetry.

Its keyword arm and its entity boost are off, as they are after `pip install mem0ai`: they need fastembed and spaCy,
and models that those fetch from a hub.
"""

import logging
import os
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from bench.retrieval.datasets import Record
from bench.retrieval.embedders import Vectors
from bench.retrieval.systems.protocol import Hit, Setup


class _GivenEmbedding:
    """mem0's embedder interface over the shared vectors."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        vector: list[float] = self._vectors.of(text).tolist()
        return vector

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text) for text in texts]


class Mem0:
    embeds_itself = False

    def __init__(self, setup: Setup) -> None:
        # mem0 reads both at import, and makes its directory then.
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ["MEM0_DIR"] = str(setup.directory)
        from mem0 import Memory

        # It warns at every start that the keyword arm is off, which the name of the run already says.
        logging.getLogger("mem0").setLevel(logging.ERROR)
        self.name = f"mem0 {version('mem0ai')} infer=False"
        self.embedder_name = setup.vectors.name
        self._memory: Any = Memory.from_config(_config(setup))
        self._memory.embedding_model = _GivenEmbedding(setup.vectors)

    def add(self, scope: str, records: Sequence[Record]) -> None:
        for record in records:
            message = {"role": record.role, "content": record.text, "name": record.sender}
            metadata = {"record": record.id, "timestamp": record.timestamp, "session": record.session_id}
            self._memory.add([message], user_id=scope, metadata=metadata, infer=False)

    def search(self, scope: str, query: str, k: int) -> list[Hit]:
        found = self._memory.search(query, top_k=k, filters={"user_id": scope})
        return [Hit(item["metadata"]["record"], item["memory"]) for item in found["results"]]

    def close(self) -> None:
        self._memory.close()
        self._memory.vector_store.client.close()


def _config(setup: Setup) -> dict[str, Any]:
    # LM Studio's clients are the ones that mem0 builds without a key; neither is ever called.
    return {
        "vector_store": {
            "provider": "qdrant",
            "config": {"path": str(setup.directory / "qdrant"), "embedding_model_dims": setup.vectors.dims},
        },
        "llm": {"provider": "lmstudio"},
        "embedder": {"provider": "lmstudio"},
        "history_db_path": str(setup.directory / "history.db"),
    }
