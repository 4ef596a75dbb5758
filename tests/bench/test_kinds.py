"""Datasets built from packages: queries are removed from the searched text, and differences are computed correctly."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from bench.retrieval import datasets  # noqa: E402
from bench.retrieval.datasets import Dataset, Question, Record, Scope  # noqa: E402
from bench.retrieval.kinds import chats, comments, compare, documents, functions, measure, prose, shape, talk  # noqa: E402
from bench.retrieval.kinds.__main__ import main  # noqa: E402
from bench.retrieval.kinds.prose import Section  # noqa: E402

MANUAL = """\
.. _mounting:

=================
Mounting a volume
=================

A disk must be mounted before it is used.

.. index:: volumes; unmounting

.. _unmounting:

Taking it away again
--------------------

See :ref:`the warnings <warnings>` first.

.. setting:: EJECT

EJECT
~~~~~

Whether the tray opens.
"""

MARKDOWN = """\
---
title: Boats
---
# Boats

Of all kinds.

```sh
# not a heading
```

## How to [moor](moor.md) a `boat`

With a rope.
"""

MODULE = '''\
class Harbour:
    def moor(self, boat):
        """Tie a boat to a free ring.

        Rings are given out in their order.
        """
        ring = self.rings.pop()
        return ring.tie(boat)

    def name(self):
        """Name."""
        label = self.label
        return label


@cached
async def depth():
    # How deep it is.
    return 3
'''


# --- manuals ----------------------------------------------------------------------------------------------------------


def test_a_heading_is_parted_from_the_text_below_it() -> None:
    found = prose.sections(MANUAL, markdown=False)
    assert found == [
        Section("Mounting a volume", "A disk must be mounted before it is used."),
        Section("Taking it away again", "See `the warnings` first."),
        Section("EJECT", "Whether the tray opens."),
    ]


def test_markdown_headings_are_found_outside_of_code_alone() -> None:
    found = prose.sections(MARKDOWN, markdown=True)
    assert [section.heading for section in found] == ["Boats", "How to moor a boat"]
    assert "# not a heading" in found[0].text


@pytest.mark.parametrize(
    ("heading", "asking"),
    [
        ("How to moor a boat", True),
        ("EJECT_TRAY", True),
        ("useRouter()", True),
        ("Introduction", False),
        ("See also", False),
        ("See also:", False),
        ("1.2", False),
    ],
)
def test_a_heading_asks_if_it_says_what_is_below_it(heading: str, asking: bool) -> None:
    assert prose.asks(heading) is asking


def test_a_heading_that_stands_twice_asks_for_nothing() -> None:
    once, twice = Section("About ropes", "x"), Section("About boats", "x")
    found = documents.asking({"one": [once, twice], "two": [twice]})
    assert found == [("one", 0, once)]


def test_a_passage_belongs_to_the_section_in_which_it_begins() -> None:
    line = "one two three four five six seven eight nine ten\n"
    parts = [Section("first", line * 12), Section("second", line * 3), Section("third", line * 10)]
    cut = documents.passages_of(parts)
    assert [(section, shape.words(text)) for section, text in cut] == [(0, 110), (0, 110), (2, 30)]


# --- functions --------------------------------------------------------------------------------------------------------


def test_a_docstring_is_taken_out_of_its_function() -> None:
    moor, name, depth = functions.functions(MODULE)
    assert moor.text == "def moor(self, boat):\n    ring = self.rings.pop()\n    return ring.tie(boat)"
    assert (moor.name, moor.summary) == ("Harbour.moor", "Tie a boat to a free ring.")
    assert moor.details == "Rings are given out in their order."
    assert (name.summary, functions.asks(moor), functions.asks(name)) == ("Name.", True, False)
    assert depth.text == "@cached\nasync def depth():\n    # How deep it is.\n    return 3"
    assert not functions.asks(depth)


def test_a_docstring_that_says_the_name_again_does_not_ask() -> None:
    source = 'def tie_a_boat_up(x):\n    """Tie a boat up."""\n    y = x\n    return y\n'
    assert not functions.asks(functions.functions(source)[0])


# --- source files -----------------------------------------------------------------------------------------------------


def test_a_comment_asks_for_the_piece_that_holds_its_definition() -> None:
    filling = [f"use harbour::part{number};" for number in range(39)]
    lines = ["/// Counts all the boats in the harbour. Slow.", "#[inline]", "pub fn count() -> usize {", "    0", "}"]
    first, second = comments.pieces("\n".join([*filling, "let x = 1;", "", *lines]))
    assert first.asked == ()
    assert second.asked == ("Counts all the boats in the harbour.",)
    assert second.text == "\n".join(lines[1:])


def test_every_second_comment_stays_in_the_text() -> None:
    source = "\n".join(
        f"// Boat{number} returns the boat of that number.\nfunc Boat{number}() {{}}\n" for number in "123"
    )
    [piece] = comments.pieces(source)
    assert [query.split()[0] for query in piece.asked] == ["Boat1", "Boat3"]
    assert "Boat2 returns" in piece.text
    assert "Boat1 returns" not in piece.text


@pytest.mark.parametrize(
    "source",
    [
        "// Copyright of all boats is held by us.\nfunc Boat() {}",
        "// Too short.\nfunc Boat() {}",
        "    // Now the boat is moved to its place.\n    const place = boat.move();",
        "// This says something of nothing in particular here.\n\nfunc Boat() {}",
    ],
)
def test_other_comments_do_not_ask(source: str) -> None:
    assert list(comments.comments(source.split("\n"))) == []


def test_block_comments_are_read_to_their_end() -> None:
    source = "  /**\n   * Ties the {@link Boat} to a ring.\n   *\n   * @param boat which\n   */\n  moor(boat) {"
    assert [comment.text for comment in comments.comments(source.split("\n"))] == ["Ties the Boat to a ring."]


# --- chats and talk ---------------------------------------------------------------------------------------------------


def test_a_section_is_said_in_part_and_answered_with_the_rest() -> None:
    line = "ropes are tied to rings along the quay every day\n"
    exchange = chats.of_section("boats", "How to moor", line * 10)
    assert exchange is not None
    assert (exchange.said.count("\n"), exchange.answered.count("ropes")) == (3, 6)
    assert chats.of_section("boats", "Tied to rings", line * 10) is None
    assert chats.of_section("boats", "How to moor", line) is None


def test_an_aside_is_moved_to_another_session() -> None:
    scope = talk.with_asides(_conversation(), talk.beside)
    session = {record.id: record.session_id for record in scope.records}
    before = {record.id: record.session_id for record in _conversation().records}
    asked = {gold for question in scope.questions for gold in question.gold}
    assert len(scope.records) == len(before)
    assert asked
    assert all(session[gold] != before[gold] for gold in asked)


def test_an_aside_within_a_turn_is_part_of_its_text() -> None:
    scope = talk.with_asides(_conversation(), talk.within)
    texts = {record.id: record.text for record in scope.records}
    told = {record.id: record for record in _conversation().records}
    for question in scope.questions:
        # The question's id is that of the turn that was its evidence.
        aside = told[question.qid]
        [host] = question.gold
        assert aside.text in texts[host]
        assert told[host].session_id != aside.session_id
        assert aside.id not in texts


def test_what_is_told_in_passing_has_nothing_of_its_own_talk_around_it() -> None:
    told, amid = _conversation(), replace(_conversation(), name="others")
    scope = talk.in_passing(told, amid, talk.beside)
    asked = {gold for question in scope.questions for gold in question.gold}
    assert asked
    assert {record.id for record in scope.records if not record.id.startswith("others:")} == asked
    assert [record.id for record in scope.records if record.id not in asked] == [
        f"others:{each.id}" for each in amid.records
    ]


def test_joined_turns_are_of_one_side_and_asked_for_in_the_first_person() -> None:
    scope = talk.joined(_conversation())
    assert [record.role for record in scope.records[:4]] == ["user", "assistant", "user", "assistant"]
    assert scope.records[0].text == "Ana says 0. Ana says 2. Ana says 4."
    assert {question.query for question in scope.questions} == {"What is my boat?"}
    assert [record.timestamp for record in scope.records] == sorted(record.timestamp for record in scope.records)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    dataset = Dataset("talk", (_conversation(),))
    shape.write(dataset, tmp_path)
    assert datasets.load(tmp_path, "talk") == dataset


# --- differences ------------------------------------------------------------------------------------------------------


def test_a_difference_is_paired() -> None:
    found = compare.difference([1.0, 1.0, 0.0, 0.5], [0.0, 1.0, 0.0, 0.5])
    assert found.points == pytest.approx(25)
    assert found.error == pytest.approx(25)
    assert str(found) == "+25.0 ± 25.0"
    assert compare.difference([0.2] * 3, [0.7] * 3).error == pytest.approx(0)
    assert str(compare.difference([0.2] * 3, [0.7] * 3)) == "−50.0 ± 0.0"
    assert math.isinf(compare.difference([1.0], [0.0]).error)


def test_the_best_plain_ranking_is_the_one_compared_with() -> None:
    measured = {name: compare.Quality((0.0, 0.5), (0.0, 0.5)) for name in compare.PLAIN}
    measured["words"] = compare.Quality((0.5, 0.5), (0.5, 0.5))
    measured[compare.FULL] = compare.Quality((1.0, 1.0), (0.5, 1.0))
    assert compare.best_plain(measured) == "words"
    assert compare.row("talk", measured) == (
        "| talk | 2 | 1.000 | 0.500 | words | 0.250 | +50.0 ± 0.0 | +25.0 ± 25.0 |"
    )


def test_every_ranking_is_asked_every_counted_question() -> None:
    records = shape.written_down("quay", [("one", [("a", "Ropes are tied to rings."), ("b", "The tide is low.")])])
    questions = tuple(Question(query, query, (gold,), "own", counted) for query, gold, counted in QUESTIONS)
    found = measure.measured(Dataset("quay", (Scope("quay", records, questions),)), "static", FirstFound())
    assert set(found) == {compare.FULL, *compare.PLAIN}
    assert all(quality.recall == (1.0, 1.0) for quality in found.values())


QUESTIONS = (("Where are ropes tied?", "a", True), ("Is the tide low?", "b", True), ("Whose boat?", "a", False))


class FirstFound:
    """Score the first result only."""

    def one(self, ranked: Iterable[str], gold: Iterable[str]) -> dict[str, float]:
        hit = float(next(iter(ranked), "") in set(gold))
        return {"recall@10": hit, "ndcg@10": hit}

    def mean(self, rows: Sequence[dict[str, float]], key: str) -> float:
        return compare.mean([row[key] for row in rows])

    def unique(self, ids: Iterable[str]) -> list[str]:
        return list(dict.fromkeys(ids))


def _conversation() -> Scope:
    """Three sessions of twelve turns, alternating between Ana and Bo; one question for each of six turns of Ana."""
    records = tuple(
        Record(f"{day}:{turn}", f"s{day}", sender, "user", shape.at(day, turn), f"{sender} says {turn}.")
        for day in range(3)
        for turn in range(12)
        for sender in [("Ana", "Bo")[turn % 2]]
    )
    chosen = random.Random(1).sample([record.id for record in records if record.sender == "Ana"], 6)
    questions = tuple(Question(gold, "What is Ana's boat?", (gold,), "single", counted=True) for gold in chosen)
    return Scope("boats", records, questions)


def test_a_directory_without_data_is_told(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="there is no data; make it with"):
        main(["measure", "--from", str(tmp_path)])
