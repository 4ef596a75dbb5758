"""Search by words alone, by meaning alone, and within a radius of the query's meaning."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_reader import Entry, MemoryReader
from test_ranker import FAKE, HERE, found, reader_of, search

from holdfast.domain.ranking import FloatArray, Weights
from holdfast.domain.search import Method
from holdfast.ports import ScoredCandidate, SearchOptions
from holdfast.search.searcher import PartitionSearcher
from holdfast.search.view_cache import ViewCache

KEYWORD, VECTOR = SearchOptions(method=Method.KEYWORD, top_k=50), SearchOptions(method=Method.VECTOR, top_k=50)
WORDS = ["cat", "dog", "tea", "garden", "Ann", "yesterday", "sleeps"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
records = st.builds(
    Entry,
    text=texts,
    sender=st.sampled_from(["Ann", "Bob", None]),
    conversation=st.integers(0, 2),
    said_at=st.integers(0, 9),
)


def cosine(query: str, text: str) -> float:
    one, other = FAKE.vectors([query, text]).astype(np.float16).astype(np.float64)
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


# --- words alone ------------------------------------------------------------------------------------------------------


def test_by_words_only_what_holds_one_is_found_and_not_its_neighbours() -> None:
    reader = reader_of(Entry("tea?", said_at=1), Entry("yes", said_at=2), Entry("black coffee", conversation=1))
    assert found(search(reader, "tea", KEYWORD)) == [1]
    assert found(search(reader, "lemonade", KEYWORD)) == []


def test_by_words_a_name_is_a_word() -> None:
    reader = reader_of(Entry("I like tea", "Ann"), Entry("Ann is nice", "Bob", conversation=1))
    assert found(search(reader, "Ann", KEYWORD)) == [2]


def test_by_words_a_vector_changes_nothing() -> None:
    reader = reader_of(Entry("green tea", "Ann"), Entry("tea", "Bob"), Entry("a cat", "Ann"))
    without, given_one = (search(reader, "tea of Ann", KEYWORD, words_only=only) for only in (True, False))
    assert without == given_one
    assert all("vector" not in part for scored in without.best for part in scored.parts)


@settings(deadline=None, max_examples=60)
@given(st.lists(records, min_size=1, max_size=12), texts)
def test_by_words_every_hit_holds_a_word_and_every_holder_is_a_hit(entries: list[Entry], query: str) -> None:
    ranked = search(reader_of(*entries), query, KEYWORD)
    sought = set(query.split())
    assert sorted(found(ranked)) == [at for at, entry in enumerate(entries, 1) if sought & set(entry.text.split())]
    for scored in ranked.best:
        assert set(scored.parts) <= {"words", "window_words", "session_words", "base"}
        assert 0 <= scored.score <= 1


# --- meaning alone ----------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(st.lists(records, min_size=1, max_size=12), texts)
def test_by_meaning_the_strength_is_the_similarity(entries: list[Entry], query: str) -> None:
    ranked = search(reader_of(*entries), query, VECTOR)
    similar = {at: cosine(query, entry.text) for at, entry in enumerate(entries, 1)}
    assert set(found(ranked)) == set(similar)
    for scored in ranked.best:
        strength = scored.parts["vector"][1] * scored.parts["vector"][2]
        assert strength == pytest.approx(max(similar[scored.number], 0), abs=2e-3)
        assert set(scored.parts) == {"vector"}
    measured = [scored.parts["vector"][0] for scored in ranked.best]
    assert np.round(measured, 6).tolist() == sorted(np.round(measured, 6).tolist(), reverse=True)


def test_by_meaning_words_names_and_neighbours_count_nothing() -> None:
    def opposite(texts: list[str]) -> FloatArray:
        return np.array([[1.0, 0.0] if "sofa" in text else [0.6, 0.8] for text in texts], np.float32)

    reader = MemoryReader(opposite)
    reader.add(Entry("couch couch couch", "Ann"), Entry("the sofa", "Bob"), Entry("couch", "Ann", said_at=1))
    searcher = PartitionSearcher(ViewCache(1_000_000), "any")
    ranked = searcher.rank(reader, HERE, "Ann's couch", np.array([1, 0], np.float32), VECTOR)
    assert found(ranked) == [2, 1, 3]
    assert [scored.parts["vector"][1] for scored in ranked.best] == pytest.approx([1, 0.6, 0.6], abs=1e-3)


def test_by_meaning_what_has_no_vector_is_not_found() -> None:
    reader = MemoryReader(None)
    reader.add(Entry("tea"))
    assert found(search(reader, "tea", VECTOR)) == []


def test_by_meaning_the_weights_of_a_memory_do_not_matter() -> None:
    reader = reader_of(Entry("green tea"), Entry("a cat"), Entry("tea", conversation=1))
    assert search(reader, "tea", VECTOR, weights=Weights.plain(0, 1)).best == search(reader, "tea", VECTOR).best


def test_by_meaning_the_whole_query_is_embedded_with_its_names() -> None:
    reader = reader_of(Entry("x", "Ann"))
    searcher = PartitionSearcher(ViewCache(1_000_000), FAKE.fingerprint)
    assert searcher.text_to_embed(reader, HERE, "What does Ann eat?", VECTOR) == "What does Ann eat?"


# --- a radius ---------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(
    st.lists(records, min_size=1, max_size=12), texts, st.floats(0, 1), st.sampled_from([Method.HYBRID, Method.VECTOR])
)
def test_within_a_radius_is_what_is_similar_enough(
    entries: list[Entry], query: str, radius: float, method: Method
) -> None:
    reader, vector = reader_of(*entries), FAKE.vectors([query])[0]
    searcher = PartitionSearcher(ViewCache(1_000_000), FAKE.fingerprint)

    def best(wanted: SearchOptions) -> list[ScoredCandidate]:
        return list(searcher.rank(reader, HERE, query, vector, wanted).best)

    similar = {scored.number: np.float32(scored.parts["vector"][0]) for scored in best(VECTOR)}
    wanted = SearchOptions(method=method, top_k=50)
    # A radius only removes results: no score changes.
    assert best(replace(wanted, radius=radius)) == [
        scored for scored in best(wanted) if similar[scored.number] >= np.float32(radius)
    ]


def test_what_has_no_vector_is_outside_every_radius() -> None:
    reader = MemoryReader(None)
    reader.add(Entry("tea"))
    assert found(search(reader, "tea")) == [1]
    assert found(search(reader, "tea", SearchOptions(radius=0.0))) == []


def test_a_hybrid_search_says_nothing_of_its_method() -> None:
    reader = reader_of(Entry("tea"))
    assert "method" not in search(reader, "tea").understood
    assert search(reader, "tea", KEYWORD).understood["method"] == "keyword"
    assert search(reader, "tea", VECTOR).understood["method"] == "vector"
