"""The view of a partition in memory, and its growth."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable
from dataclasses import replace
from typing import Never

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from memory_reader import Entry, MemoryReader

from holdfast.domain.scope import Scope
from holdfast.ports import LazyRows, PartitionDelta, VectorRow, columns_of
from holdfast.search.analyzer import term_hash
from holdfast.search.embedders.fake import FakeEmbedder
from holdfast.search.partition_index import Postings, Segment
from holdfast.search.partition_view import COLUMN_NAMES, PAUSE_MICROS, PartitionView

FAKE = FakeEmbedder(16)
LONG = "A long story is told here, sentence by sentence, about cats. " * 40


def view_of(reader: MemoryReader, since: PartitionView | None = None) -> PartitionView:
    view = since or PartitionView.empty()
    return view.extend(reader.delta(reader.partitions()[0], view.change, "fake"))


def neighbours(view: PartitionView) -> dict[int, tuple[int | None, int | None]]:
    """Map each number to the numbers before and after it."""
    numbers = [*view.columns.number.tolist(), None]
    return {
        numbers[at]: (numbers[view.links.previous[at]], numbers[view.links.following[at]])
        for at in np.flatnonzero(view.alive).tolist()
    }


def unnamed(delta: PartitionDelta) -> PartitionDelta:
    """Return the delta as a database gives it, but fail on access to single rows."""

    def looked(_: Iterable[object]) -> Never:
        raise AssertionError("a load gives names to single rows: a large one takes twice as long")

    return replace(
        delta,
        rows=LazyRows(looked, [tuple(row) for row in delta.rows]),
        vectors=LazyRows(looked, [tuple(row) for row in delta.vectors]),
    )


def test_a_view_is_made_of_columns_without_a_look_at_single_rows() -> None:
    reader = MemoryReader(FAKE.vectors)
    reader.add(Entry("one", sender="ana"), Entry(LONG), Entry("three", valid_to=7))
    delta = reader.delta(reader.partitions()[0], 0, "fake")
    view, same = PartitionView.empty().extend(unnamed(delta)), PartitionView.empty().extend(delta)
    assert np.array_equal(view.vectors.rows, same.vectors.rows)
    assert all(np.array_equal(getattr(view.columns, name), getattr(same.columns, name)) for name in COLUMN_NAMES)
    assert view.postings.lookup(term_hash("three"))[0].tolist() == [2]


def test_rows_of_a_database_get_their_names_when_they_are_looked_at() -> None:
    rows = LazyRows(VectorRow._make, [(1, 0, b"one"), (2, 0, b"two"), (2, 1, b"more")])
    assert len(rows) == 3
    assert rows[-1] == VectorRow(2, 1, b"more")
    assert [row.vector for row in rows] == [b"one", b"two", b"more"]
    assert rows[1:] == [VectorRow(2, 0, b"two"), VectorRow(2, 1, b"more")]
    assert rows != rows[1:]
    assert repr(rows) == repr(list(rows))
    assert list(columns_of(rows)) == list(columns_of(list(rows))) == [(1, 2, 2), (0, 0, 1), (b"one", b"two", b"more")]


def test_a_first_load_holds_its_vectors_once() -> None:
    reader = MemoryReader(FakeEmbedder(1_024).vectors)
    reader.add(*(Entry(f"text {at}", conversation=at) for at in range(2_000)))
    delta = reader.delta(reader.partitions()[0], 0, "fake")
    tracemalloc.start()
    try:
        view = PartitionView.empty().extend(delta)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Beside the vectors, the data that was read takes half as much.
    assert peak < 1.8 * view.vectors.rows.nbytes


def test_a_record_knows_who_spoke_before_and_after_it_in_its_conversation() -> None:
    reader = MemoryReader(FAKE.vectors)
    reader.add(Entry("one", said_at=1), Entry("other", conversation=1, said_at=2), Entry("three", said_at=3))
    assert neighbours(view_of(reader)) == {1: (None, 3), 2: (None, None), 3: (1, None)}


def test_time_decides_who_is_next_to_whom_not_the_order_of_arrival() -> None:
    reader = MemoryReader(FAKE.vectors)
    reader.add(Entry("last", said_at=9), Entry("first", said_at=1))
    view = view_of(reader)
    reader.add(Entry("between", said_at=5))
    assert neighbours(view_of(reader, view)) == {2: (None, 3), 3: (2, 1), 1: (3, None)}


def test_after_a_long_pause_nobody_is_next() -> None:
    reader = MemoryReader(FAKE.vectors)
    reader.add(Entry("evening"), Entry("next morning", said_at=PAUSE_MICROS + 1))
    assert neighbours(view_of(reader)) == {1: (None, None), 2: (None, None)}


def test_who_cannot_be_seen_does_not_part_those_who_can() -> None:
    reader = MemoryReader(FAKE.vectors)
    half = PAUSE_MICROS // 2
    reader.add(*(Entry(f"text {at}", said_at=at * half) for at in range(5)))
    view = view_of(reader)
    links = view.links_among(np.array([True, False, True, False, False]))
    assert links.previous.tolist()[2] == 0
    assert links.following.tolist()[0] == 2
    assert links.following.tolist()[2] == -1
    assert links.to_following[0] == np.float32(view.vectors.rows[0] @ view.vectors.rows[2])
    assert view.links_among(np.array([True, False, False, True, False])).following.tolist()[0] == -1


def test_memories_have_no_neighbours() -> None:
    reader = MemoryReader(FAKE.vectors)
    reader.add(Entry("said"), Entry("learned", kind=1, plane="long_term"), Entry("said too"))
    assert neighbours(view_of(reader))[2] == (None, None)
    assert neighbours(view_of(reader))[1] == (None, 3)


def test_what_was_removed_is_gone_from_the_next_view() -> None:
    reader = MemoryReader(FAKE.vectors)
    reader.add(Entry("keep this"), Entry("secret word"), Entry("keep that"))
    before = view_of(reader)
    reader.remove(2)
    after = view_of(reader, before)
    assert after.columns.number.tolist() == [1, 3]
    assert len(after.vectors.rows) == 2
    assert all(term_hash("secret") not in segment.hashes for segment in after.postings.segments)
    assert neighbours(after) == {1: (None, 3), 3: (1, None)}
    assert before.columns.number.tolist() == [1, 2, 3]


def test_a_changed_record_is_there_once_with_its_new_text() -> None:
    reader = MemoryReader(FAKE.vectors)
    reader.add(Entry("cats"), Entry("birds"))
    view = view_of(reader)
    reader.put(1, Entry("dogs"))
    view = view_of(reader, view)
    assert sorted(view.columns.number[view.alive].tolist()) == [1, 2]
    rows, counts = view.postings.lookup(term_hash("dog"))
    assert view.columns.number[rows].tolist() == [1]
    assert counts.tolist() == [1]
    assert not view.alive[view.postings.lookup(term_hash("cat"))[0]].any()


def test_a_long_text_has_a_vector_per_piece_and_one_for_the_whole() -> None:
    reader = MemoryReader(FAKE.vectors)
    reader.add(Entry("short"), Entry(LONG))
    vectors = view_of(reader).vectors
    pieces = vectors.rows[vectors.first[0] : vectors.last[0]]
    assert vectors.many.tolist() == [1]
    assert len(pieces) > 1
    mean = pieces.mean(axis=0)
    assert np.allclose(vectors.rows[vectors.whole[1]], mean / np.linalg.norm(mean), atol=1e-5)


def test_records_without_vectors_are_there_all_the_same() -> None:
    reader = MemoryReader(None)
    reader.add(Entry("no vector yet"))
    assert view_of(reader).vectors.whole.tolist() == [-1]


def test_two_views_may_grow_from_one() -> None:
    reader = MemoryReader(FAKE.vectors)
    reader.add(Entry("start"))
    start = view_of(reader)
    reader.add(Entry("left"))
    left = view_of(reader, start)
    right = start.extend(reader.delta(reader.partitions()[0], start.change, "fake"))
    reader.add(Entry("more"))
    view_of(reader, left)
    view_of(reader, right)
    assert left.columns.number.tolist() == right.columns.number.tolist() == [1, 2]
    assert np.array_equal(left.vectors.rows, right.vectors.rows)


def test_dead_rows_do_not_pile_up() -> None:
    reader = MemoryReader(FAKE.vectors)
    reader.add(*(Entry(f"text {at}") for at in range(50)))
    view = view_of(reader)
    for _ in range(20):
        for number in range(1, 51):
            reader.put(number, Entry(f"text {number} anew"))
        view = view_of(reader, view)
    assert int(np.count_nonzero(view.alive)) == 50
    assert view.size < 500


@given(st.lists(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 40), st.integers(1, 9)), max_size=12), max_size=9))
@example([[]] * 6)
def test_segments_that_were_merged_hold_what_was_added(batches: list[list[tuple[int, int, int]]]) -> None:
    postings, expected, base = Postings(), {}, 0
    for batch in batches:
        entries = {(term, base + record): count for term, record, count in batch}
        base += 41
        expected.update(entries)
        keys = list(entries)
        postings = postings.with_segment(
            Segment.of(
                np.array([term for term, _ in keys], np.uint64),
                np.array([record for _, record in keys], np.int32),
                np.array([entries[key] for key in keys], np.uint16),
            )
        )
    found = {(term, int(r)): int(c) for term in range(9) for r, c in zip(*postings.lookup(term), strict=True)}
    assert found == expected
    assert len(postings.segments) <= 5


# --- a grown view equals a built view ---------------------------------------------------------------------------------

WORDS = ["cat", "dog", "tea", "rain", "May", "yesterday", "?", "house", LONG]
entries = st.builds(
    Entry,
    text=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
    sender=st.sampled_from(["Ann", "Bob", None]),
    conversation=st.sampled_from([0, 1, None]),
    said_at=st.integers(0, 5).map(lambda step: step * PAUSE_MICROS // 2),
    kind=st.sampled_from([0, 0, 0, 1]),
    plane=st.just("long_term"),
    superseded_at=st.sampled_from([None, None, None, 4]),
    scope=st.sampled_from([Scope(subject="anna"), Scope(subject="anna", project="p")]),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(entries, min_size=1, max_size=4)),
        st.tuples(st.just("put"), st.tuples(st.integers(0, 50), entries)),
        st.tuples(st.just("remove"), st.integers(0, 50)),
    ),
    min_size=1,
    max_size=8,
)


def play(reader: MemoryReader, step: tuple[str, object]) -> None:
    known = sorted(reader.numbers)
    match step:
        case ("add", list(new)):
            reader.add(*new)
        case ("put", (int(at), Entry() as entry)) if known:
            reader.put(known[at % len(known)], entry)
        case ("remove", int(at)) if known:
            reader.remove(known[at % len(known)])
        case _:
            pass


def as_facts(view: PartitionView) -> dict[int, tuple[object, ...]]:
    """Return everything that ranking reads of each record, by number."""
    links = neighbours(view)
    facts: dict[int, tuple[object, ...]] = {}
    for at in np.flatnonzero(view.alive).tolist():
        whole = int(view.vectors.whole[at])
        number = int(view.columns.number[at])
        facts[number] = (
            links[number],
            view.names.scopes[view.columns.scope[at]],
            int(view.columns.superseded_at[at]),
            float(view.links.to_following[at]),
            float(view.links.across[at]),
            view.vectors.rows[whole].tobytes() if whole >= 0 else None,
        )
    return facts


@settings(deadline=None, max_examples=60)
@given(steps)
def test_a_view_that_grew_holds_what_one_built_at_once_holds(history: list[tuple[str, object]]) -> None:
    reader = MemoryReader(FAKE.vectors)
    grown = PartitionView.empty()
    for step in history:
        play(reader, step)
        grown = view_of(reader, grown)
    built = view_of(reader)
    assert as_facts(grown) == as_facts(built)
    for word in ("cat", "dog", "tea"):
        for view, other in ((grown, built), (built, grown)):
            rows, _ = view.postings.lookup(term_hash(word))
            held = {int(view.columns.number[row]) for row in rows.tolist() if view.alive[row]}
            others, _ = other.postings.lookup(term_hash(word))
            assert held == {int(other.columns.number[row]) for row in others.tolist() if other.alive[row]}
