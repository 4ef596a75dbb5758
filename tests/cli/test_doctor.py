"""`doctor`."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from holdfast import app
from holdfast.documents.kernel import Barrier

from .conftest import Holdfast


def health(ran_json: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {check["name"]: check["health"] for check in ran_json["checks"]}


def test_a_healthy_store_passes(ana: Holdfast) -> None:
    ran = ana("doctor")
    assert ran.code == 0, ran.out
    assert all(line.startswith("ok ") for line in ran.out.splitlines())
    assert set(health(ana("doctor", "--json").json)) >= {"python", "sqlite", "settings", "embedder", "store", "disk"}


def test_a_store_that_is_not_there_yet_is_no_failure(holdfast: Holdfast, tmp_path: Path) -> None:
    ran = holdfast("doctor", "--json")
    assert ran.code == 0
    assert health(ran.json)["store"] == "warn"
    assert list(tmp_path.iterdir()) == []


def test_the_key_is_never_printed(ana: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_EMBEDDER_KEY", "sk-very-secret")
    monkeypatch.setenv("HOLDFAST_MODEL_KEY", "sk-very-secret")
    for arguments in (("doctor",), ("doctor", "--json")):
        ran = ana(*arguments)
        assert "sk-very-secret" not in ran.out + ran.err
        assert "embedder_key set" in ran.out
        assert "model_key set" in ran.out


@pytest.mark.parametrize(
    ("options", "failing"),
    [
        (("--embedder", "magic"), "embedder"),
        (("--embedder", "onnx:/nowhere"), "embedder"),
        (("--store", "/nowhere/memory.db"), "store"),
        (("--store", "."), "store"),
    ],
    ids=" ".join,
)
def test_what_fails_is_named_with_what_to_do(ana: Holdfast, options: tuple[str, ...], failing: str) -> None:
    ran = ana("doctor", *options, "--json")
    assert ran.code == 1
    assert health(ran.json)[failing] == "fail"
    assert ran.json["ok"] is False


def test_an_embedder_that_does_not_answer_fails(ana: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_EMBEDDER_URL", "http://127.0.0.1:9/v1")
    ran = ana("doctor", "--embedder", "openai:some-model", "--json")
    assert ran.code == 1
    assert health(ran.json)["embedder"] == "fail"


def test_a_wrong_setting_fails_without_a_traceback(ana: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_CACHE_BYTES", "-1")
    ran = ana("doctor")
    assert ran.code == 1
    assert "HOLDFAST_CACHE_BYTES" in ran.out


def test_damage_fails(ana: Holdfast, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("DELETE FROM texts")
    connection.close()
    ran = ana("doctor", "--json")
    assert ran.code == 1
    assert health(ran.json)["integrity"] == "fail"


def test_vectors_by_an_embedder_that_nobody_named_are_a_warning(ana: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_EMBEDDER")
    ran = ana("doctor", "--json")
    assert ran.code == 0
    assert health(ran.json)["vectors"] == "warn"
    assert "vectors" not in health(ana("doctor", "--embedder", "fake", "--json").json)


@pytest.mark.parametrize(
    ("barriers", "health_then", "words"),
    [
        (Barrier.ALL, "ok", "behind seccomp and landlock"),
        (Barrier.SECCOMP, "warn", "behind seccomp alone"),
        (Barrier.LANDLOCK, "warn", "behind landlock alone"),
        (Barrier.NONE, "warn", "other than plain text are refused"),
    ],
    ids=str,
)
def test_it_says_what_documents_are_read_behind(
    ana: Holdfast, monkeypatch: pytest.MonkeyPatch, barriers: Barrier, health_then: str, words: str
) -> None:
    monkeypatch.setattr(app, "available_barriers", lambda: barriers)
    (check,) = [check for check in ana("doctor", "--json").json["checks"] if check["name"] == "documents"]
    assert (check["health"], words in check["detail"]) == (health_then, True)


def test_it_says_that_documents_are_read_without_confinement(ana: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "available_barriers", lambda: Barrier.NONE)
    monkeypatch.setenv("HOLDFAST_UNCONFINED_DOCUMENTS", "true")
    assert "HOLDFAST_UNCONFINED_DOCUMENTS allows it" in ana("doctor").out


def model_check(ran_json: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    (found,) = [check for check in ran_json["checks"] if check["name"] == "model"]
    return found


def test_the_verbs_that_send_texts_to_a_model_are_named(
    ana: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert model_check(ana("doctor", "--json").json)["detail"] == "none: `flush` learns by rules"
    monkeypatch.setenv("HOLDFAST_MODEL", "ollama:qwen3:4b")
    both = model_check(ana("doctor", "--json").json)
    assert (both["health"], both["advice"]) == ("ok", "")
    assert "http://127.0.0.1:11434/v1 is asked by `flush` and `maintain`" in both["detail"]
    # A store from before `flush` asked a model.
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        connection.execute("DELETE FROM meta WHERE key = 'model_verbs'")
    connection.close()
    old = model_check(ana("doctor", "--json").json)
    assert old["health"] == "ok"
    assert "asked by `maintain` alone" in old["detail"]
    assert old["advice"].startswith("HOLDFAST_MODEL_VERBS=maintain,flush lets `flush` ask it")
    assert "→ HOLDFAST_MODEL_VERBS=maintain,flush" in ana("doctor").out
    monkeypatch.setenv("HOLDFAST_MODEL_VERBS", "maintain,flush")
    assert "asked by `flush` and `maintain`" in model_check(ana("doctor", "--json").json)["detail"]
    monkeypatch.setenv("HOLDFAST_MODEL_VERBS", "none")
    assert "asked by no verb" in model_check(ana("doctor", "--json").json)["detail"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("HOLDFAST_MODEL_URL", "http://u:sk-very-secret@127.0.0.1/v1"), ("HOLDFAST_MODEL_URL", "ftp://x")],
)
def test_a_model_that_cannot_be_asked_fails(
    ana: Holdfast, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv("HOLDFAST_MODEL", "small")
    monkeypatch.setenv(name, value)
    ran = ana("doctor", "--json")
    assert ran.code == 1
    assert model_check(ran.json)["health"] == "fail"
    assert "sk-very-secret" not in ran.out
