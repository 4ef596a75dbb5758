"""`demo` shows the steps that the issue requires, offline, and leaves nothing behind."""

from __future__ import annotations

import re
import socket
import tempfile
from pathlib import Path
from typing import Any

import pytest

import holdfast as library
from holdfast.cli import demo

from .conftest import Holdfast

SMALL_WORDS = {"what", "is", "she", "to"}


@pytest.fixture
def steps(holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    def refuse(*_: object) -> None:
        raise AssertionError("the demo must not use the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ran = holdfast("demo", "--json")
    assert ran.code == 0, ran.err
    assert ran.err == ""
    assert list(tmp_path.iterdir()) == []
    return {step["step"]: step["result"] for step in ran.json["steps"]}


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def test_the_best_result_is_found_by_meaning_and_not_by_words(steps: dict[str, Any]) -> None:
    best = steps["search"][0]
    assert "peanuts" in best["text"]
    assert not (words(demo.BY_MEANING) - SMALL_WORDS) & words(best["text"])
    (explained,) = steps["explain"]["hits"]
    raw = {part["name"]: part["raw"] for part in explained["components"]}
    assert raw["words"] == 0
    assert raw["vector"] > 0
    assert explained["evidence"]


def test_a_model_is_shown_the_answer_first_and_nothing_of_another_subject(steps: dict[str, Any]) -> None:
    recalled, nothing = steps["recall"]["recalled"], steps["recall"]["nothing"]
    assert "peanuts" in recalled["message"].splitlines()[1]
    assert (nothing["hits"], nothing["message"]) == ([], "")
    assert nothing["reason"].startswith("nothing bears on the query: the best of ")


def test_a_correction_shows_now_and_as_of_shows_then(steps: dict[str, Any]) -> None:
    assert steps["learn"]["evidence"][0]["text"] == "I moved to Lisbon last week."
    assert "Porto" in steps["correct"][0]["text"]
    assert "Lisbon" in steps["as_of"][0]["text"]


def test_the_forget_has_a_preview_and_a_receipt_and_finds_nothing_afterwards(steps: dict[str, Any]) -> None:
    told = steps["forget"]
    assert told["preview"]["messages"] == told["receipt"]["messages"] == len(demo.CONVERSATION)
    assert told["receipt"]["remaining"] == 0
    assert told["found_afterwards"] == []
    assert told["in_file"] is False


def test_it_shows_each_step_with_its_python(holdfast: Holdfast) -> None:
    ran = holdfast("demo")
    assert ran.code == 0
    for call in (
        "memory.add(",
        "memory.search(",
        "memory.explain(",
        "memory.recall(",
        "memory.correct(",
        "as_of=",
        "memory.forget(",
    ):
        assert call in ran.out
    # Less than a minute to read.
    assert len(ran.out.split()) < 560


def test_the_python_it_shows_does_what_it_shows(holdfast: Holdfast, capsys: pytest.CaptureFixture[str]) -> None:
    shown = holdfast("demo", "--json").json["steps"]
    assert all(len(step["code"].splitlines()) <= 3 for step in shown)
    names: dict[str, Any] = {"holdfast": library, "messages": demo.CONVERSATION}
    for step in shown:
        exec(compile(step["code"], step["step"], "exec"), names)
    with names["memory"] as memory:
        assert "peanuts" in capsys.readouterr().out
        assert "Lisbon" in names["learned"].text
        assert memory.search(demo.BY_MEANING, subject="ana") == ()
