"""`doctor`."""

from __future__ import annotations

import re
import secrets
import shlex
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import app
from holdfast import open as memory_at
from holdfast.documents.kernel import Barrier
from holdfast.search.embedders.fake import FakeEmbedder
from holdfast.settings import Settings

from .conftest import Holdfast, Ran


def health(ran_json: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {check["name"]: check["health"] for check in ran_json["checks"]}


def test_a_healthy_store_passes(ana: Holdfast) -> None:
    ran = ana("doctor")
    assert ran.code == 0, ran.out
    assert all(line.startswith(("ok ", "     ")) for line in ran.out.splitlines())
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
    listed = ana("doctor", "--settings").out
    assert "sk-very-secret" not in listed
    assert re.search(r"HOLDFAST_EMBEDDER_KEY +set +environment", listed)


def settings_of(ran: Ran) -> dict[str, tuple[str | None, str]]:
    return {each["name"]: (each["value"], each["origin"]) for each in ran.json["settings"]}


def test_every_setting_has_an_origin(ana: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "holdfast_space").write_text("acme\n")
    (folder / "holdfast_operator_token").write_text("canary-of-the-operator-0123")
    (folder / "holdfast_porrt").write_text("canary")
    (folder / "a-secret-of-a-binding").write_text("canary")
    monkeypatch.setenv("HOLDFAST_SECRETS_DIR", str(folder))
    monkeypatch.setenv("HOLDFAST_MODEL_URL", "https://ana:canary@models.example/v1?key=canary")
    monkeypatch.setenv("holdfast_port", "not a port")  # names are the same in small letters
    monkeypatch.setenv("HOLDFAST_SECRET_CRM", "canary")
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    ran = ana("doctor", "--settings", "--json", "--store", "postgresql://ana:canary@db/memory", "--embedder", "fake")
    found = settings_of(ran)
    assert found["HOLDFAST_SPACE"] == ("acme", f"file {folder / 'holdfast_space'}")
    assert found["HOLDFAST_OPERATOR_TOKEN"] == ("set", f"file {folder / 'holdfast_operator_token'}")
    assert found["HOLDFAST_MODEL_URL"] == ("https://ana:***@models.example/v1", "environment")
    assert found["HOLDFAST_PORT"] == ("not a port", "environment")
    assert found["HOLDFAST_STORE"] == ("postgresql://ana:***@db/memory", "option --store")
    assert found["HOLDFAST_EMBEDDER"] == ("fake", "option --embedder")
    assert found["OPENAI_API_KEY"] == ("set", "environment")
    assert found["HOLDFAST_BUSY_SECONDS"] == ("15", "default")
    assert found["MEMORY_GATEWAY_USER_KEY"] == (None, "default")
    assert {f"HOLDFAST_{name.upper()}" for name in Settings.model_fields} < found.keys()
    assert list(found) == sorted(found, key=lambda name: found[name][1] == "default"), "those that are set come first"
    told = "".join(ana(*arguments).out for arguments in (("doctor", "--settings"), ("doctor",), ("doctor", "--json")))
    assert "canary" not in told + ran.out
    assert max(map(len, ana("doctor", "--settings").out.splitlines())) <= 100
    monkeypatch.delenv("holdfast_port")
    whole = ana("doctor", "--json")
    assert settings_of(whole)["HOLDFAST_SPACE"][0] == "acme"
    assert "space acme (file " in whole.out
    assert "holdfast_porrt is no setting" in whole.out


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("HOLDFAST_EMBEDER", "rename it to HOLDFAST_EMBEDDER"),
        ("HOLDFAST_TOKEN", "rename it to HOLDFAST_OPERATOR_TOKEN"),
        ("HOLDFAST_XYZZY", "remove it; `holdfast doctor --settings` lists all"),
        ("MEMORY_GATEWAY_URL", "rename it to MEMORY_GATEWAY_BASE_URL"),
    ],
)
def test_a_name_that_is_no_setting_is_a_warning(
    ana: Holdfast, monkeypatch: pytest.MonkeyPatch, name: str, advice: str
) -> None:
    monkeypatch.setenv(name, "canary")
    ran = ana("doctor", "--json")
    warned = [(check["detail"], check["advice"]) for check in ran.json["checks"] if check["health"] == "warn"]
    assert (ran.code, warned) == (0, [(f"{name} is no setting, and does nothing", advice)])
    assert "canary" not in ran.out


