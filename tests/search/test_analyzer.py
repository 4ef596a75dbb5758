"""Text analysis for search."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.checks import MAX_TEXT_CHARS
from holdfast.ports import TextFlag
from holdfast.search.analyzer import (
    MAX_COUNT,
    PIECE_CHARS,
    TextAnalyzer,
    is_spaceless,
    pack_terms,
    split_pieces,
    term_hash,
    unpack_terms,
)

ANALYZER = TextAnalyzer()
storable = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


def terms(text: str) -> set[int]:
    return set(unpack_terms(ANALYZER.analyze(text).terms))


def flags(text: str) -> TextFlag:
    return ANALYZER.analyze(text).flags


def test_the_hash_of_a_term_is_the_same_for_ever() -> None:
    assert term_hash("memory") == 16762594610787515322


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Paintings", "painting"),
        ("CAFÉ", "cafe"),
        ("ﬁne", "fine"),
        ("Ｔｏｋｙｏ", "tokyo"),
        ("Anna's", "anna"),
        ("Anna’s", "anna"),
        ("l'homme", "homme"),
        ("ёлка", "елка"),
        ("книги", "книга"),
        ("STRASSE", "straße"),
    ],
)
def test_forms_of_one_word_are_one_term(one: str, other: str) -> None:
    assert terms(one) & terms(other)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("call parse_http_date here", "date"),
        ("call parse_http_date here", "parse_http_date"),
        ("the parseHttpDate method", "http"),
        ("the parseHttpDate method", "parseHttpDate"),
        ("HTTPServer listens", "server"),
        ("see os.path.join", "path"),
        ("see os.path.join", "os.path.join"),
        ("我的猫很可爱", "猫"),
        ("我的猫很可爱", "可爱"),
        ("ฉันรักแมว", "แมว"),
        ("나는 서울에 산다", "서울"),
        ("नमस्ते दुनिया", "दुनिया"),
    ],
)
def test_a_part_is_found_by_itself(text: str, part: str) -> None:
    sought = {term for word in part.split() for term in ANALYZER.query_terms_of(word)}
    assert sought
    assert sought & terms(text)


def test_different_words_stay_different() -> None:
    assert not terms("cat") & terms("dog")
    assert not terms("3.5") & terms("5")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We met yesterday.", True),
        ("It was in 2021", True),
        ("At 10:30 then", True),
        ("Nos vimos ayer", True),
        ("我昨天去了公园", True),
        ("Wir trafen uns gestern", True),
        ("I like tea", False),
        ("我喜欢喝茶", False),
        ("Order 12345 is ready", False),
    ],
)
def test_time_expressions_are_noticed(text: str, expected: bool) -> None:
    assert bool(flags(text) & TextFlag.TIME_EXPRESSION) is expected


@pytest.mark.parametrize(
    ("text", "only", "ends"),
    [
        ("How are you?", True, True),
        ("Really? And then?", True, True),
        ("Wow, great! What happened?", True, True),
        ("I bought a red bicycle in Lisbon. Do you like it?", False, True),
        ("Do you like it? I bought it in Lisbon last week.", False, False),
        ("你好吗？", True, True),
        ("I like tea.", False, False),
        ("?", True, True),
    ],
)
def test_questions_are_noticed(text: str, only: bool, ends: bool) -> None:
    found = flags(text)
    assert (bool(found & TextFlag.QUESTION_ONLY), bool(found & TextFlag.ENDS_ASKING)) == (only, ends)


def test_a_short_text_is_one_piece_and_a_long_one_is_marked() -> None:
    assert ANALYZER.analyze("short").pieces == ("short",)
    assert not flags("short") & TextFlag.LONG
    assert flags("word " * 400) & TextFlag.LONG


@given(st.text("ab .\n。", max_size=6000))
def test_pieces_hold_the_whole_text_and_none_is_too_long(text: str) -> None:
    pieces = list(split_pieces(text))
    assert all(0 < len(piece) <= PIECE_CHARS for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_pieces_end_where_sentences_do() -> None:
    text = "This is one sentence of a long story. " * 60
    assert all(piece.endswith(".") for piece in ANALYZER.analyze(text).pieces)


@given(storable)
def test_any_text_can_be_analyzed(text: str) -> None:
    found = ANALYZER.analyze(text)
    assert sum(unpack_terms(found.terms).values()) == found.length
    assert len(found.pieces) >= 1 or not text.strip()


@given(storable)
def test_the_same_text_is_analyzed_the_same_by_another_analyzer(text: str) -> None:
    assert TextAnalyzer().analyze(text) == ANALYZER.analyze(text)


@given(st.dictionaries(st.integers(0, 2**64 - 1), st.integers(1, MAX_COUNT), max_size=30))
def test_terms_survive_packing(counts: dict[int, int]) -> None:
    assert unpack_terms(pack_terms(counts)) == counts


def test_a_count_that_does_not_fit_is_capped() -> None:
    assert unpack_terms(pack_terms({1: 1_000_000})) == {1: MAX_COUNT}


@pytest.mark.parametrize("unit", ["word another. ", "x", "我", "a.", "?!", "_", "'", "\u0301", "aB", "\n", "\u0e01"])
def test_the_work_on_the_longest_text_is_in_proportion(unit: str) -> None:
    """A text twice as long yields at most about twice the terms and pieces, each of bounded length."""
    whole = ANALYZER.analyze(unit * (MAX_TEXT_CHARS // len(unit)))
    half = ANALYZER.analyze(unit * (MAX_TEXT_CHARS // len(unit) // 2))
    assert whole.length <= 2 * half.length + 8
    assert len(whole.pieces) <= 2 * len(half.pieces) + 2


def test_scripts_without_spaces_are_told_by_most_of_their_letters() -> None:
    assert is_spaceless("我喜欢喝茶 tea")
    assert not is_spaceless("the word 茶 means tea")
    assert not is_spaceless("")


@pytest.fixture
def restless_threads() -> Iterator[None]:
    """Switch threads as often as possible."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("restless_threads")
def test_threads_do_not_meet_in_each_other_s_words() -> None:
    """A stemmer holds its current word as state; the terms must be those of a single thread."""
    starts, ends = ("garden", "violin", "harbour", "lantern"), ("ization", "fulness", "iveness", "ational", "ements")
    words = ["".join(parts) for parts in itertools.product(starts, ends, map(chr, range(97, 123)), ("s", "ed", "ing"))]
    expected = [ANALYZER.terms_of(word) for word in words]
    shared = TextAnalyzer()
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(lambda turn=turn: [shared.terms_of(word) for word in words[turn::4]]) for turn in range(4)]
        found = [run.result() for run in runs]
    assert found == [expected[turn::4] for turn in range(4)]
