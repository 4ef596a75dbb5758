"""Damaged indexes: damaged entries are left out, and search continues with the rest."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from memory_reader import Entry, MemoryReader

import holdfast
from holdfast.ports import VectorRow
from holdfast.search.analyzer import pack_terms
from holdfast.search.embedders.fake import FakeEmbedder
from holdfast.search.partition_index import read_vectors
from holdfast.search.view_cache import ViewCache

NUMBERS = np.arange(3)


def rows(*vectors: bytes) -> list[VectorRow]:
    return [VectorRow(number, 0, vector) for number, vector in enumerate(vectors)]


def halves(*values: float) -> bytes:
    return np.array(values, "<f2").tobytes()


@pytest.mark.parametrize("wrong", [b"", b"\0", b"\0\0", b"\0\0\0", halves(1, 2, 3)])
@pytest.mark.parametrize("at", range(3))
def test_a_vector_of_another_length_is_none_wherever_it_lies(wrong: bytes, at: int) -> None:
    given = [halves(1, 0), halves(0, 1), halves(1, 1)]
    given[at] = wrong
    read = read_vectors(rows(*given), NUMBERS)
    assert np.flatnonzero(read.whole < 0).tolist() == [at]
    assert read.rows.shape == (2, 2)


def test_where_no_vector_can_be_read_there_is_none() -> None:
    assert read_vectors(rows(b"\0", b"", b"\0\0\0"), NUMBERS).whole.tolist() == [-1, -1, -1]


def test_of_lengths_that_are_equally_frequent_the_newest_is_compared() -> None:
    read = read_vectors(rows(halves(1, 0), halves(1, 0, 0)), NUMBERS[:2])
    assert (read.whole.tolist(), read.rows.shape) == ([-1, 0], (1, 3))


def test_what_reads_as_no_number_is_like_nothing() -> None:
    read = read_vectors(rows(halves(1, 0), b"\xff" * 4, halves(0, np.inf)), NUMBERS)
    assert read.rows.tolist() == [[1, 0], [0, 0], [0, 0]]


def test_a_view_goes_over_to_vectors_of_another_length_once_most_have_it() -> None:
    made = {16: FakeEmbedder(16), 32: FakeEmbedder(32)}
    width = 16
    reader, cache = MemoryReader(lambda texts: made[width].vectors(texts)), ViewCache(10_000_000)
    reader.add(Entry("one"), Entry("two"), Entry("three"))

    def shape() -> tuple[int, int]:
        view = cache.view(reader, reader.partitions()[0], "fake")
        return int(np.count_nonzero(view.vectors.whole[view.alive] >= 0)), view.vectors.rows.shape[1]

    assert shape() == (3, 16)
    width = 32
    reader.put(1, Entry("one"))
    assert shape() == (2, 16)
    reader.put(2, Entry("two"))
    assert shape() == (2, 32)
    reader.put(3, Entry("three"))
    assert shape() == (3, 32)


def test_terms_that_are_cut_leave_the_counts_of_others_alone() -> None:
    reader = MemoryReader()
    reader.add(Entry("zebra"), Entry("zebra zebra zebra"))
    change, row, vectors = reader._rows[1]
    reader._rows[1] = (change, row._replace(terms=row.terms + b"\0\0\0"), vectors)
    view = ViewCache(10_000_000).view(reader, reader.partitions()[0], "fake")
    hashes = np.frombuffer(reader._rows[2][1].terms[:8], "<u8")
    _, found, counts = view.postings.lookup_all(hashes)
    assert dict(zip(found.tolist(), counts.tolist(), strict=True)) == {0: 1, 1: 3}
    assert pack_terms({int(hashes[0]): 3}) == reader._rows[2][1].terms


@pytest.mark.parametrize("vector", ["x''", "x'0000'", "x'000000'", "randomblob(512)"])
@pytest.mark.parametrize("method", ["keyword", "vector", "hybrid"])
def test_one_damaged_vector_takes_no_other_record_from_a_search(tmp_path: Path, vector: str, method: str) -> None:
    place = str(tmp_path / "memory.db")
    with holdfast.open(place, embedder="fake", work=False) as memory:
        memory.add(["The zebra sleeps.", "A zebra eats.", "Gamma delta."], subject="ana")
    with closing(sqlite3.connect(place, isolation_level=None)) as database:
        database.execute(f"UPDATE vectors SET vector = {vector} WHERE number = 3")
    with holdfast.open(place, embedder="fake", work=False) as memory:
        found = [hit.text for hit in memory.search("zebra", subject="ana", method=method)]
        assert {"The zebra sleeps.", "A zebra eats."} <= set(found[:2])
        assert not memory.verify().ok
        memory.rebuild()
        assert memory.verify().ok
