"""Opens each peer in its documented way with its defaults and the run's vectors, for both benchmarks.

A package is imported only when it is opened.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]


class Vectors(Protocol):
    """The source of a peer's vectors."""

    @property
    def dims(self) -> int: ...

    def of(self, text: str) -> FloatArray: ...

    def many(self, texts: Sequence[str]) -> Sequence[FloatArray]: ...


def mem0(directory: Path, vectors: Vectors) -> Any:
    """mem0 with its default local Qdrant store: no key, no call to a language model, no telemetry.

    Its keyword arm and its entity boost are off, as after `pip install mem0ai`: they need fastembed, spaCy, and models
    that those fetch from a hub.
    """
    # mem0 reads both at import, and creates its directory then.
    os.environ["MEM0_TELEMETRY"] = "False"
    os.environ["MEM0_DIR"] = str(directory)
    from mem0 import Memory

    # At every start it warns that the keyword arm is off; bench/README.md says so.
    logging.getLogger("mem0").setLevel(logging.ERROR)
    # mem0 builds LM Studio's clients without a key; neither is ever called.
    memory: Any = Memory.from_config(
        {
            "vector_store": {
                "provider": "qdrant",
                "config": {"path": str(directory / "qdrant"), "embedding_model_dims": vectors.dims},
            },
            "llm": {"provider": "lmstudio"},
            "embedder": {"provider": "lmstudio"},
            "history_db_path": str(directory / "history.db"),
        }
    )
    memory.embedding_model = _Mem0Embedding(vectors)
    return memory


def close_mem0(memory: Any) -> None:
    memory.close()
    memory.vector_store.client.close()


class _Mem0Embedding:
    """mem0's embedder interface over the given vectors."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        vector: list[float] = self._vectors.of(text).tolist()
        return vector

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        return [vector.tolist() for vector in self._vectors.many(texts)]


def langgraph_index(vectors: Vectors) -> dict[str, Any]:
    """The index configuration of LangGraph's stores: vectors of the text field."""

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [vector.tolist() for vector in vectors.many(texts)]

    return {"dims": vectors.dims, "embed": embed, "fields": ["text"]}


def chroma(directory: Path) -> Any:
    import chromadb
    from chromadb.config import Settings

    return chromadb.PersistentClient(path=str(directory), settings=Settings(anonymized_telemetry=False))


def chroma_collection(client: Any, name: str) -> Any:
    # Without `embedding_function=None`, Chroma would fetch its own model.
    return client.get_or_create_collection(name, configuration={"hnsw": {"space": "cosine"}}, embedding_function=None)


def lancedb(directory: Path) -> Any:
    # At its default level, every hybrid search logs two notices about future columns.
    os.environ.setdefault("LANCEDB_LOG", "error")
    import lancedb as package

    return package.connect(str(directory))


def lancedb_full_text(table: Any) -> None:
    """Create LanceDB's full-text index with its default settings."""
    from lancedb.index import FTS

    table.create_index("text", config=FTS())


def lancedb_hybrid(table: Any, query: str, vector: FloatArray) -> Any:
    """LanceDB's full-text index and vectors, fused by its own reciprocal rank reranker."""
    from lancedb.rerankers import RRFReranker

    search = table.search(query_type="hybrid").vector(vector).text(query)
    return search.distance_type("cosine").rerank(RRFReranker())


def memsearch(directory: Path, vectors: Vectors, collection: str) -> Any:
    """memsearch with its default local store, Milvus Lite. It indexes markdown files, its source of truth."""
    import memsearch as package
    from memsearch import core

    # It builds its embedder from a name in a fixed list, so patch the lookup.
    core.get_provider = lambda *_, **__: _MemSearchEmbedding(vectors)
    return package.MemSearch(
        paths=[str(directory / "memory")], milvus_uri=str(directory / "milvus.db"), collection=collection
    )


class _MemSearchEmbedding:
    """memsearch's embedder interface over the given vectors."""

    model_name = "given"
    batch_size = 256

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    @property
    def dimension(self) -> int:
        return self._vectors.dims

    async def embed(self, texts: list[str]) -> list[list[float]]:
        return [vector.tolist() for vector in self._vectors.many([_without_heading(text) for text in texts])]


def memsearch_note(text: str, heading: str, note: str = "") -> str:
    """A record as a separate section: memsearch splits markdown at headings, and its plugins write such sections."""
    comment = f"<!-- {note} -->\n" if note else ""
    return f"\n### {heading}\n{comment}{text}\n"


def _without_heading(text: str) -> str:
    """Drop the heading: the vector is that of the text alone, as for every other system."""
    first, _, rest = text.partition("\n")
    return rest if first.startswith("### ") and rest else text
