"""Chunks hold all text in order, are never empty or too long, and name their section."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.documents.blocks import DocumentBlock, lines_of, paragraphs
from holdfast.documents.chunking import split_into_chunks
from holdfast.documents.limits import CHUNK_CHARS
from holdfast.search.analyzer import PIECE_CHARS

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=30)
SPACES = st.sampled_from([" ", "  ", "\n", ". ", "! ", "\n\n", "\t", ".\n", "。", "\u3000"])
TEXTS = st.lists(st.tuples(WORDS, SPACES), min_size=1, max_size=200).map(lambda parts: "".join(a + b for a, b in parts))
SENTENCE = "The quick brown fox jumps over the lazy dog. "


def are_within(words: Iterable[str], text: Iterable[str]) -> bool:
    """Check that the text holds all words in this order; others may come between them."""
    rest = iter(text)
    return all(word in rest for word in words)


def check(blocks: list[DocumentBlock]) -> list[str]:
    chunks = list(split_into_chunks(blocks))
    assert all(chunk.strip() for chunk in chunks)
    assert all(len(chunk) <= CHUNK_CHARS for chunk in chunks)
    return chunks


def test_a_chunk_is_as_long_as_what_is_embedded_in_one_piece() -> None:
    assert CHUNK_CHARS == PIECE_CHARS


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXTS, max_size=8))
def test_chunks_of_paragraphs_are_the_text_itself(texts: list[str]) -> None:
    chunks = check([DocumentBlock(text) for text in texts])
    assert "".join("".join(chunks).split()) == "".join("".join(texts).split())
    assert " ".join(chunks).split() == " ".join(texts).split()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.builds(DocumentBlock, TEXTS, st.integers(0, 6)), max_size=12))
def test_chunks_under_headings_hold_every_word_in_order(blocks: list[DocumentBlock]) -> None:
    chunks = check(blocks)
    assert are_within(" ".join(block.text for block in blocks).split(), " ".join(chunks).split())


def test_a_chunk_says_which_headings_it_stands_under() -> None:
    blocks = [
        DocumentBlock("Guide", 1),
        DocumentBlock("Set-up", 2),
        DocumentBlock(SENTENCE * 80),
        DocumentBlock("Use", 2),
        DocumentBlock(SENTENCE * 10),
    ]
    chunks = check(blocks)
    assert chunks[0].startswith("Guide\n\nSet-up\n\nThe quick")
    assert len(chunks) > 3
    assert all(chunk.startswith("Guide › Set-up\n\nThe quick") for chunk in chunks[1:-1])
    # The rest of a section is not merged with the next one, however short it is.
    assert chunks[-1].startswith("Guide\n\nUse\n\nThe quick")


def test_chunks_end_where_sentences_do() -> None:
    chunks = check([DocumentBlock((SENTENCE * 200).strip())])
    assert all(chunk.endswith("dog.") for chunk in chunks)
    assert all(len(chunk) > 2 / 3 * CHUNK_CHARS for chunk in chunks[:-1])


def test_short_sections_share_a_chunk_and_long_ones_do_not() -> None:
    short = [block for number in range(5) for block in (DocumentBlock(f"Q{number}", 2), DocumentBlock("Yes."))]
    assert check(short) == ["Q0\n\nYes.\n\nQ1\n\nYes.\n\nQ2\n\nYes.\n\nQ3\n\nYes.\n\nQ4\n\nYes."]
    long = [block for number in range(5) for block in (DocumentBlock(f"Q{number}", 2), DocumentBlock(SENTENCE * 8))]
    assert [chunk[:2] for chunk in check(long)] == ["Q0", "Q1", "Q2", "Q3", "Q4"]


def test_headings_without_text_are_kept() -> None:
    assert check([DocumentBlock("A", 1), DocumentBlock("B", 2), DocumentBlock("C", 1)]) == ["A\n\nB\n\nC"]
    assert are_within(
        [f"h{n}" for n in range(500)], " ".join(check([DocumentBlock(f"h{n}", 1) for n in range(500)])).split()
    )


def test_a_heading_as_long_as_a_chapter_is_text() -> None:
    chunks = check([DocumentBlock("word " * 1000, 1), DocumentBlock("body")])
    assert " ".join(chunks).split() == ["word"] * 1000 + ["body"]


SHAPES: dict[str, Callable[[int], list[DocumentBlock]]] = {
    "sentences": lambda size: [DocumentBlock(SENTENCE * (size // len(SENTENCE)))],
    "one word": lambda size: [DocumentBlock("x" * size)],
    "spaces": lambda size: [DocumentBlock("x" + " " * size + "x")],
    "full stops": lambda size: [DocumentBlock("." * size)],
    "ends of sentences": lambda size: [DocumentBlock(". " * (size // 2))],
    "lines": lambda size: [DocumentBlock("a\n" * (size // 2))],
    "blank lines": lambda size: [DocumentBlock(part) for part in paragraphs(lines_of("a\n\n \n" * (size // 5)))],
    "han": lambda size: [DocumentBlock("字" * size)],
    "headings": lambda size: [DocumentBlock(f"heading {n}", n % 6 + 1) for n in range(size // 12)],
    "short blocks": lambda size: [DocumentBlock("ab")] * (size // 2),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_two_million_characters_take_ten_times_as_long_as_two_hundred_thousand(shape: str) -> None:
    """Measured in this thread's CPU time, with room for noise; quadratic work would take a hundred times as long."""

    def seconds(size: int) -> float:
        blocks = SHAPES[shape](size)
        start = time.thread_time()
        check(blocks)
        return time.thread_time() - start

    small, large = min(seconds(200_000) for _ in range(3)), seconds(2_000_000)
    assert large < 40 * max(small, 0.002)
