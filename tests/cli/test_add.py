"""`add` from the command line, a file and a pipe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.cli.add import BATCH

from .conftest import Holdfast


def lines(*messages: object) -> bytes:
    return "".join(json.dumps(message) + "\n" for message in messages).encode()


def test_a_text_is_stored_and_found(holdfast: Holdfast) -> None:
    added = holdfast("add", "I moved to Lisbon.", "--subject", "ana", "--json")
    assert added.code == 0
    assert added.json["stored"] == 1
    found = holdfast("search", "Lisbon", "--subject", "ana", "--json").json["hits"]
    assert [hit["id"] for hit in found] == added.json["message_ids"]


def test_how_it_was_said_is_kept(holdfast: Holdfast) -> None:
    saying = ("--sender", "Bo", "--role", "assistant", "--timestamp", "2026-03-02T09:00:00+01:00", "--id", "m1")
    place = ("--conversation", "tea", "--app", "a", "--project", "p", "--channel", "c", "--source", "import")
    holdfast("add", "Hello there.", *saying, *place)
    (hit,) = holdfast("search", "hello", "--json").json["hits"]
    assert (hit["sender"], hit["role"], hit["external_id"], hit["source"]) == ("Bo", "assistant", "m1", "import")
    assert hit["said_at"] == "2026-03-02T08:00:00+00:00"
    assert {name: hit["scope"][name] for name in ("conversation", "app", "project", "channel")} == {
        "conversation": "tea",
        "app": "a",
        "project": "p",
        "channel": "c",
    }


def test_a_message_with_an_id_is_stored_once(holdfast: Holdfast) -> None:
    holdfast("add", "Hello.", "--id", "m1")
    again = holdfast("add", "Hello.", "--id", "m1")
    assert again.code == 0
    assert "Stored 0 messages" in again.out
    assert "Skipped 1, known" in again.out


def test_an_id_of_another_message_is_a_conflict(holdfast: Holdfast) -> None:
    holdfast("add", "Hello.", "--id", "m1")
    assert holdfast("add", "Something else.", "--id", "m1").code == 5


def test_flush_learns_before_it_returns(ana: Holdfast) -> None:
    found = ana("search", "Lisbon", "--subject", "ana", "--kind", "memory", "--json").json["hits"]
    assert any("Lisbon" in hit["text"] and hit["evidence"] for hit in found)


def test_json_lines_come_from_a_pipe(holdfast: Holdfast) -> None:
    given = lines("Just a text.", {"text": "With more.", "sender": "Bo", "metadata": {"k": "v"}}) + b"\n"
    ran = holdfast("add", "-", "--sender", "Ana", "--json", stdin=b"\xef\xbb\xbf" + given)
    assert ran.code == 0, ran.err
    senders = {hit["text"]: hit["sender"] for hit in holdfast("search", "text more", "--json").json["hits"]}
    # A line's own sender overrides the option.
    assert senders == {"Just a text.": "Ana", "With more.": "Bo"}


def test_json_lines_come_from_a_file(holdfast: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "messages.jsonl").write_bytes(lines(*({"text": f"Message {n}"} for n in range(BATCH + 1))))
    ran = holdfast("add", "--file", "messages.jsonl")
    assert ran.code == 0
    assert f"Stored {BATCH + 1} messages" in ran.out
    assert ran.err == ""


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"oops\n", "line 3: is not JSON"),
        (b"[" * 100_000 + b"\n", "line 3: is not JSON"),
        (b"42\n", "line 3: is neither a text nor an object"),
        (b'{"text": " "}\n', "line 3 text: is empty"),
        (b'{"words": "x"}\n', "line 3: has an unknown field 'words'"),
        (b'{"text": "x", "role": "boss"}\n', "line 3 role: there is no 'boss'"),
        (b'{"text": "x", "timestamp": 0}\n', "line 3 timestamp"),
        (b'{"text": "\\ud800"}\n', "line 3 text: holds a lone surrogate"),
        (b'{"text": "\xff"}\n', "line 3: is not UTF-8"),
    ],
)
def test_a_wrong_line_is_named_and_leaves_nothing_behind(
    holdfast: Holdfast, tmp_path: Path, line: bytes, says: str
) -> None:
    ran = holdfast("add", "-", stdin=b'"one"\n\n' + line + b'"four"\n')
    assert ran.code == 2
    assert says in ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_line_in_a_later_batch_leaves_the_earlier_ones_whole(holdfast: Holdfast) -> None:
    given = lines(*({"text": f"Message {n}", "id": str(n)} for n in range(BATCH + 10)))
    ran = holdfast("add", "-", stdin=given + b"oops\n")
    assert ran.code == 2
    assert f"line {BATCH + 11}: is not JSON" in ran.err
    assert f"{BATCH} messages before it are stored" in ran.err
    assert holdfast("store", "stats", "--json").json["messages"] == BATCH
    # After a fix, the same command continues from there.
    assert holdfast("add", "-", "--json", stdin=given).json["stored"] == 10


def test_a_conflict_in_a_batch_names_its_lines(holdfast: Holdfast) -> None:
    ran = holdfast("add", "-", stdin=lines({"text": "one", "id": "m"}, {"text": "two", "id": "m"}))
    assert ran.code == 5
    assert "lines 1 to 2" in ran.err
    assert holdfast("store", "stats", "--json").json["messages"] == 0


def test_words_without_quotes_are_pointed_out(holdfast: Holdfast) -> None:
    assert "put quotes around" in holdfast("add", "hello", "world").out
    assert "put quotes around" not in holdfast("add", "hello world", "hello").out
    assert "put quotes around" not in holdfast("add", "hello").out
