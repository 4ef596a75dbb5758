"""The cache of views between searches."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from memory_reader import Entry, MemoryReader

from holdfast.domain.scope import Partition, Scope
from holdfast.ports import PartitionDelta
from holdfast.search.embedders.fake import FakeEmbedder
from holdfast.search.view_cache import ViewCache

FAKE = FakeEmbedder(16)
MUCH = 100_000_000


class CountingReader(MemoryReader):
    """Records the change from which each delta was requested."""

    def __init__(self, partition: Partition | None = None) -> None:
        super().__init__(FAKE.vectors, partition)
        self.asked: list[int] = []

    def delta(self, partition: Partition, since: int, embedder: str) -> PartitionDelta:
        self.asked.append(since)
        return super().delta(partition, since, embedder)


def numbers(cache: ViewCache, reader: MemoryReader) -> list[int]:
    view = cache.view(reader, reader.partitions()[0], "fake")
    return sorted(view.columns.number[view.alive].tolist())


def test_an_unchanged_partition_is_not_read_again() -> None:
    reader, cache = CountingReader(), ViewCache(MUCH)
    reader.add(Entry("one"))
    assert numbers(cache, reader) == numbers(cache, reader) == [1]
    assert reader.asked == [0]


def test_only_what_changed_is_read() -> None:
    reader, cache = CountingReader(), ViewCache(MUCH)
    reader.add(Entry("one"))
    numbers(cache, reader)
    reader.add(Entry("two"))
    assert numbers(cache, reader) == [1, 2]
    assert reader.asked == [0, 1]


def test_an_older_reader_never_sees_newer_rows() -> None:
    reader, cache = CountingReader(), ViewCache(MUCH)
    reader.add(Entry("one"))
    older = reader.at(1)
    reader.add(Entry("two"))
    assert numbers(cache, reader) == [1, 2]
    assert numbers(cache, older) == [1]
    assert numbers(cache, reader) == [1, 2]
    assert reader.asked == [0]


def test_a_reader_a_little_older_finds_the_view_of_its_moment() -> None:
    reader, cache = CountingReader(), ViewCache(MUCH)
    reader.add(Entry("one"))
    numbers(cache, reader)
    reader.add(Entry("two"))
    numbers(cache, reader)
    older = reader.at(1)
    older.delta = None  # type: ignore[assignment]  # must not even be called
    assert numbers(cache, older) == [1]
    assert numbers(cache, reader) == [1, 2]


def test_vectors_of_another_embedder_are_another_view() -> None:
    reader, cache = CountingReader(), ViewCache(MUCH)
    reader.add(Entry("one"))
    cache.view(reader, reader.partitions()[0], "fake")
    cache.view(reader, reader.partitions()[0], "other")
    assert reader.asked == [0, 0]


def test_a_partition_that_is_no_longer_there_is_empty_and_dropped() -> None:
    reader, cache = CountingReader(), ViewCache(MUCH)
    reader.add(Entry("one"))
    numbers(cache, reader)
    gone = MemoryReader(FAKE.vectors)
    assert numbers(cache, gone) == []
    assert cache.usage.bytes == 0


def readers(count: int) -> list[CountingReader]:
    found = [CountingReader(Scope(subject=f"s{at}").partition) for at in range(count)]
    for reader in found:
        reader.add(*(Entry(f"text {at}") for at in range(20)))
    return found


def test_the_least_used_is_dropped_when_it_gets_too_much() -> None:
    first, second, third = readers(3)
    one = ViewCache(MUCH)
    numbers(one, first)
    first.asked.clear()
    cache = ViewCache(int(one.usage.bytes * 2.5))
    for reader in (first, second, first, third, first, second):
        numbers(cache, reader)
        assert cache.usage.bytes <= one.usage.bytes * 2.5
    assert (len(first.asked), len(second.asked), len(third.asked)) == (1, 2, 1)


def test_a_partition_larger_than_the_cache_works_and_is_not_kept() -> None:
    (reader,) = readers(1)
    cache = ViewCache(10)
    assert numbers(cache, reader) == numbers(cache, reader) == list(range(1, 21))
    assert cache.usage.bytes == 0


def test_a_cleared_cache_holds_nothing() -> None:
    (reader,) = readers(1)
    cache = ViewCache(MUCH)
    numbers(cache, reader)
    cache.clear()
    assert cache.usage.bytes == 0


def test_many_threads_see_each_its_own_snapshot() -> None:
    reader = MemoryReader(FAKE.vectors)
    snapshots = []
    for at in range(12):
        reader.add(Entry(f"text {at}"))
        snapshots.append(at + 1)
    cache = ViewCache(MUCH)
    olders = [reader.at(change) for change in snapshots] * 6

    def seen(older: MemoryReader) -> bool:
        view = cache.view(older, older.partitions()[0], "fake")
        change = older.change_of(older.partitions()[0])
        return np.array_equal(np.sort(view.columns.number[view.alive]), np.arange(1, change + 1))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(seen, olders))
