"""That search is as good as we say, on real conversations, which are read from a path: no part of the project."""

from __future__ import annotations

import json
import math
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from memory_reader import Entry, MemoryReader

from holdfast.domain.ranking import Weights
from holdfast.domain.scope import Scope
from holdfast.domain.times import checked_time, to_micros
from holdfast.ports import Wanted
from holdfast.search.cache import ViewCache
from holdfast.search.embedders.static import StaticEmbedder
from holdfast.search.ranker import PartitionSearcher

EVAL = Path(os.environ.get("HOLDFAST_EVAL", Path(__file__).parents[3] / "shared" / "eval"))
NOW = datetime(2026, 1, 1, tzinfo=UTC)
HERE = Scope(subject="anna")
STATIC = StaticEmbedder()


def dataset(name: str) -> list[dict[str, Any]]:
    path = EVAL / name
    if not path.is_file():
        if os.environ.get("CI") == "true":
            pytest.fail(f"no data at {path}: set HOLDFAST_EVAL")
        pytest.skip(f"no data at {path}: set HOLDFAST_EVAL")
    scopes: list[dict[str, Any]] = json.loads(path.read_text())["scopes"]
    return scopes


def reader_of(scope: dict[str, Any]) -> tuple[MemoryReader, dict[int, str]]:
    reader, conversations = MemoryReader(STATIC.vectors), dict[str, int]()
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


def measure(name: str, weights: Weights | None = None) -> tuple[float, float]:
    """Recall and nDCG at 10, turn by turn."""
    recalls: list[float] = []
    gains: list[float] = []
    for scope in dataset(name):
        reader, ids = reader_of(scope)
        searcher = PartitionSearcher(ViewCache(100_000_000), STATIC.fingerprint, weights)
        for question in (question for question in scope["questions"] if question["counted"]):
            text = searcher.text_to_embed(reader, HERE, question["query"], Wanted())
            ranked = searcher.rank(reader, HERE, question["query"], STATIC.vectors([text])[0], Wanted(), NOW)
            gold = set(question["gold"])
            hits = [ids[scored.number] in gold for scored in ranked.best]
            recalls.append(sum(hits) / len(gold))
            ideal = sum(1 / math.log2(at + 2) for at in range(min(10, len(gold))))
            gains.append(sum(1 / math.log2(at + 2) for at, hit in enumerate(hits) if hit) / ideal)
    return sum(recalls) / len(recalls), sum(gains) / len(gains)


def test_conversations_between_people_are_searched_well() -> None:
    recall, gain = measure("locomo-dev.json")
    assert recall >= 0.81
    assert gain >= 0.64


def test_the_plain_hybrid_is_the_floor() -> None:
    assert measure("locomo-dev.json", Weights.plain())[0] >= 0.60


def test_daily_messages_in_chinese_are_searched_well() -> None:
    assert measure("memdaily-dev.json")[0] >= 0.965
