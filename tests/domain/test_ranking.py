"""The arithmetic of ranking, without records."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.domain.ranking import (
    ALONE,
    AROUND_AT,
    LEADERS,
    MATCHING,
    MEANING,
    PARTS,
    VECTOR_AT,
    FloatArray,
    Part,
    Traits,
    Weights,
    best_first,
    bm25,
    bm25_idf,
    combine_scores,
    context_unlikeness,
    effective_lead,
    effective_weights,
    find_leaders,
    floor_context_scores,
    normalize_rows,
    rank_of,
    saturate,
    window_cosines,
    words_match,
)
from holdfast.errors import InvalidInput

values = st.floats(-1, 1, width=32)


def floats(*given_values: float) -> FloatArray:
    return np.array(given_values, np.float32)


def raw_of(**parts: list[float]) -> FloatArray:
    size = len(next(iter(parts.values())))
    return np.array([parts.get(part.value, [0.0] * size) for part in PARTS], np.float32)


def test_normalized_scores_lie_between_zero_and_one() -> None:
    assert normalize_rows(floats(2, 4, 3)).tolist() == [0, 1, 0.5]


def test_equal_scores_carry_nothing() -> None:
    assert normalize_rows(floats(0.7, 0.7)).tolist() == [0, 0]


def test_a_rare_term_says_more_than_a_common_one() -> None:
    rare, common = bm25_idf(floats(1, 90), 100)
    assert rare > common > 0


def test_a_term_that_every_document_holds_never_counts_against_one() -> None:
    assert bm25_idf(floats(100), 100)[0] >= 0


def test_bm25_prefers_the_shorter_of_two_texts_with_the_same_match() -> None:
    short, long = bm25(np.array([[1, 1]], np.float32), floats(2.0), floats(5, 50), 20.0)
    assert short > long


def test_bm25_of_no_match_is_zero() -> None:
    assert bm25(np.array([[0.0]], np.float32), floats(2.0), floats(5), 5.0).tolist() == [0]


@given(st.lists(st.floats(0, 1e6, width=32), min_size=2, max_size=20))
def test_saturation_keeps_the_order_and_stays_below_one(scores: list[float]) -> None:
    before = floats(*scores)
    after = saturate(before)
    assert (after <= 1).all()
    assert (np.diff(after[np.argsort(before)]) >= 0).all()


@given(
    st.lists(st.lists(values, min_size=3, max_size=3), min_size=1, max_size=3), st.lists(values, min_size=3, max_size=3)
)
def test_the_cosine_of_a_window_needs_no_mean(rows: list[list[float]], asked: list[float]) -> None:
    vectors = np.array(rows) + 2.0
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    query = np.array(asked) + 2.0
    query /= np.linalg.norm(query)
    mean = vectors.mean(axis=0)
    products = sum(vectors[a] @ vectors[b] for a in range(len(rows)) for b in range(a))
    found = window_cosines(floats((vectors @ query).sum()), floats(len(rows)), floats(products))
    assert found[0] == pytest.approx(mean @ query / np.linalg.norm(mean), abs=1e-5)


def test_the_best_come_first_and_ties_in_the_order_of_their_making() -> None:
    scores = floats(0.5, 0.9, 0.5, 0.5)
    assert best_first(scores, np.array([7, 1, 3, 5]), 3).tolist() == [1, 2, 3]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.randoms(), st.integers(1, 10))
def test_the_order_does_not_depend_on_the_order_of_candidates(levels: list[int], random: object, limit: int) -> None:
    scores, numbers = floats(*levels) / 4, np.arange(len(levels)) * 3
    shuffle = np.array(random.sample(range(len(levels)), len(levels)))  # type: ignore[attr-defined]
    straight = numbers[best_first(scores, numbers, limit)]
    shuffled = numbers[shuffle][best_first(scores[shuffle], numbers[shuffle], limit)]
    assert straight.tolist() == shuffled.tolist()


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30))
def test_a_rank_is_the_place_in_that_order(levels: list[int]) -> None:
    scores, numbers = floats(*levels) / 4, np.arange(len(levels))
    order = best_first(scores, numbers, len(levels)).tolist()
    assert [rank_of(at, scores, numbers) for at in order] == list(range(1, len(levels) + 1))


def test_noise_in_the_last_bits_does_not_decide() -> None:
    assert best_first(floats(0.5, 0.5 + 1e-7), np.array([1, 2]), 1).tolist() == [0]


# --- weights ----------------------------------------------------------------------------------------------------------


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(InvalidInput, match="speaker"):
        Weights(speaker=-0.1)


@pytest.mark.parametrize("part", PARTS)
def test_every_part_can_be_switched_off(part: Part) -> None:
    weights = Weights().without(part)
    assert weights.of(part) == 0
    assert all(weights.of(other) == Weights().of(other) for other in PARTS if other is not part)


def test_the_plain_hybrid_has_two_parts_and_holds_for_all_records() -> None:
    plain = Weights.plain()
    for traits in (Traits(), Traits(people=2, mean_length=500, spaceless=True, static_vectors=True)):
        used = {
            part: value for part, value in zip(PARTS, effective_weights(plain, traits).tolist(), strict=True) if value
        }
        assert used == pytest.approx({Part.VECTOR: 0.7, Part.WORDS: 0.3})


def weight(part: Part, **traits: object) -> float:
    return float(effective_weights(Weights(), Traits(**traits))[PARTS.index(part)])  # type: ignore[arg-type]


def test_questions_rank_lower_only_among_people() -> None:
    assert weight(Part.STATEMENT, people=2) > 0
    assert weight(Part.STATEMENT, people=1) == 0
    assert weight(Part.STATEMENT, people=2, assistant=True) == 0


def test_own_words_count_only_where_an_assistant_speaks_too() -> None:
    assert weight(Part.OWN_WORDS, assistant=True) > 0
    assert weight(Part.OWN_WORDS) == 0


def test_the_weights_are_for_messages() -> None:
    assert effective_weights(Weights(), Traits(people=2, mean_length=20.0)) == pytest.approx(
        [0.0 if part is Part.OWN_WORDS else Weights().of(part) for part in PARTS]
    )


@pytest.mark.parametrize("parts", [MEANING, MATCHING])
def test_the_longer_texts_are_the_more_they_stand_for_themselves(parts: tuple[Part, ...]) -> None:
    own, *around = parts
    for part in around:
        falling = [weight(part, people=2, mean_length=length) for length in (20.0, 100.0, 400.0)]
        assert falling == sorted(falling, reverse=True)
        assert falling[0] > 3 * falling[-1]
    shares = [
        weight(own, people=2, mean_length=length) / whole(parts, people=2, mean_length=length)
        for length in (20.0, 100.0, 400.0)
    ]
    assert shares == sorted(shares)
    assert shares[-1] > 1.5 * shares[0]


def whole(parts: tuple[Part, ...], **traits: object) -> float:
    return sum(weight(part, **traits) for part in parts)


def test_words_count_as_much_in_texts_of_any_length() -> None:
    assert whole(MATCHING, mean_length=400.0) == pytest.approx(whole(MATCHING, mean_length=20.0))


@pytest.mark.parametrize("static", [False, True])
def test_vectors_count_less_in_longer_texts_down_to_those_of_a_piece(static: bool) -> None:
    counts = [whole(MEANING, mean_length=length, static_vectors=static) for length in (20.0, 30.0, 90.0, 150.0, 900.0)]
    assert counts[0] == pytest.approx(counts[1])
    assert counts[1] > counts[2] > counts[3]
    assert counts[3] == pytest.approx(counts[4])
    assert counts[3] == pytest.approx(counts[0] * (0.52 if static else 0.52**0.5))


def test_in_scripts_without_spaces_vectors_only_order_what_words_leave_open_at_any_length() -> None:
    counts = [whole(MEANING, mean_length=length, spaceless=True) for length in (20.0, 900.0)]
    assert counts[0] == pytest.approx(counts[1])
    assert 0 < counts[0] < 0.1 * whole(MATCHING)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_off_stays_off(part: Part) -> None:
    traits = Traits(people=2, mean_length=400.0, static_vectors=True)
    assert effective_weights(Weights().without(part), traits)[PARTS.index(part)] == 0


def test_words_count_by_how_well_the_best_of_them_match() -> None:
    assert weight(Part.WORDS, words_match=0.5) == pytest.approx(weight(Part.WORDS) / 2)
    assert weight(Part.VECTOR, words_match=0.5) == weight(Part.VECTOR)


@pytest.mark.parametrize("records", [10, 1000, 100_000])
def test_a_few_words_that_no_other_record_holds_match_well_among_any_number(records: int) -> None:
    rare = float(bm25_idf(floats(1), records)[0])
    one, good, many = (words_match(float(saturate(floats(terms * rare))[0]), records) for terms in (1, 3, 300))
    assert one == pytest.approx(0.5, abs=1e-3)
    assert good == pytest.approx(1, abs=1e-3)
    assert 1.9 < many <= 2


def test_words_that_do_not_match_count_least_but_are_still_shown() -> None:
    assert 0 < words_match(0.0, 100) < words_match(0.1, 100)


def test_static_vectors_and_scripts_without_spaces_lean_on_words() -> None:
    trusted = weight(Part.VECTOR)
    assert trusted > weight(Part.VECTOR, static_vectors=True) > weight(Part.VECTOR, spaceless=True) > 0
    assert weight(Part.VECTOR, static_vectors=True, spaceless=True) == weight(Part.VECTOR, spaceless=True)


# --- scores -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(values, st.floats(0, 0.875, width=32)), min_size=1, max_size=20))
def test_scores_lie_between_zero_and_one_and_add_up_from_their_parts(rows: list[tuple[float, float]]) -> None:
    raw = raw_of(vector=[row[0] for row in rows], words=[row[1] for row in rows])
    even = normalize_rows(raw)
    result = combine_scores(raw, even, effective_weights(Weights(), Traits()))
    assert (result.scores >= -1e-5).all()
    assert (result.scores <= 1 + 1e-5).all()
    assert result.scores == pytest.approx(result.weights @ even + result.base, abs=1e-5)


def test_the_only_candidate_scores_by_how_well_it_matches() -> None:
    for cosine in (0.2, 0.9):
        raw = raw_of(vector=[cosine])
        result = combine_scores(raw, normalize_rows(raw), effective_weights(Weights(), Traits()))
        assert result.scores[0] == pytest.approx(cosine)


def test_nothing_in_common_scores_nothing() -> None:
    raw = raw_of(vector=[0.0, 0.0])
    assert combine_scores(raw, normalize_rows(raw), effective_weights(Weights(), Traits())).scores.tolist() == [0, 0]


def led(scores: FloatArray) -> list[float]:
    rows, how_far = find_leaders(scores)
    return [dict(zip(rows.tolist(), how_far.tolist(), strict=True)).get(at, 0.0) for at in range(len(scores))]


def test_the_best_lead_a_tenth_less_for_each_place() -> None:
    scores = np.arange(30, 0, -1).astype(np.float32) / 30
    assert led(scores) == pytest.approx([max(1 - place / LEADERS, 0) for place in range(30)])


def test_where_many_are_the_best_none_leads() -> None:
    assert led(np.ones(50, np.float32)) == [0.0] * 50
    assert led(floats(0, 0, 0)) == [0.0] * 3
    assert led(floats(1, 1, 0)) == pytest.approx([0.9, 0.9, 0])


@given(st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.500000001, 0.9, 1.0]), min_size=1, max_size=60), st.randoms())
def test_who_leads_does_not_depend_on_the_order(given_scores: list[float], chance) -> None:  # type: ignore[no-untyped-def]
    order = list(range(len(given_scores)))
    chance.shuffle(order)
    scores = np.array(given_scores, np.float32)
    assert [led(scores)[at] for at in order] == led(scores[order])


def test_a_record_that_leads_is_not_held_back_by_its_surroundings() -> None:
    """An aside matches by its own meaning; the other record is only next to one that contains a common word."""
    weights = effective_weights(Weights(), Traits(people=2, mean_length=20))
    raw = raw_of(vector=[0.9, 0.3, 0.2], window_words=[0.0, 0.3, 0.1], session_words=[0.0, 0.3, 0.3])
    even = normalize_rows(raw)
    before = weights @ even
    floor_context_scores(even, weights, 0.7, np.zeros(3, np.float32))
    after = weights @ even
    assert before[1] > before[0]
    assert after[0] > after[1]


def test_what_nobody_has_is_not_given_to_leaders() -> None:
    weights = effective_weights(Weights(), Traits())
    raw = raw_of(vector=[0.9, 0.3], window_words=[0.0, 0.0], session_words=[0.2, 0.2])
    even = normalize_rows(raw)
    before = even.copy()
    floor_context_scores(even, weights, 1.0, np.ones(2, np.float32))
    assert (even == before).all()


def test_what_stands_apart_is_judged_by_itself_however_far_from_the_best_it_is() -> None:
    """Each context score of a record is raised to the record's own score of the same kind, and never lowered."""
    weights = effective_weights(Weights(), Traits(people=2, mean_length=20))
    raw = raw_of(
        vector=[0.0, 0.5, 1.0], window_vector=[1.0, 0.2, 0.0], words=[0.0, 0.25, 1.0], window_words=[1.0, 0.0, 0.2]
    )
    even = normalize_rows(raw)
    before = even.copy()
    # With this lead, the record is too far down to be a leader.
    floor_context_scores(even, weights, 1e-9, floats(1, 1, 0.5))
    assert even[PARTS.index(Part.WINDOW_VECTOR)] == pytest.approx([1.0, 0.5, 0.5])
    assert even[PARTS.index(Part.WINDOW_WORDS)] == pytest.approx([1.0, 0.25, 0.5])
    assert even[PARTS.index(Part.SESSION_WORDS)] == pytest.approx(before[PARTS.index(Part.SESSION_WORDS)])


