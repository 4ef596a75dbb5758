"""`store` and its commands."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from .conftest import Holdfast


def test_init_creates_once(holdfast: Holdfast) -> None:
    assert holdfast("store", "init", "--json").json["created"] is True
    again = holdfast("store", "init")
    assert again.code == 0
    assert "already" in again.out


def test_the_setting_names_the_store(holdfast: Holdfast, monkeypatch, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("HOLDFAST_STORE", "named.db")
    holdfast("store", "init")
    assert (tmp_path / "named.db").exists()


def test_stats_count_the_store_or_a_scope(ana: Holdfast) -> None:
    ana("add", "Elsewhere.", "--space", "other")
    assert ana("store", "stats", "--json").json["messages"] == 3
    assert ana("store", "stats", "--subject", "ana", "--json").json["messages"] == 2
    assert ana("store", "stats", "--space", "other", "--json").json["messages"] == 1
    assert "messages" in ana("store", "stats").out


def test_verify_is_clean_and_finds_damage(ana: Holdfast, tmp_path: Path) -> None:
    assert ana("store", "verify").code == 0
    assert ana("store", "verify", "--json").json["ok"] is True
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("DELETE FROM texts")
    connection.close()
    ran = ana("store", "verify")
    assert ran.code == 1
    assert "damaged: records have their text" in ran.out
    assert ana("store", "verify", "--json").json["ok"] is False


def test_damaged_indexes_are_made_anew_and_nothing_is_restored(ana: Holdfast, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        connection.execute("UPDATE records SET terms = x'' WHERE number = 1")
    connection.close()
    ran = ana("store", "verify")
    assert ran.code == 1
    assert "damaged: records have the terms of their text: 1 rows" in ran.out
    assert "`holdfast store rebuild`" in ran.out
    assert "backup" not in ran.out
    checks = {check["name"]: check for check in ana("doctor", "--json").json["checks"]}
    assert "`holdfast store rebuild`" in checks["integrity"]["advice"]
    assert ana("store", "rebuild").code == 0
    assert ana("store", "verify").code == 0


def test_rebuild_with_an_embedder_that_nobody_named_changes_nothing(
    ana: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_EMBEDDER")
    ran = ana("store", "rebuild", "--json")
    assert ran.error["code"] == "embedder_not_named"
    assert "Rebuilt" not in ran.out
    found = ana("store", "stats", "--json").json
    assert (found["pending_vectors"], found["stale_vectors"], found["jobs"].get("queued", 0)) == (0, 0, 0)


def test_what_waits_to_be_made_anew_is_not_said_to_be_found_by_words_only(ana: Holdfast, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        connection.execute("UPDATE records SET analyzer = 0")  # as an interrupted `rebuild` leaves them
    connection.close()
    ran = ana("search", "wine", "--subject", "ana", "--method", "vector")
    assert "red wine" in ran.out
    assert "by words only" not in ran.err
    ran = ana("store", "stats")
    assert "found by the old ones" in ran.out
    assert "by words only" not in ran.out
    found = ana("store", "stats", "--json").json
    assert (found["pending_vectors"], found["stale_vectors"]) == (4, 4)  # including the learned memories


def test_rebuild_keeps_what_a_search_finds(ana: Holdfast) -> None:
    before = ana("search", "wine", "--subject", "ana", "--json").json
    ran = ana("store", "rebuild")
    assert ran.code == 0
    assert "Rebuilt the indexes of" in ran.out
    assert ana("search", "wine", "--subject", "ana", "--json").json == before


def test_flush_seals_and_learns(holdfast: Holdfast) -> None:
    holdfast("add", "I live in Porto.", "--subject", "ana")
    ran = holdfast("store", "flush", "--subject", "ana")
    assert ran.code == 0
    assert "Sealed 1 message of conversation default" in ran.out
    assert holdfast("search", "Porto", "--kind", "memory", "--subject", "ana", "--json").json["hits"]


def test_check_says_what_is_there_and_changes_nothing(holdfast: Holdfast, tmp_path: Path) -> None:
    nothing = holdfast("store", "check")
    assert nothing.code == 1
    assert "store init" in nothing.out
    assert not (tmp_path / "memory.db").exists()
    holdfast("store", "init")
    before = (tmp_path / "memory.db").read_bytes()
    ready = holdfast("store", "check", "--json").json
    assert ready["ready"] is True
    assert ready["schema"] == ready["newest"]
    assert "SQLite" in holdfast("store", "check").out
    assert (tmp_path / "memory.db").read_bytes() == before


def test_check_refuses_what_is_no_store(holdfast: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_text("Mine, and long enough to be something.")
    ran = holdfast("store", "check")
    assert ran.code == 6
    assert "not a Holdfast store" in ran.err


def test_migrate_says_that_there_was_nothing_to_do(holdfast: Holdfast) -> None:
    assert holdfast("store", "migrate").code == 6
    holdfast("store", "init")
    assert "up to date" in holdfast("store", "migrate").out
    told = holdfast("store", "migrate", "--json").json
    assert told["from"] == told["to"] > 0


def test_copy_moves_the_store_and_refuses_to_mix(ana: Holdfast) -> None:
    ran = ana("store", "copy", "memory.db", "other.db")
    assert ran.code == 0
    assert "Counts and contents agree" in ran.out
    found = ana("search", "wine", "--subject", "ana", "--json").json
    assert ana("search", "wine", "--subject", "ana", "--json", "--store", "other.db").json == found
    again = ana("store", "copy", "memory.db", "other.db")
    assert again.code == 6
    assert "--replace" in again.err
    assert ana("store", "copy", "memory.db", "other.db", "--replace", "--json").json["resumed"] is False


def test_copy_without_a_source_says_so(holdfast: Holdfast, tmp_path: Path) -> None:
    ran = holdfast("store", "copy", "nowhere.db", "other.db")
    assert ran.code == 6
    assert "no store at" in ran.err
    assert not (tmp_path / "other.db").exists()


def test_a_mistyped_address_is_refused_and_not_shown(holdfast: Holdfast) -> None:
    for command in (("store", "check"), ("store", "init"), ("search", "x"), ("store", "stats")):
        ran = holdfast(*command, "--store", "postgresql:/u:s3cret@h/d")
        assert ran.code == 2
        assert "postgresql://" in ran.err
        assert "s3cret" not in ran.err + ran.out


def test_backup_and_restore_bring_the_store_back(ana: Holdfast, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    assert ana("store", "backup", "--to", "backups").code == 6
    folder.mkdir()
    found = ana("search", "wine", "--subject", "ana", "--json").json
    ran = ana("store", "backup", "memory.db", "--to", "backups", "--keep", "1")
    assert ran.code == 0
    assert "Counts and contents agree" in ran.out
    (made,) = folder.iterdir()
    receipt = ana("forget", "--subject", "ana", "--yes")
    assert made.name in "".join(receipt.out.split())
    assert ana("search", "wine", "--subject", "ana", "--json").json != found
    assert ana("store", "restore", str(made)).code == 6
    ran = ana("store", "restore", str(made), "--replace")
    assert ran.code == 0
    assert "forget it again" in ran.out
    assert ana("search", "wine", "--subject", "ana", "--json").json == found
    again = ana("store", "backup", "--to", "backups", "--keep", "1", "--json").json
    assert again["removed"] == [str(made)]
    assert [str(path) for path in folder.iterdir()] == [again["path"]]


def test_backups_are_made_where_the_store_is(holdfast: Holdfast, tmp_path: Path) -> None:
    for ran in (
        holdfast("store", "backup", "http://127.0.0.1:8010", "--to", str(tmp_path)),
        holdfast("store", "restore", "x.backup", "--store", "http://127.0.0.1:8010"),
    ):
        assert ran.code == 6
        assert "on the machine of the store" in ran.err
    both = holdfast("store", "backup", "a.db", "--store", "b.db", "--to", str(tmp_path))
    assert both.code == 2
    assert "give one of them" in both.err
