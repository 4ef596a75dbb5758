"""Search quality is as stated, on real conversations read from a path outside the project."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory_reader import Entry, MemoryReader

from holdfast.domain.ranking import FloatArray, Weights
from holdfast.domain.scope import Scope
from holdfast.domain.times import checked_time, to_micros
from holdfast.ports import SearchOptions
from holdfast.search.embedders.onnx import OnnxEmbedder
from holdfast.search.embedders.static import StaticEmbedder
from holdfast.search.searcher import PartitionSearcher
from holdfast.search.view_cache import ViewCache

EVAL = Path(os.environ.get("HOLDFAST_EVAL", Path(__file__).parents[3] / "shared" / "eval"))
NOW = datetime(2026, 1, 1, tzinfo=UTC)
HERE = Scope(subject="anna")


def there(path: Path) -> Path:
    if not path.exists():
        if os.environ.get("CI") == "true":
            pytest.fail(f"no data at {path}: set HOLDFAST_EVAL")
        pytest.skip(f"no data at {path}: set HOLDFAST_EVAL")
    return path


def dataset(name: str) -> list[dict[str, Any]]:
    scopes: list[dict[str, Any]] = json.loads(there(EVAL / name).read_text())["scopes"]
    return scopes


class Embedding:
    """An embedder that caches its vectors: both embedders are slow, so the data is embedded only once."""

    def __init__(self, made: StaticEmbedder | OnnxEmbedder) -> None:
        self.fingerprint = made.fingerprint
        self._made = made
        self._known: dict[str, FloatArray] = {}

    def vectors(self, texts: Sequence[str]) -> FloatArray:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known.update(zip(new, self._made.vectors(new), strict=True))
        return np.stack([self._known[text] for text in texts])


@pytest.fixture(scope="module")
def static() -> Embedding:
    return Embedding(StaticEmbedder())


@pytest.fixture(scope="module")
def minilm() -> Embedding:
    return Embedding(OnnxEmbedder(there(EVAL / "minilm")))


def reader_of(scope: dict[str, Any], embedding: Embedding) -> tuple[MemoryReader, dict[int, str]]:
    reader, conversations = MemoryReader(embedding.vectors), dict[str, int]()
    entries = [
        Entry(
            record["text"],
            record["sender"],
            record["role"],
            conversations.setdefault(record["session_id"], len(conversations)),
            to_micros(checked_time(record["timestamp"], "timestamp")),
        )
        for record in scope["records"]
    ]
    ids = [record["id"] for record in scope["records"]]
    return reader, dict(zip(reader.add(*entries), ids, strict=True))


def measure(name: str, embedding: Embedding, weights: Weights | None = None) -> tuple[float, float]:
    """Return recall and nDCG at 10, by turn."""
    recalls: list[float] = []
    gains: list[float] = []
    for scope in dataset(name):
        reader, ids = reader_of(scope, embedding)
        searcher = PartitionSearcher(ViewCache(100_000_000), embedding.fingerprint, weights)
        for question in (question for question in scope["questions"] if question["counted"]):
            text = searcher.text_to_embed(reader, HERE, question["query"], SearchOptions())
            ranked = searcher.rank(reader, HERE, question["query"], embedding.vectors([text])[0], SearchOptions())
            gold = set(question["gold"])
            hits = [ids[scored.number] in gold for scored in ranked.best]
            recalls.append(sum(hits) / len(gold))
            ideal = sum(1 / math.log2(at + 2) for at in range(min(10, len(gold))))
            gains.append(sum(1 / math.log2(at + 2) for at, hit in enumerate(hits) if hit) / ideal)
    return sum(recalls) / len(recalls), sum(gains) / len(gains)


def test_conversations_between_people_are_searched_well(static: Embedding) -> None:
    recall, gain = measure("locomo-dev.json", static)
    assert recall >= 0.82
    assert gain >= 0.65


def test_a_better_embedder_makes_search_better(minilm: Embedding) -> None:
    recall, gain = measure("locomo-dev.json", minilm)
    # Measured 0.851 and 0.671; vectors of an int8 graph differ a little between processors.
    assert recall >= 0.84
    assert gain >= 0.66


def test_the_plain_hybrid_is_the_floor(static: Embedding) -> None:
    assert measure("locomo-dev.json", static, Weights.plain())[0] >= 0.60


def test_daily_messages_in_chinese_are_searched_well(static: Embedding) -> None:
    best = measure("memdaily-dev.json", static, Weights.plain(0, 1))[0]
    assert measure("memdaily-dev.json", static)[0] >= best - 0.005
