"""Rendering memory for a model: one label, one line per record, within a budget."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.reference_message import LABEL, MessageBudget, reference_message
from holdfast.domain.results import Hit, HitKind
from holdfast.domain.scope import Scope
from holdfast.domain.visible_text import one_line

AT = datetime(2026, 3, 1, tzinfo=UTC)
ANYTHING = st.text(st.characters(exclude_categories=("Cs",)))


def memory(text: str) -> Hit:
    return Hit("mem_1", HitKind.MEMORY, text, 1.0, Scope(), (), AT)


def message(text: str, sender: str | None = None) -> Hit:
    return Hit("msg_1", HitKind.MESSAGE, text, 1.0, Scope(), (), AT, said_at=AT, sender=sender)


@given(ANYTHING)
def test_one_line_is_one_line_of_visible_text(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    assert not {unicodedata.category(char) for char in line} & {"Cc", "Co", "Cs", "Zl", "Zp"}
    assert line == line.strip()
    assert one_line(line) == line


@given(st.lists(ANYTHING, max_size=6), st.integers(1, 2_000), st.lists(st.none() | ANYTHING, min_size=6, max_size=6))
def test_whatever_is_shown_fits_and_has_a_line_each(texts: list[str], budget: int, senders: list[str | None]) -> None:
    hits = [message(text, sender) for text, sender in zip(texts, senders, strict=False)]
    kept, shown = reference_message(hits, MessageBudget(budget))
    assert len(shown) <= budget
    assert kept == hits[: len(kept)]
    assert (not shown) == (not kept)
    if shown:
        lines = shown.splitlines()
        assert lines[0] == LABEL
        assert [line.partition(". ")[0] for line in lines[1:]] == [str(place + 1) for place in range(len(kept))]
        assert all(line.partition(". ")[2].startswith("[") for line in lines[1:])


def test_a_memory_and_a_message_say_where_they_come_from() -> None:
    _, shown = reference_message(
        [memory("Ana lives in Lisbon."), message("I moved.", "Ana"), message("Who?")], MessageBudget(1_000)
    )
    assert shown.splitlines()[1:] == [
        "1. [memory, 2026-03-01] Ana lives in Lisbon.",
        "2. [said by Ana, 2026-03-01] I moved.",
        "3. [said by someone, 2026-03-01] Who?",
    ]


def test_the_first_is_cut_to_fit_and_the_next_left_out() -> None:
    kept, shown = reference_message([memory("long " * 100), memory("short")], MessageBudget(len(LABEL) + 120))
    assert len(kept) == 1
    assert shown.endswith("…")
    assert len(shown) == len(LABEL) + 120


def test_what_cannot_be_shown_sensibly_is_not_shown() -> None:
    assert reference_message([memory("long " * 100)], MessageBudget(len(LABEL) + 10)) == ([], "")
    assert reference_message([], MessageBudget(1_000)) == ([], "")
