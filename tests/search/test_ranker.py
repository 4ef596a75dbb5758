"""Search: visibility, filters, order and explanations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_reader import Entry, MemoryReader
from test_view import play, steps

from holdfast.domain.memory import Plane
from holdfast.domain.ranking import Part, Weights
from holdfast.domain.results import HitKind
from holdfast.domain.scope import Partition, Scope
from holdfast.domain.times import EPOCH
from holdfast.domain.transcript import Role
from holdfast.ports import PartitionDelta, RankedCandidates, SearchOptions
from holdfast.search.embedders.fake import FakeEmbedder
from holdfast.search.searcher import PartitionSearcher
from holdfast.search.view_cache import ViewCache

FAKE = FakeEmbedder(64)
HERE = Scope(subject="anna")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: int) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def search(
    reader: MemoryReader,
    query: str,
    wanted: SearchOptions | None = None,
    *,
    scope: Scope = HERE,
    weights: Weights | None = None,
    words_only: bool = False,
    target: int | None = None,
) -> RankedCandidates:
    searcher = PartitionSearcher(ViewCache(10_000_000), FAKE.fingerprint, weights)
    wanted = wanted or SearchOptions()
    vector = None if words_only else FAKE.vectors([searcher.text_to_embed(reader, scope, query, wanted)])[0]
    return searcher.rank(reader, scope, query, vector, wanted, target)


def reader_of(*entries: Entry) -> MemoryReader:
    reader = MemoryReader(FAKE.vectors)
    reader.add(*entries)
    return reader


def found(ranked: RankedCandidates) -> list[int]:
    return [scored.number for scored in ranked.best]


def test_a_search_of_an_older_snapshot_is_not_disturbed_by_a_conversation_that_is_new_in_a_newer_one() -> None:
    talk = (Entry("tea in town", conversation=1), Entry("tea at home", conversation=2))
    older, reader = reader_of(*talk), reader_of(*talk)
    reader.add(Entry("tea by the river", conversation=3))
    searcher = PartitionSearcher(ViewCache(10_000_000), FAKE.fingerprint)
    vector = FAKE.vectors(["tea"])[0]
    before = searcher.rank(older, HERE, "tea", vector, SearchOptions())
    assert len(searcher.rank(reader, HERE, "tea", vector, SearchOptions()).best) == 3
    assert searcher.rank(older, HERE, "tea", vector, SearchOptions()) == before


# --- order ------------------------------------------------------------------------------------------------------------


def test_the_record_that_holds_the_words_comes_first() -> None:
    reader = reader_of(Entry("tea in the morning"), Entry("the cat sleeps"), Entry("a dog barks"))
    assert found(search(reader, "where does the cat sleep?"))[0] == 2


def words_to_vector(ranked: RankedCandidates) -> float:
    parts = ranked.best[0].parts
    return parts["words"][2] / parts["vector"][2]


def test_words_weigh_more_where_they_match_better() -> None:
    reader = reader_of(Entry("the cat sleeps under the piano"), *(Entry(f"note {at}") for at in range(30)))
    weak, strong = (words_to_vector(search(reader, query)) for query in ("cat zebra", "cat sleeps piano zebra"))
    assert 0 < weak < strong


def test_how_well_words_match_does_not_depend_on_a_filter() -> None:
    reader = reader_of(Entry("the cat sleeps", "ben"), *(Entry(f"cat note {at}", "ana") for at in range(30)))
    everyone, one = (search(reader, "cat sleeps", SearchOptions(sender=sender)) for sender in (None, "ana"))
    assert words_to_vector(one) == pytest.approx(words_to_vector(everyone))


def test_equal_records_come_in_the_order_of_their_making() -> None:
    reader = reader_of(*(Entry("the same text", conversation=None) for _ in range(12)))
    assert found(search(reader, "same text")) == list(range(1, 11))


def test_only_as_many_come_as_are_asked_for() -> None:
    reader = reader_of(*(Entry(f"text {at}") for at in range(9)))
    assert len(search(reader, "text", SearchOptions(top_k=4)).best) == 4


def test_without_a_vector_only_what_holds_a_word_is_found() -> None:
    reader = reader_of(Entry("green tea", conversation=0), Entry("black coffee", conversation=1))
    assert found(search(reader, "tea", words_only=True)) == [1]
    assert found(search(reader, "lemonade", words_only=True)) == []


def test_records_that_wait_for_their_vectors_still_compete() -> None:
    reader = MemoryReader(None)
    reader.add(Entry("green tea"), Entry("black coffee", conversation=1))
    assert found(search(reader, "tea"))[0] == 1


def test_a_named_participant_is_preferred() -> None:
    reader = reader_of(
        Entry("I love painting", sender="Ann", conversation=0),
        Entry("I love painting", sender="Bob", conversation=1),
    )
    assert found(search(reader, "What does Bob love?"))[0] == 2
    assert found(search(reader, "What does Ann love?"))[0] == 1


def test_a_memory_that_holds_the_name_counts_as_said_by_the_one_named() -> None:
    reader = reader_of(
        Entry("I like tea", sender="Ann"),
        Entry("I like tea", sender="Bob", conversation=1),
        Entry("Bob likes tea", kind=1, plane="long_term", role=None, conversation=None),
    )
    assert 3 in found(search(reader, "What does Bob like?"))[:2]


def test_who_asks_when_gets_what_holds_a_time() -> None:
    talk = (Entry("the party was great", "Ann"), Entry("the party was yesterday", "Bob", conversation=1))
    assert found(search(reader_of(*talk), "When was the party?"))[0] == 2


def test_a_date_prefers_what_was_said_then() -> None:
    day = 86_400_000_000
    reader = reader_of(*(Entry("we went hiking", conversation=n, said_at=n * 31 * day) for n in range(4)))
    assert found(search(reader, "hiking in March 1970"))[0] == 3


def test_among_people_a_mere_question_ranks_lower() -> None:
    reader = reader_of(Entry("the red house?", "Ann"), Entry("the red house.", "Bob", conversation=1))
    assert found(search(reader, "red house"))[0] == 2


def test_in_a_chat_the_users_own_words_answer_a_first_person_query() -> None:
    reader = reader_of(
        Entry("a blue car is nice", "assistant", role="assistant"),
        Entry("a blue car is nice", "user", conversation=1),
    )
    assert found(search(reader, "which car did I want?"))[0] == 2


def test_what_was_said_around_it_lifts_a_record() -> None:
    reader = reader_of(
        Entry("yes, certainly", conversation=0, said_at=1),
        Entry("nothing here", conversation=1, said_at=0),
        Entry("yes, certainly", conversation=1, said_at=1),
        Entry("do you sail in Norway", conversation=2, said_at=0),
        Entry("yes, certainly", conversation=2, said_at=1),
    )
    assert found(search(reader, "sail Norway"))[:2] == [4, 5]


def test_what_stands_apart_from_its_surroundings_is_not_judged_by_them() -> None:
    """An aside in a conversation about a garden; the rest of the conversation is about the garden."""
    garden = "the roses and the beans in the garden grow well"
    talk = [Entry(garden, conversation=0, said_at=second) for second in range(6)]
    talk[3] = replace(talk[3], text="my dentist moved to the harbour street")
    reader = reader_of(*talk, Entry("we walked along a street", conversation=1), Entry("the dentist", conversation=2))

    def matching(number: int, lead: float) -> dict[str, float]:
        # With a lead this small, there are no leaders.
        target = search(reader, "which street has the dentist", weights=Weights(lead=lead), target=number).target
        assert target is not None
        return {name: normalized for name, (_, normalized, _) in target[1].parts.items()}

    judged, held_back = matching(4, 1e-9), matching(4, 0)
    assert judged["window_words"] == pytest.approx(judged["words"])
    assert judged["window_vector"] == pytest.approx(judged["vector"])
    assert held_back["window_words"] < judged["window_words"]
    assert matching(6, 1e-9) == pytest.approx(matching(6, 0))


@pytest.mark.parametrize(
    "query", ["我的猫在哪里？", "¿Dónde está mi gato?", "Où est mon chat ?", "मेरी बिल्ली कहाँ है", "؟"]
)
def test_queries_in_any_language_are_answered(query: str) -> None:
    reader = reader_of(Entry("我的猫在花园里"), Entry("mi gato está en el jardín"), Entry("बिल्ली बगीचे में है"))
    assert search(reader, query).candidates == 3


# --- scores -----------------------------------------------------------------------------------------------------------


def test_parts_explain_the_order() -> None:
    reader = reader_of(Entry("the cat sleeps", "Ann"), Entry("a dog barks", "Bob"), Entry("cat and dog", "Ann"))
    best = search(reader, "what does Ann's cat do?").best
    strengths = [sum(even * weight for _, even, weight in scored.parts.values()) for scored in best]
    assert strengths == sorted(strengths, reverse=True)
    assert all(0 <= scored.score <= 1 for scored in best)


@pytest.mark.parametrize("part", list(Part))
def test_a_part_that_is_switched_off_has_no_share(part: Part) -> None:
    reader = reader_of(Entry("the cat sleeps", "Ann"), Entry("a dog barks?", "Bob", said_at=9))
    best = search(reader, "when did Ann's cat sleep in May?", weights=Weights().without(part)).best
    assert all(part.value not in scored.parts for scored in best)


def test_a_poor_match_scores_less_than_a_good_one() -> None:
    reader = reader_of(Entry("the cat sleeps in the garden"), Entry("a dog barks", conversation=1))
    good, poor = (search(reader, query).best[0].score for query in ("cat sleeps in the garden", "submarine dog"))
    assert good > poor


def test_what_scores_too_little_is_left_out() -> None:
    reader = reader_of(Entry("the cat sleeps"), Entry("a dog barks", conversation=1))
    scores = [scored.score for scored in search(reader, "cat").best]
    assert len(search(reader, "cat", SearchOptions(min_score=max(scores))).best) == 1
    assert not search(reader, "cat", SearchOptions(min_score=1.1)).best


# --- visibility -------------------------------------------------------------------------------------------------------


def test_only_the_scope_that_is_asked_for_is_seen() -> None:
    other = Scope(subject="anna", project="other")
    reader = reader_of(Entry("cat one"), Entry("cat two", scope=other))
    assert found(search(reader, "cat", scope=other)) == [2]
    assert set(found(search(reader, "cat"))) == {1, 2}


def test_superseded_revisions_are_seen_only_as_of_their_time() -> None:
    old = Entry("lives in Rome", kind=1, plane="long_term", recorded_at=1_000_000, superseded_at=5_000_000)
    new = Entry("lives in Oslo", kind=1, plane="long_term", recorded_at=5_000_000)
    reader = reader_of(old, new)
    assert found(search(reader, "lives")) == [2]
    assert found(search(reader, "lives", SearchOptions(as_of=at(2)))) == [1]
    assert found(search(reader, "lives", SearchOptions(as_of=at(0)))) == []


def test_quarantined_memories_come_only_for_those_who_ask_for_them() -> None:
    reader = reader_of(Entry("cat", kind=1, plane="long_term", status="quarantined"), Entry("cat"))
    assert found(search(reader, "cat")) == [2]
    assert set(found(search(reader, "cat", SearchOptions(quarantined=True)))) == {1, 2}


def test_guarded_planes_must_be_named() -> None:
    reader = reader_of(Entry("cat", kind=1, plane="private"), Entry("cat", kind=1, plane="long_term"))
    assert found(search(reader, "cat")) == [2]
    assert found(search(reader, "cat", SearchOptions(planes=frozenset({Plane.PRIVATE})))) == [1]


TALK = (
    Entry("cat", "Ann", "user", said_at=1_000_000, source="web"),
    Entry("cat", "bot", "assistant", said_at=2_000_000),
    Entry("cat", kind=1, plane="long_term", role=None, said_at=3_000_000, valid_from=0, valid_to=9_000_000),
    Entry("cat", kind=1, plane="resource", role=None, said_at=4_000_000, valid_from=9_000_000),
)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (SearchOptions(kind=HitKind.MESSAGE), {1, 2}),
        (SearchOptions(kind=HitKind.MEMORY), {3, 4}),
        (SearchOptions(planes=frozenset({Plane.RESOURCE})), {1, 2, 4}),
        (SearchOptions(sender="Ann"), {1}),
        (SearchOptions(sender="nobody"), set()),
        (SearchOptions(role=Role.ASSISTANT), {2}),
        (SearchOptions(source="web"), {1}),
        (SearchOptions(said_from=at(2), said_to=at(4)), {2, 3}),
        (SearchOptions(valid_at=at(5)), {1, 2, 3}),
        (SearchOptions(valid_at=at(9)), {1, 2, 4}),
    ],
)
def test_filters_leave_only_what_is_wanted(wanted: SearchOptions, expected: set[int]) -> None:
    assert set(found(search(reader_of(*TALK), "cat", wanted))) == expected


def test_an_empty_memory_is_searched_in_peace() -> None:
    assert search(MemoryReader(FAKE.vectors), "cat").candidates == 0


hidden = st.builds(
    Entry,
    text=st.lists(st.sampled_from(["cat", "dog", "tea", "Ann", "yesterday?"]), min_size=1, max_size=5).map(" ".join),
    sender=st.sampled_from(["Ann", "Bob", "Cid"]),
    role=st.sampled_from(["user", "assistant"]),
    conversation=st.integers(0, 2),
    said_at=st.integers(0, 9),
    scope=st.just(Scope(subject="anna", project="hidden")),
)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 9), hidden), max_size=12))
def test_nothing_outside_the_scope_can_move_a_score(intruders: list[tuple[int, Entry]]) -> None:
    mine = Scope(subject="anna", project="mine")
    seen = [
        Entry("the cat drinks tea", "Ann", said_at=3, scope=mine),
        Entry("a dog barks", "Bob", said_at=5, scope=mine),
        Entry("tea was yesterday?", "Ann", conversation=1, said_at=1, scope=mine),
    ]
    alone = search(reader_of(*seen), "when did Ann drink tea", scope=mine)
    mixed = MemoryReader(FAKE.vectors)
    order: list[Entry] = list(seen)
    for place, intruder in intruders:
        order.insert(place, intruder)
    numbers = dict(zip(mixed.add(*order), order, strict=True))
    among = search(mixed, "when did Ann drink tea", scope=mine)
    assert [numbers[scored.number].text for scored in among.best] == [
        seen[scored.number - 1].text for scored in alone.best
    ]
    for one, other in zip(alone.best, among.best, strict=True):
        assert one.score == other.score
        assert one.parts == other.parts


@settings(deadline=None, max_examples=60)
@given(steps)
def test_a_view_that_grew_ranks_like_one_built_at_once(history: list[tuple[str, object]]) -> None:
    reader = MemoryReader(FAKE.vectors)
    kept = PartitionSearcher(ViewCache(10_000_000), FAKE.fingerprint)
    query, wanted = "when did Ann see the cat and the rain", SearchOptions(top_k=50)
    vector = FAKE.vectors([query])[0]
    for step in history:
        play(reader, step)
        grown = kept.rank(reader, HERE, query, vector, wanted)
    fresh = PartitionSearcher(ViewCache(10_000_000), FAKE.fingerprint)
    built = fresh.rank(reader, HERE, query, vector, wanted)
    assert grown == built


class TwoPartitions(MemoryReader):
    """A reader over the partitions of several readers."""

    def __init__(self, *readers: MemoryReader) -> None:
        super().__init__(None)
        self._readers = {reader.partitions()[0]: reader for reader in readers}

    def partitions(self) -> Sequence[Partition]:
        return list(self._readers)

    def change_of(self, partition: Partition) -> int:
        return self._readers[partition].change_of(partition)

    def delta(self, partition: Partition, since: int, embedder: str) -> PartitionDelta:
        return self._readers[partition].delta(partition, since, embedder)


def test_partitions_are_ranked_together() -> None:
    own, shared = (
        reader_of(Entry("my cat sleeps"), Entry("tea"), Entry("rain")),
        MemoryReader(FAKE.vectors, Scope().partition),
    )
    shared.add(*(Entry("all dogs bark", scope=Scope()) for _ in range(3)), Entry("cat", scope=Scope()))
    ranked = search(TwoPartitions(own, shared), "cat sleeps")
    assert ranked.candidates == 7
    assert ranked.best[0].number == 1


# --- reasons for absence ----------------------------------------------------------------------------------------------


def test_a_target_is_shown_with_its_rank() -> None:
    reader = reader_of(Entry("cat"), Entry("dog", conversation=1), Entry("cat sleeps", conversation=2))
    ranked = search(reader, "cat sleeps", SearchOptions(top_k=1), target=2)
    assert ranked.target is not None
    rank, scored = ranked.target
    assert (rank, scored.number) == (3, 2)
    assert ranked.why_absent is None


@pytest.mark.parametrize(
    ("entry", "wanted", "reason"),
    [
        (Entry("x", superseded_at=5), SearchOptions(), "superseded"),
        (Entry("x", status="quarantined"), SearchOptions(), "quarantined"),
        (Entry("x", scope=Scope(subject="anna", project="p")), SearchOptions(), "another scope"),
        (Entry("x", "Bob"), SearchOptions(sender="Ann"), "filtered out by sender"),
        (Entry("x", recorded_at=9_000_000), SearchOptions(as_of=at(3)), "recorded later"),
        (Entry("x", valid_to=1), SearchOptions(valid_at=at(3)), "not valid"),
        (Entry("x", kind=1, plane="private"), SearchOptions(), "filtered out by planes"),
    ],
)
def test_an_absent_target_is_explained(entry: Entry, wanted: SearchOptions, reason: str) -> None:
    mine = replace(HERE, project="mine") if entry.scope.project else HERE
    reader = reader_of(entry, Entry("y", "Ann"))
    ranked = search(reader, "x", wanted, scope=mine, target=1)
    assert ranked.target is None
    assert reason in (ranked.why_absent or "")


def test_a_target_that_is_nowhere_is_explained_too() -> None:
    assert "not in any partition" in (search(reader_of(Entry("x")), "x", target=99).why_absent or "")


def test_names_in_the_query_are_not_embedded() -> None:
    reader = reader_of(Entry("x", "Ann"), Entry("y", "Bob"))
    searcher = PartitionSearcher(ViewCache(1_000_000), FAKE.fingerprint)
    assert (
        searcher.text_to_embed(reader, HERE, "What does Ann's brother eat?", SearchOptions())
        == "What does brother eat?"
    )
    assert searcher.text_to_embed(reader, HERE, "What does he eat?", SearchOptions()) == "What does he eat?"


def test_the_product_of_a_row_does_not_depend_on_its_place() -> None:
    row = np.random.default_rng(1).normal(size=384).astype(np.float32)
    many = np.tile(row, (1001, 1))
    assert len(set(np.einsum("ij,j->i", many, row[::-1].copy()).tolist())) == 1


def test_what_one_search_saw_is_not_taken_for_what_another_sees() -> None:
    """Facts about the visible rows are cached between searches, separately for each scope, time and quarantine."""
    reader = reader_of(
        Entry("cat one", scope=Scope(subject="anna", app="a"), recorded_at=1),
        Entry("cat two", scope=Scope(subject="anna", app="b"), recorded_at=5_000_000),
        Entry("cat three", status="quarantined", recorded_at=1),
    )
    searcher = PartitionSearcher(ViewCache(10_000_000), FAKE.fingerprint)

    def numbers(scope: Scope, wanted: SearchOptions) -> list[int]:
        return sorted(found(searcher.rank(reader, scope, "cat", None, wanted)))

    for _ in range(2):
        assert numbers(HERE, SearchOptions()) == [1, 2]
        assert numbers(Scope(subject="anna", app="a"), SearchOptions()) == [1]
        assert numbers(Scope(subject="anna", app="b"), SearchOptions()) == [2]
        assert numbers(HERE, SearchOptions(as_of=at(2))) == [1]
        assert numbers(HERE, SearchOptions(quarantined=True)) == [1, 2, 3]
    reader.add(Entry("cat four", scope=Scope(subject="anna", app="c")))
    assert numbers(HERE, SearchOptions()) == [1, 2, 4]
    assert numbers(Scope(subject="anna", app="c"), SearchOptions()) == [4]