@pytest.mark.parametrize("name", ["HOLDFAST_OPERATOR_TOKEN", "HOLDFAST_KEY"])
def test_a_token_that_can_be_guessed_is_a_warning(ana: Holdfast, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for token, weak in (("change-this-operator-token", True), (secrets.token_hex(32), False)):
        monkeypatch.setenv(name, token)
        ran = ana("doctor", "--json")
        assert any(f"{name} is made of common words" in check["detail"] for check in ran.json["checks"]) is weak
        assert token not in ran.out


def test_a_token_that_this_service_made_is_not_a_warning(ana: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    key = ana("user", "create", "ana", "--json").json["key"]
    monkeypatch.setenv("HOLDFAST_KEY", key)
    assert all(line.startswith(("ok", " ")) for line in ana("doctor").out.splitlines())


def leave_work(store: Path) -> None:
    with memory_at(store, embedder=FakeEmbedder(local=False), work=False) as memory:
        memory.add("It waits for its vector.", subject="ana")


@pytest.mark.parametrize(
    "spoil",
    [
        leave_work,
        lambda store: store.chmod(0o644),
        lambda store: store.unlink(),
        lambda store: shutil.rmtree(store.parent),
    ],
    ids=["work", "mode", "no store", "no folder"],
)
def test_the_advice_of_doctor_can_be_pasted_and_helps(
    holdfast: Holdfast, tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    store = tmp_path / "ana's memory" / "m.db"
    store.parent.mkdir()
    options = ("--store", str(store), "--embedder", "fake")
    assert holdfast("add", "I moved to Lisbon.", "--subject", "ana", *options).code == 0
    spoil(store)
    for _ in range(3):  # without a folder there is also no store
        wrong = [check for check in holdfast("doctor", *options, "--json").json["checks"] if check["health"] != "ok"]
        for check in wrong:
            (command,) = re.findall("`([^`]+)`", check["advice"])
            words = shlex.split(command)
            if words[0] == "holdfast":
                ran = holdfast(*words[1:])
                assert ran.code == 0, (command, ran.err)
            else:
                subprocess.run(words, check=True)
    assert wrong == []


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


def transports_of(ran: Ran) -> str:
    (found,) = [check["detail"] for check in ran.json["checks"] if check["name"] == "transports"]
    return str(found)


def test_the_address_its_transports_and_who_may_call_them_are_listed(
    ana: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = transports_of(ana("doctor", "--json"))
    assert "127.0.0.1:8010, and offers runtimes over http (/memory) and mcp (/mcp); callers need a key" in shown
    monkeypatch.setenv("HOLDFAST_TRANSPORTS", "http")
    monkeypatch.setenv("HOLDFAST_HOST", "::1")
    assert "[::1]:8010, and offers runtimes over http (/memory); callers" in transports_of(ana("doctor", "--json"))
    monkeypatch.setenv("HOLDFAST_TRANSPORTS", "none")
    assert "offers no runtimes" in transports_of(ana("doctor", "--json"))


@pytest.mark.parametrize(
    ("listed", "problem"),
    [
        ("htp", "'htp' is no transport; name http, mcp, or none"),
        ("http,ws", "ws is not built yet"),
        ("", "no transport"),
    ],
)
def test_a_transport_that_there_is_not_is_named(
    ana: Holdfast, monkeypatch: pytest.MonkeyPatch, listed: str, problem: str
) -> None:
    monkeypatch.setenv("HOLDFAST_TRANSPORTS", listed)
    ran = ana("doctor", "--json")
    assert ran.code != 0
    assert f"HOLDFAST_TRANSPORTS: {problem}" in ran.out or problem in ran.out
