"""Memory has bounds: the cache of views counts what it holds, and hostile texts do not fill the other caches."""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Iterator

import numpy as np
import pytest
from memory_reader import Entry, MemoryReader

from holdfast.domain.scope import Scope
from holdfast.ports import SearchOptions
from holdfast.search.analyzer import TextAnalyzer
from holdfast.search.embedders.fake import FakeEmbedder
from holdfast.search.embedders.static import StaticEmbedder
from holdfast.search.searcher import PartitionSearcher
from holdfast.search.view_cache import ViewCache

EMBEDDER = FakeEmbedder(64)
SEEDS = int(os.environ.get("HOLDFAST_CACHE_SEEDS", "2"))
MUCH = 2**40


def arrays_held(cache: ViewCache) -> int:
    """Bytes of all arrays that can be reached from the cache, each once."""
    ours, seen, held = "holdfast.search", set(), 0
    left: list[object] = [cache._slots]
    while left:
        one = left.pop()
        while isinstance(one, np.ndarray) and isinstance(one.base, np.ndarray):
            one = one.base
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            held += one.nbytes
        elif isinstance(one, dict | list | tuple) or type(one).__module__.startswith(ours):
            left += [each for each in gc.get_referents(one) if not isinstance(each, type)]
    return held


def changes(chance: random.Random, scope: Scope) -> Iterator[MemoryReader]:
    """A partition that grows and shrinks as in real use: mostly turns, sometimes a batch, a correction, a forget."""
    reader = MemoryReader(EMBEDDER.vectors, scope.partition)
    for turn in range(chance.randint(1, 30)):
        kind = chance.random()
        size = chance.randint(50, 200) if kind > 0.9 else chance.randint(1, 4)
        if kind < 0.1 and len(reader.numbers) > 10:
            reader.remove(*chance.sample(reader.numbers, 5))
        elif kind < 0.2 and reader.numbers:
            reader.put(chance.choice(reader.numbers), Entry(f"Changed {turn}.", scope=scope))
        else:
            conversation = Scope(subject=scope.subject, conversation=f"c{turn}")
            reader.add(*(Entry(f"Text {turn} {at}.", conversation=turn, scope=conversation) for at in range(size)))
        yield reader


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_cache_counts_what_its_views_hold(seed: int) -> None:
    chance, cache = random.Random(seed), ViewCache(MUCH)
    searcher = PartitionSearcher(cache, EMBEDDER.fingerprint)
    for owner in range(4):
        scope = Scope(subject=f"s{owner}")
        for reader in changes(chance, scope):
            for place in (scope, Scope(subject=scope.subject, conversation="c1")):
                searcher.rank(reader, place, "text", EMBEDDER.vectors(["text"])[0], SearchOptions())
    usage, held = cache.usage, arrays_held(cache)
    assert usage.partitions == 4
    # Python's own objects are counted too: up to three views of each partition.
    assert held <= usage.bytes <= 1.3 * held + 4 * 3 * 15_000


def test_the_cache_evicts_the_partitions_that_its_limit_has_no_place_for() -> None:
    chance, cache = random.Random(0), ViewCache(MUCH, 2)
    searcher = PartitionSearcher(cache, EMBEDDER.fingerprint)
    for owner in range(4):
        scope = Scope(subject=f"s{owner}")
        for reader in changes(chance, scope):
            found = searcher.rank(reader, scope, "text", EMBEDDER.vectors(["text"])[0], SearchOptions())
            assert found.candidates
    assert (cache.usage.partitions, cache.usage.evictions) == (2, 2)


def test_words_that_never_repeat_do_not_fill_the_caches() -> None:
    chance = random.Random(1)
    analyzer, tokenizer = TextAnalyzer(), StaticEmbedder().tokens
    hostile = ["".join(chr(chance.randrange(0x4E00, 0x9FFF)) for _ in range(60)) for _ in range(200)]
    hostile += [".".join(f"{chance.randrange(1_000)}a" for _ in range(12)) for _ in range(200)]
    before = len(tokenizer)
    analyzer.analyze(" ".join(hostile))
    tokenizer.of(hostile)
    assert not analyzer._known
    assert len(tokenizer) == before
    analyzer.analyze("Ordinary words are cached.")
    assert len(analyzer._known) == 4
