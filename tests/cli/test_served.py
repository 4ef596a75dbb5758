"""The command line against a server: the same commands, with HOLDFAST_KEY."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from serving import OPERATOR_KEY, USER_KEY, served

from .conftest import Holdfast


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(str(tmp_path_factory.mktemp("served") / "memory.db")) as server:
        yield server.url


@pytest.fixture
def user(holdfast: Holdfast, url: str, monkeypatch: pytest.MonkeyPatch) -> Holdfast:
    monkeypatch.setenv("HOLDFAST_STORE", url)
    monkeypatch.setenv("HOLDFAST_KEY", USER_KEY)
    return holdfast


def test_a_user_adds_searches_explains_and_forgets(user: Holdfast) -> None:
    assert user("add", "I moved to Lisbon.", "--conversation", "talk", "--flush").code == 0
    (hit,) = user("search", "Lisbon", "--json").json["hits"]
    assert (hit["text"], hit["scope"]["subject"]) == ("I moved to Lisbon.", "ana")
    assert "Lisbon" in user("explain", "Lisbon").out
    forgotten = user("forget", "--conversation", "talk", "--yes", "--json")
    assert (forgotten.code, forgotten.err) == (0, "")
    assert user("search", "Lisbon", "--json").json["hits"] == []


def test_a_user_sees_what_is_its_own(user: Holdfast, url: str) -> None:
    stats = user("store", "stats", "--json")
    assert (stats.code, stats.json["store"]) == (0, url)
    assert user("store", "jobs").code == 0
    assert user("store", "flush").code == 0
    denied = user("store", "verify", "--json")
    assert (denied.code, denied.error["code"]) == (4, "access_denied")


def test_an_operator_checks_the_whole_store(holdfast: Holdfast, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_KEY", OPERATOR_KEY)
    assert holdfast("store", "verify", "--store", url).code == 0
    assert holdfast("store", "rebuild", "--store", url).code == 0


@pytest.mark.parametrize("command", ["init", "check", "migrate"])
def test_a_servers_store_is_the_servers_to_look_after(user: Holdfast, command: str) -> None:
    ran = user("store", command)
    assert ran.code == 6
    assert "run this where the store is" in ran.err


def test_an_embedder_is_the_servers_to_choose(user: Holdfast) -> None:
    ran = user("search", "x", "--embedder", "static")
    assert ran.code == 2
    assert "embedder: is decided by the server" in ran.err


def test_a_wrong_key_is_denied_and_not_shown(user: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_KEY", "uk_hunter2")
    for command in (["search", "x"], ["doctor"], ["doctor", "--json"]):
        ran = user(*command)
        assert ran.code in (1, 4)
        assert "uk_hunter2" not in ran.out + ran.err


def test_a_password_in_the_address_is_refused_and_not_shown(user: Holdfast) -> None:
    for command in (["search", "x"], ["doctor"], ["store", "stats"], ["store", "init"]):
        ran = user(*command, "--store", "http://ana:hunter2@127.0.0.1:1")
        assert ran.code in (1, 2)
        assert "hunter2" not in ran.out + ran.err


def test_doctor_asks_the_server(user: Holdfast, url: str) -> None:
    ran = user("doctor", "--json")
    assert ran.code == 0
    names = {check["name"]: check["health"] for check in ran.json["checks"]}
    assert names["server"] == "ok"
    assert "disk" not in names
    assert USER_KEY not in ran.out


def test_doctor_tells_that_a_server_does_not_answer(user: Holdfast, tmp_path: Path) -> None:
    ran = user("doctor", "--store", "http://127.0.0.1:1")
    assert ran.code == 1
    assert "cannot be reached" in " ".join(ran.out.split())