def unit(*values: float) -> FloatArray:
    vector = np.array(values, np.float32)
    return vector / np.float32(np.linalg.norm(vector))


def standing_apart(record: FloatArray, *neighbours: FloatArray, mean: FloatArray) -> float:
    products = floats(sum(float(record @ each) for each in neighbours))
    around = floats(sum(float(mean @ each) for each in neighbours))
    return float(
        context_unlikeness(products, floats(len(neighbours)), floats(float(record @ mean)), around, float(mean @ mean))[
            0
        ]
    )


def test_a_record_stands_apart_from_neighbours_that_are_no_nearer_to_it_than_any_others() -> None:
    common = np.array([0.6, 0, 0, 0], np.float32)
    garden, tooth = unit(0.6, 0.8, 0, 0), unit(0.6, 0, 0.8, 0)
    assert standing_apart(garden, garden, garden, mean=common) == 0
    assert standing_apart(tooth, garden, garden, mean=common) == 1
    assert 0 < standing_apart(tooth, garden, unit(0.6, 0, 0.1, 0.79), mean=common) < 1
    assert standing_apart(tooth, mean=common) == 0


@given(
    st.lists(st.floats(-1, 1, width=32), min_size=4, max_size=4).filter(any),
    st.lists(st.floats(-1, 1, width=32), min_size=4, max_size=4).filter(any),
)
def test_how_far_a_record_stands_apart_is_a_share(one: list[float], other: list[float]) -> None:
    assume(np.linalg.norm(one) > 1e-3 and np.linalg.norm(other) > 1e-3)
    record, neighbour = unit(*one), unit(*other)
    for mean in (np.zeros(4, np.float32), (record + neighbour) / 2, record):
        assert 0 <= standing_apart(record, neighbour, mean=mean) <= 1
        assert standing_apart(record, record, mean=mean * np.float32(0.5)) == 0


