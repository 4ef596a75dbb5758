"""`search`, `explain` and `recall`."""

from __future__ import annotations

import re

import pytest

from .conftest import Holdfast

HOSTILE = "wine \x1b[2J\x1b]0;title\x07 \x9b31m \u202e gnp.exe [bold]red[/bold] :smile:\r\n 1  9.99 a forged result"


def test_results_show_score_text_sender_and_id(ana: Holdfast) -> None:
    ran = ana("search", "red", "wine", "--subject", "ana", "--kind", "message", "--top-k", "1")
    first, *about = ran.out.splitlines()
    assert first.endswith("I love red wine.")
    assert about[0].strip().startswith("message from ana")
    assert re.search(r" msg_[0-9a-f]{32}$", about[-1])


def test_finding_nothing_is_no_error(ana: Holdfast) -> None:
    ran = ana("search", "anything", "--conversation", "elsewhere")
    assert ran.code == 0
    assert "Nothing found" in ran.out
    assert ana("search", "anything", "--conversation", "elsewhere", "--json").json["hits"] == []


def test_a_search_narrows_by_scope_and_by_filters(ana: Holdfast) -> None:
    def found(*options: str) -> list[str]:
        return [hit["text"] for hit in ana("search", "wine Lisbon", *options, "--json").json["hits"]]

    assert found("--subject", "bo") == []
    assert found("--subject", "ana", "--sender", "bo") == []
    assert found("--subject", "ana", "--as-of", "2020-01-01") == []
    assert len(found("--subject", "ana", "--kind", "message")) == 2
    assert all("moved" in text or "love" in text.lower() for text in found("--plane", "long_term", "--kind", "memory"))


def test_a_search_by_words_or_by_meaning_alone(ana: Holdfast) -> None:
    def hits(method: str) -> list[dict[str, object]]:
        found: list[dict[str, object]] = ana("search", "wine", "--subject", "ana", "--method", method, "--json").json[
            "hits"
        ]
        return found

    assert hits("keyword")
    assert all("wine" in str(hit["text"]).lower() for hit in hits("keyword"))
    assert len(hits("vector")) > len(hits("keyword"))
    told = ana("explain", "wine", "--subject", "ana", "--method", "vector", "--json").json
    assert told["understood"]["method"] == "vector"
    assert {part["name"] for hit in told["hits"] for part in hit["components"]} == {"vector"}
    refused = ana("search", "wine", "--method", "agentic")
    assert refused.code == 2
    assert "method" in refused.err


def test_explain_shows_the_parts_of_a_score_and_the_evidence(ana: Holdfast) -> None:
    ran = ana("explain", "red wine", "--subject", "ana", "--top-k", "1")
    assert "words" in ran.out
    assert "weight" in ran.out
    assert "evidence" in ran.out

    told = ana("explain", "red wine", "--subject", "ana", "--top-k", "1", "--json").json
    assert told["query"] == "red wine"
    assert {"name", "raw", "normalized", "weight", "contribution"} == set(told["hits"][0]["components"][0])


def test_explain_says_why_something_did_not_come(ana: Holdfast) -> None:
    hits = ana("search", "red wine", "--subject", "ana", "--json").json["hits"]
    ran = ana("explain", "red wine", "--subject", "ana", "--top-k", "1", "--id", hits[-1]["id"])
    assert f"{hits[-1]['id']} was not found" in ran.out


def test_explain_says_at_which_place_something_came(ana: Holdfast) -> None:
    hits = ana("search", "red wine", "--subject", "ana", "--json").json["hits"]
    for place, hit in enumerate(hits, 1):
        ran = ana("explain", "red wine", "--subject", "ana", "--id", hit["id"])
        assert f"{hit['id']} was found, at rank {place} of {len(hits)}" in ran.out
        assert "was not found" not in ran.out
    assert " came, " not in ana("explain", "red wine", "--subject", "ana").out


def test_a_changed_embedder_is_told_and_flush_catches_up(ana: Holdfast) -> None:
    ran = ana("search", "wine", "--embedder", "static", "--json")
    assert ran.code == 0
    assert "holdfast flush" in ran.err
    assert ran.json["hits"]
    assert ana("store", "flush", "--embedder", "static").code == 0
    assert ana("search", "wine", "--embedder", "static").err == ""


