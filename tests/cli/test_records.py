"""`list`, `browse`, `get`, `remember`, `correct`, `history` and `revert`, `flush`, `export` and `import`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import holdfast as library

from .conftest import Holdfast


def memory_ids(holdfast: Holdfast) -> list[str]:
    return [each["id"] for each in holdfast("list", "--kind", "memory", "--json").json["items"]]


def test_a_memory_is_remembered_shown_corrected_and_reverted(holdfast: Holdfast) -> None:
    made = holdfast(
        "remember", "Ana", "lives in Lisbon.", "--subject", "ana", "--metadata", "topic=home", "--metadata", "note=a=b"
    )
    assert made.code == 0, made.err
    (memory_id,) = memory_ids(holdfast)
    assert memory_id in made.out
    shown = holdfast("get", memory_id)
    for part in ("Ana lives in Lisbon.", memory_id, "long_term", "subject", "metadata topic", "home", "a=b"):
        assert part in shown.out

    corrected = holdfast("correct", memory_id, "Ana lives", "in Porto.", "--reason", "she moved", "--json")
    assert corrected.json["text"] == "Ana lives in Porto."
    assert corrected.json["revision"] == 2
    assert holdfast("history", memory_id, "--json").json["revisions"][1] == corrected.json
    reverted = holdfast("revert", memory_id, "1")
    assert "is at revision 3" in reverted.out
    assert holdfast("get", memory_id, "--json").json["text"] == "Ana lives in Lisbon."
    stale = holdfast("correct", memory_id, "Ana lives in Faro.", "--expected-revision", "1")
    assert stale.code == 5


def test_a_message_can_be_corrected(ana: Holdfast) -> None:
    (message,) = (each for each in ana("list", "--kind", "message", "--json").json["items"] if "wine" in each["text"])
    ana("correct", message["id"], "I love white wine.")
    texts = [hit["text"] for hit in ana("search", "wine", "--json").json["hits"]]
    assert "I love white wine." in texts
    assert "I love red wine." not in texts


def test_the_list_is_newest_first_and_read_page_by_page(holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [json.dumps({"text": f"Message {n}", "timestamp": f"2026-03-02T09:{n:02}Z"}) for n in range(12)]
    holdfast("add", "-", "--subject", "ana", stdin="\n".join(lines).encode())
    monkeypatch.setattr("holdfast.cli.paging._PAGE", 5)
    everything = holdfast("list", "--limit", "100", "--json").json
    assert [each["text"] for each in everything["items"]] == [f"Message {n}" for n in reversed(range(12))]
    assert everything["next_cursor"] is None
    some = holdfast("list", "--limit", "7", "--json")
    assert some.json["items"] == everything["items"][:7]
    assert some.json["next_cursor"]
    assert "raise --limit" in some.err
    assert holdfast("list", "--subject", "ben").out.startswith("There is nothing here.")

    oldest = holdfast("browse", "--ascending", "--offset", "3", "--limit", "2", "--json").json
    assert [each["text"] for each in oldest["items"]] == ["Message 3", "Message 4"]
    assert oldest["total"] == 12
    assert "4 to 5 of 12" in holdfast("browse", "--offset", "3", "--limit", "2").out
    assert "12 in total" in holdfast("browse", "--offset", "30").out


def test_the_json_of_records_is_that_of_the_library(ana: Holdfast) -> None:
    from holdfast.cli.json_output import plain

    items = ana("list", "--json").json["items"]
    with library.open("memory.db") as memory:
        assert items == json.loads(json.dumps(plain(memory.list().items)))
        for each in items:
            assert ana("get", each["id"], "--json").json == each
            assert each == json.loads(json.dumps(plain(memory.get(each["id"]))))


def test_flush_is_the_flush_of_the_store(holdfast: Holdfast) -> None:
    holdfast("add", "I moved to Lisbon last week.", "--subject", "ana")
    assert holdfast("flush", "--subject", "ana").out == "Sealed 1 message of conversation default.\n"
    assert holdfast("store", "flush", "--subject", "ana", "--json").json["messages"] == 0
    assert memory_ids(holdfast)


def test_what_is_exported_can_be_imported(ana: Holdfast, tmp_path: Path) -> None:
    assert ana("export", "memory.jsonl", "--include-private").code == 0
    taken = ana("import", "memory.jsonl", "--store", "other.db")
    assert taken.code == 0, taken.err
    texts = [each["text"] for each in ana("list", "--store", "other.db", "--json").json["items"]]
    assert texts == [each["text"] for each in ana("list", "--json").json["items"]]


@pytest.mark.parametrize("path", ["list", "browse", "get", "history"])
def test_hostile_text_is_shown_escaped(holdfast: Holdfast, path: str) -> None:
    holdfast("remember", "Ana \x1b[2J lives \u202ein Lisbon.", "--subject", "ana", "--metadata", "name=va\x07lue")
    ids = memory_ids(holdfast) if path in ("get", "history") else []
    shown = holdfast(path, *ids)
    assert shown.code == 0
    assert "\\x1b[2J" in shown.out
    assert not {"\x1b", "\x07", "\u202e"} & set(shown.out)