def test_what_one_person_says_is_judged_less_by_its_surroundings() -> None:
    """With one speaker, context weighs as little as for a long text; the weights of long texts do not change."""
    short = {people: effective_weights(Weights(), Traits(people=people, mean_length=10)) for people in (1, 2)}
    assert short[1][AROUND_AT] == pytest.approx(short[2][AROUND_AT] * np.float32(ALONE))
    assert short[1][VECTOR_AT] > short[2][VECTOR_AT]
    assert short[1].sum() == pytest.approx(short[2].sum() - Weights().statement)
    long = {people: effective_weights(Weights(), Traits(people=people, mean_length=300)) for people in (1, 2)}
    assert long[1][AROUND_AT] == pytest.approx(long[2][AROUND_AT])


def test_leaders_are_upheld_further_where_people_do_not_talk_to_each_other() -> None:
    weights = Weights(lead=0.4096)
    assert effective_lead(weights, Traits(people=2)) == 0.4096
    assert effective_lead(weights, Traits(people=2, assistant=True)) == 0.4096
    assert effective_lead(weights, Traits(people=1, assistant=True)) == pytest.approx(0.8)
    assert effective_lead(weights, Traits()) == pytest.approx(0.8)


@pytest.mark.parametrize("people", [0, 2])
def test_lead_can_be_switched_off_and_held_as_it_is(people: int) -> None:
    assert effective_lead(Weights(lead=0), Traits(people=people)) == 0
    assert effective_lead(Weights(lead=1), Traits(people=people)) == 1
    assert effective_lead(Weights(lead=0.3, adaptive=False), Traits(people=people)) == 0.3


def test_lead_is_a_share() -> None:
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(InvalidInput, match="lead"):
            Weights(lead=wrong)
    assert Weights.plain().lead == 0
    assert Weights(lead=0.3).without(Part.DATE).lead == 0.3
