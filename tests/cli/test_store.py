"""`store` and its commands."""

from __future__ import annotations

import sqlite3
from pathlib import Path

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
