"""`user`: a key is printed once, on stdout only, and never appears anywhere else."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast as library
from holdfast.app import open_engine
from holdfast.settings import Settings
from postgres import ON_POSTGRES
from serving import HANG_UP, OPERATOR_KEY, answering, http, served

from .conftest import Holdfast
from .test_process import PATIENCE_SECONDS, Terminal, start


@pytest.fixture(params=["file", ON_POSTGRES, "server"])
def where(request: pytest.FixtureRequest, quiet_environment: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty store, named by HOLDFAST_STORE; for a server, with the operator's token."""
    match request.param:
        case "file":
            place = str(quiet_environment / "users.db")
            monkeypatch.setenv("HOLDFAST_STORE", place)
            yield place
        case "postgres":
            place = request.getfixturevalue("migrated_url")
            monkeypatch.setenv("HOLDFAST_STORE", place)
            yield place
        case _:
            with served(str(quiet_environment / "served.db")) as server:
                monkeypatch.setenv("HOLDFAST_STORE", server.url)
                monkeypatch.setenv("HOLDFAST_KEY", OPERATOR_KEY)
                yield server.url


async def owner(location: str, key: str) -> str | None:
    """The user that the store authenticates by this key."""
    engine = await open_engine(location, Settings(), embedder="fake", work=False)
    try:
        found = await engine.actor_of(key)
    finally:
        await engine.close()
    return None if found is None else found.id


def key_of(ran_out: str) -> str:
    """The key, which must be the whole output."""
    key = ran_out.removesuffix("\n")
    assert key.startswith("uk_")
    assert ran_out == f"{key}\n"
    assert key.replace("-", "").replace("_", "").isalnum()
    return key


def test_a_user_comes_gets_another_key_goes_and_comes_again(where: str, holdfast: Holdfast) -> None:
    made = holdfast("user", "create", "ana")
    assert made.code == 0, made.err
    first = key_of(made.out)
    assert "Created ana" in made.err
    rotated = holdfast("user", "rotate", "ana")
    second = key_of(rotated.out)
    assert second != first
    revoked = holdfast("user", "revoke", "ana", "--yes")
    assert (revoked.code, revoked.err) == (0, "")
    assert "holdfast user rotate ana" in revoked.out
    shown = holdfast("user", "list")
    assert "  ana  new key " in shown.out
    assert "  revoked " in shown.out
    (listed,) = holdfast("user", "list", "--json").json["users"]
    assert (listed["id"], listed["space"]) == ("ana", "default")
    assert listed["revoked_at"] is not None
    third = key_of(holdfast("user", "rotate", "ana").out)
    (listed,) = holdfast("user", "list", "--json").json["users"]
    assert listed["revoked_at"] is None
    for ran in (made, rotated):
        assert not any(key in ran.err for key in (first, second, third))
    for key in (first, second, third):
        assert key not in revoked.out + shown.out + json.dumps(listed)


def test_a_user_that_is_there_is_not_created_again(where: str, holdfast: Holdfast) -> None:
    key = key_of(holdfast("user", "create", "o'hara ben").out)
    again = holdfast("user", "create", "o'hara ben")
    assert (again.code, again.out) == (5, "")
    assert "holdfast user rotate 'o'\"'\"'hara ben'" in again.err
    assert key not in again.err
    told = holdfast("user", "create", "o'hara ben", "--json")
    assert (told.code, told.error["code"]) == (5, "user_exists")


@pytest.mark.parametrize("command", ["rotate", "revoke"])
def test_whoever_is_not_there_is_not_found(where: str, holdfast: Holdfast, command: str) -> None:
    key_of(holdfast("user", "create", "ana").out)
    ran = holdfast("user", command, "bob", *(["--yes"] if command == "revoke" else []))
    assert (ran.code, ran.out) == (3, "")
    assert "no user of this id" in ran.err


def test_the_key_that_was_printed_is_the_one_that_opens(holdfast: Holdfast, tmp_path: Path) -> None:
    key = key_of(holdfast("user", "create", "ana", "--store", "m.db").out)
    assert asyncio.run(owner("m.db", key)) == "ana"
    second = holdfast("user", "rotate", "ana", "--store", "m.db", "--json").json
    assert (second["user"]["id"], second["rotated"], second["created"]) == ("ana", True, False)
    assert asyncio.run(owner("m.db", key)) is None
    assert asyncio.run(owner("m.db", second["key"])) == "ana"
    assert holdfast("user", "revoke", "ana", "--yes", "--store", "m.db").code == 0
    assert asyncio.run(owner("m.db", second["key"])) is None
    # Only digests are stored.
    for file in tmp_path.iterdir():
        assert key.encode() not in file.read_bytes()


def test_users_of_a_space_are_its_own(holdfast: Holdfast) -> None:
    assert holdfast("user", "create", "ana", "--space", "tenant").code == 0
    assert "no users" in holdfast("user", "list").out
    assert "ana" in holdfast("user", "list", "--space", "tenant").out
    wrong = holdfast("user", "list", "--space", "*")
    assert wrong.code == 2
    assert "belongs to one space" in wrong.err


def test_all_users_are_listed_however_many_pages_that_takes(holdfast: Holdfast) -> None:
    with library.open("memory.db", work=False) as memory:
        for number in range(1_003):
            memory.create_user(f"user-{number:04}")
    assert [user["id"] for user in holdfast("user", "list", "--json").json["users"]] == [
        f"user-{number:04}" for number in range(1_003)
    ]
    assert len(holdfast("user", "list", "--limit", "1001").out.splitlines()) == 1_001
    assert len(holdfast("user", "list", "--limit", "2").out.splitlines()) == 2
    assert holdfast("user", "list", "--limit", "0").code == 2