@pytest.mark.parametrize("command", ["search", "explain"])
def test_stored_text_cannot_steer_the_terminal(holdfast: Holdfast, command: str) -> None:
    holdfast("add", HOSTILE, "--sender", "Mal\u202eory", "--conversation", "c\u202e")
    ran = holdfast(command, "wine")
    for character in "\x1b\x07\x9b\u202e\r":
        assert character not in ran.out
    # Markup is shown as text, and the second line cannot pass for a result.
    assert "[bold]red[/bold] :smile:" in ran.out
    assert not any(line.startswith(" 1  9.99") for line in ran.out.splitlines())

    raw = holdfast(command, "wine", "--json")
    assert not set("\x1b\x07\x9b\u202e") & set(raw.out)
    assert raw.json["hits"][0]["text"] == HOSTILE


def test_other_scripts_are_left_alone(holdfast: Holdfast) -> None:
    text = "我上周搬到了里斯本 مرحبا 👩‍💻"
    holdfast("add", text)
    assert text in holdfast("search", "里斯本").out
    assert text in holdfast("search", "里斯本", "--json").out


@pytest.mark.parametrize(
    ("option", "value"),
    [("--radius", "7"), ("--said-from", "noon"), ("--role", "king"), ("--plane", "moon"), ("--top-k", "0")],
)
def test_an_error_names_the_option_as_it_was_typed(ana: Holdfast, option: str, value: str) -> None:
    for command in ("search", "explain"):
        refused = ana(command, "tea", option, value)
        assert (refused.code, refused.err.startswith(f"holdfast: {option}: ")) == (2, True), refused.err


def test_recall_prints_the_message_for_a_model_and_nothing_else(ana: Holdfast) -> None:
    ran = ana("recall", "red", "wine", "--subject", "ana", "--min-score", "0", "--budget-chars", "300")
    label, first, *_ = ran.out.splitlines()
    assert label.startswith("Reference from memory.")
    assert first.startswith("1. [")
    assert "red wine" in first
    assert len(ran.out.rstrip("\n")) <= 300
    assert len(ana("recall", "red wine", "--subject", "ana", "--min-score", "0", "--top-k", "1").out.splitlines()) == 2
    # The tests' embedder has no tokenizer.
    refused = ana("recall", "red wine", "--budget-tokens", "60")
    assert (refused.code, "--budget-tokens: this embedder has no tokenizer; " in refused.err) == (2, True)


def test_recall_says_on_stderr_why_there_is_nothing_to_show(ana: Holdfast) -> None:
    for options, reason in (
        (["anything", "--conversation", "elsewhere"], "nothing was found: this scope holds no record that matches"),
        (["wine of Mongolia", "--subject", "ana", "--min-score", "1"], "nothing bears on the query: the best of "),
        (["red wine", "--subject", "ana", "--min-score", "0", "--budget-chars", "9"], "the budget is too small"),
    ):
        ran = ana("recall", *options)
        assert (ran.code, ran.out) == (0, "")
        assert ran.err.startswith(f"Nothing recalled: {reason}")
        told = ana("recall", *options, "--json").json
        assert (told["query"], told["message"], told["hits"]) == (options[0], "", [])
        assert told["reason"].startswith(reason)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--min-score", "1.5"], "--min-score: must be a number from 0 to 1, not 1.5"),
        (["--min-score", "nan"], "--min-score: must be a number, not nan"),
        (["--budget-chars", "0"], "--budget-chars: "),
        (["--budget-tokens", "-1"], "--budget-tokens: "),
        (["--budget-tokens", "99999999999"], "--budget-tokens: "),
        (["--top-k", "0"], "--top-k: "),
        (["--floor", "0.5"], "--floor"),
    ],
)
def test_recall_refuses_a_limit_that_makes_no_sense_by_its_option(
    ana: Holdfast, options: list[str], named: str
) -> None:
    ran = ana("recall", "wine", *options)
    assert ran.code == 2
    assert named in ran.err
