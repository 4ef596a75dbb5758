"""`space export` and `space import`, and `store repair`."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest

from .conftest import Holdfast


def test_a_space_goes_out_of_one_store_and_into_another(ana: Holdfast, tmp_path: Path) -> None:
    ran = ana("space", "export", "space.jsonl", "--include-private")
    assert ran.code == 0
    assert "Exported 2 messages in" in ran.out
    assert "Fingerprint" in ran.out
    assert (tmp_path / "space.jsonl").exists()
    came = ana("space", "import", "space.jsonl", "--store", "new.db")
    assert came.code == 0
    assert "Imported 2 messages in" in came.out
    search = ("search", "wine", "--subject", "ana", "--json")
    hits, there = (ana(*search, *more).json["hits"] for more in ((), ("--store", "new.db")))
    assert [hit["id"] for hit in there] == [hit["id"] for hit in hits] != []
    again = ana("space", "import", "space.jsonl", "--store", "new.db", "--json").json
    assert (again["accepted"], again["changed"]) == (True, False)
    made = ana("space", "export", "again.jsonl", "--include-private", "--store", "new.db", "--json").json
    assert made["content_fingerprint"] == again["content_fingerprint"]


def test_names_under_which_nothing_is_left_stay_behind(ana: Holdfast, tmp_path: Path) -> None:
    """docs/how-to/forget.md: names outlive a forget in the store; an export and import removes them."""
    ana("add", "Said in confidence.", "--subject", "xanthippe", "--conversation", "divorce")
    ana("forget", "--subject", "xanthippe", "--yes")
    assert b"divorce" in (tmp_path / "memory.db").read_bytes()
    ana("space", "export", "space.jsonl", "--include-private")
    assert "Imported 2 messages" in ana("space", "import", "space.jsonl", "--store", "new.db").out
    held = b"".join(path.read_bytes() for path in (tmp_path / "space.jsonl", tmp_path / "new.db"))
    assert b"xanthippe" not in held
    assert b"divorce" not in held


def test_another_space_can_be_named(ana: Holdfast) -> None:
    ana("space", "export", "space.jsonl", "--include-private", "--json")
    assert ana("space", "import", "space.jsonl", "--space", "copy", "--json").json["taken"]["messages"] == 2
    assert ana("store", "stats", "--space", "copy", "--json").json["messages"] == 2
    assert ana("space", "export", "other.jsonl", "--space", "nobody", "--json").json["counts"]["messages"] == 0
    assert "That space is empty; --space names another" in ana("space", "export", "o.jsonl", "--space", "nobody").out


def test_transcripts_go_only_if_they_are_requested(ana: Holdfast, tmp_path: Path) -> None:
    ran = ana("space", "export", "space.jsonl")
    assert "with 2 messages left out, so this is no backup; --include-private" in ran.out
    assert "I love red wine." not in (tmp_path / "space.jsonl").read_text()
    came = ana("space", "import", "space.jsonl", "--store", "new.db")
    assert "The file was exported without" in came.out
    ran = ana("space", "export", "all.jsonl", "--include-private")
    assert (ran.code, "left out" in ran.out) == (0, False)
    assert "I love red wine." in (tmp_path / "all.jsonl").read_text()
    assert "exported without" not in ana("space", "import", "all.jsonl", "--store", "new.db").out


def test_a_damaged_file_is_refused_and_named(ana: Holdfast, tmp_path: Path) -> None:
    ana("space", "export", "space.jsonl")
    whole = (tmp_path / "space.jsonl").read_bytes()
    (tmp_path / "space.jsonl").write_bytes(whole[:-5])
    ran = ana("space", "import", "space.jsonl", "--store", "new.db", "--json")
    assert ran.code == 2
    assert ran.error["code"] == "invalid_snapshot"
    assert ana("store", "stats", "--store", "new.db", "--json").json["messages"] == 0


@pytest.mark.parametrize("there", ["memory.db", "notes.txt", "pipe", "folder"])
def test_an_export_replaces_nothing_but_an_export(ana: Holdfast, tmp_path: Path, there: str) -> None:
    (tmp_path / "notes.txt").write_text("Do not lose me.\n")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(there)
    before = (tmp_path / there).stat().st_ino
    for named in (there, "link"):
        ran = ana("space", "export", named)
        assert (ran.code, named in ran.err) == (2, True)
    assert (tmp_path / there).stat().st_ino == before
    assert ana("search", "wine", "--subject", "ana", "--json").json["hits"]
    assert (tmp_path / "notes.txt").read_text() == "Do not lose me.\n"
    assert (tmp_path / "link").is_symlink()


def test_an_export_replaces_the_one_before_also_through_a_link(ana: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("space.jsonl")
    (tmp_path / "space.jsonl").touch()
    for _ in range(2):
        assert ana("space", "export", "link", "--include-private").code == 0
    assert (tmp_path / "link").is_symlink()
    assert ana("space", "import", "space.jsonl", "--store", "new.db", "--json").json["taken"]["messages"] == 2


def test_what_can_be_read_only_once_is_not_imported(ana: Holdfast, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    ran = ana("space", "import", "pipe", "--store", "new.db")
    assert (ran.code, "save it to a file first" in ran.err) == (2, True)


def test_no_store_is_created_for_a_file_that_is_not_there(holdfast: Holdfast, tmp_path: Path) -> None:
    ran = holdfast("space", "import", "missing.jsonl", "--store", "new.db")
    assert (ran.code, "missing.jsonl" in ran.err) == (2, True)
    assert not (tmp_path / "new.db").exists()


def test_files_and_stores_that_are_not_there_are_told(holdfast: Holdfast) -> None:
    assert holdfast("space", "export", "space.jsonl").code == 6
    assert holdfast("store", "repair").code == 6
    assert holdfast("space", "import", "missing.jsonl", "--json").error["code"] == "invalid_input"
    assert holdfast("space", "export", "x", "--store", "http://127.0.0.1:1").code == 6
    assert holdfast("space", "import", __file__, "--store", ":memory:").code == 6
    assert holdfast("store", "repair", "--store", "http://127.0.0.1:1").code == 6


def test_a_repair_only_tells_unless_it_is_asked_to_do_it(ana: Holdfast, tmp_path: Path) -> None:
    sound = ana("store", "repair")
    assert (sound.code, "All is well" in sound.out) == (0, True)
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        connection.execute("DELETE FROM vectors")
    connection.close()
    told = ana("store", "repair")
    assert told.code == 1
    assert "records need new vectors" in told.out
    assert "--apply" in told.out
    found = ana("store", "repair", "--json")
    assert (found.code, found.json["sound"], found.json["applied"]) == (1, False, False)
    done = ana("store", "repair", "--apply")
    assert (done.code, "records got new vectors" in done.out) == (0, True)
    assert ana("store", "verify").code == 0


def test_a_repair_names_what_it_cannot_mend(ana: Holdfast, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("DELETE FROM texts")
    connection.close()
    ran = ana("store", "repair", "--apply")
    assert ran.code == 1
    assert "cannot be repaired: records have their text" in ran.out
    assert "Restore from a backup" in ran.out


def test_json_is_one_document_without_the_content_of_the_file(ana: Holdfast) -> None:
    ran = ana("space", "export", "space.jsonl", "--json")
    assert json.loads(ran.out)["path"] == "space.jsonl"
    assert "wine" not in ran.out