def test_without_a_terminal_revoking_needs_a_yes(holdfast: Holdfast) -> None:
    holdfast("user", "create", "ana")
    ran = holdfast("user", "revoke", "ana", stdin=b"y\n")
    assert ran.code == 2
    assert "--yes" in ran.err
    assert "revoked" not in holdfast("user", "list").out


@pytest.mark.parametrize(("answer", "code"), [(b"n\n", 1), (b"y\n", 0)])
def test_revoking_asks_on_a_terminal(tmp_path: Path, answer: bytes, code: int) -> None:
    assert start(tmp_path, "user", "create", "ana", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait() == 0
    terminal = Terminal()
    process = start(
        tmp_path, "user", "revoke", "ana", stdin=terminal.theirs, stdout=subprocess.PIPE, stderr=terminal.theirs
    )
    terminal.read_until(b"Revoke the key of ana?")
    os.write(terminal.ours, answer)
    out, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == code
    assert (b"Revoked ana" in out) is (code == 0)
    listed = start(tmp_path, "user", "list", stdout=subprocess.PIPE).communicate()[0]
    assert (b"revoked" in listed) is (code == 0)


def test_only_create_makes_a_store(holdfast: Holdfast, tmp_path: Path) -> None:
    for command in (["rotate", "ana"], ["revoke", "ana", "--yes"], ["list"]):
        assert holdfast("user", *command).code == 6
    assert list(tmp_path.iterdir()) == []
    assert holdfast("user", "create", "ana").code == 0
    assert (tmp_path / "memory.db").exists()


def test_a_name_that_is_none_is_refused_and_not_shown_raw(holdfast: Holdfast) -> None:
    for name in ("", "a\x1b[2Jb", "x" * 2_000):
        ran = holdfast("user", "create", name)
        assert (ran.code, ran.out) == (2, "")
        assert "NAME" in ran.err
        assert "\x1b" not in ran.err


def test_a_key_that_cannot_be_printed_is_said_to_be_lost(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        process = start(tmp_path, "user", "create", "ana", stdout=full.fileno(), stderr=subprocess.PIPE)
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 1
    assert b"is lost; `holdfast user rotate ana` makes another" in err
    assert b"uk_" not in err
    assert b"Traceback" not in err


# --- a server ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def server(quiet_environment: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with served(str(quiet_environment / "served.db")) as running:
        monkeypatch.setenv("HOLDFAST_STORE", running.url)
        yield running.url


COMMANDS = (["create", "bob"], ["rotate", "ana"], ["revoke", "ana", "--yes"], ["list"])


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("key", ["user", "wrong", "revoked", None])
def test_only_operators_look_after_users(
    server: str, holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch, command: list[str], key: str | None
) -> None:
    monkeypatch.setenv("HOLDFAST_KEY", OPERATOR_KEY)
    known = key_of(holdfast("user", "create", "ana").out)
    gone = key_of(holdfast("user", "create", "eve").out)
    assert holdfast("user", "revoke", "eve", "--yes").code == 0
    before = holdfast("user", "list").out
    monkeypatch.delenv("HOLDFAST_KEY")
    presented = {"user": known, "wrong": "uk_hunter2", "revoked": gone, None: None}[key]
    if presented is not None:
        monkeypatch.setenv("HOLDFAST_KEY", presented)
    ran = holdfast("user", *command)
    assert (ran.code, ran.out) == (4, "")
    assert "uk_" not in ran.err
    assert ("HOLDFAST_KEY" in ran.err) is (key != "user")
    told = holdfast("user", *command, "--json")
    assert told.error["code"] == ("access_denied" if key == "user" else "unauthenticated")
    monkeypatch.setenv("HOLDFAST_KEY", OPERATOR_KEY)
    assert holdfast("user", "list").out == before


def test_a_user_comes_in_with_the_key_that_was_printed(
    server: str, holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_KEY", OPERATOR_KEY)
    key = key_of(holdfast("user", "create", "ana").out)
    monkeypatch.setenv("HOLDFAST_KEY", key)
    assert holdfast("add", "I moved to Lisbon.").code == 0
    (hit,) = holdfast("search", "Lisbon", "--json").json["hits"]
    assert hit["scope"]["subject"] == "ana"
    monkeypatch.setenv("HOLDFAST_KEY", OPERATOR_KEY)
    assert holdfast("user", "revoke", "ana", "--yes").code == 0
    monkeypatch.setenv("HOLDFAST_KEY", key)
    assert holdfast("search", "Lisbon").code == 4


def test_a_key_that_got_lost_on_the_way_is_told_of(holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    greeting = json.dumps(
        {"holdfast": "0", "actor": {"kind": "operator", "id": "local"}, "verbs": ["create_user"]}
    ).encode()
    monkeypatch.setenv("HOLDFAST_KEY", OPERATOR_KEY)
    with answering(http(200, greeting), HANG_UP) as (url, asked):
        ran = holdfast("user", "create", "ana", "--store", url)
    assert len(asked) == 2
    assert (ran.code, ran.out) == (6, "")
    assert f"`holdfast user rotate ana --store {url}` makes another" in ran.err
    assert OPERATOR_KEY not in ran.err
