"""Initializing an agent: the config works unchanged, and the key is never shown."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.served import TOKEN, Gateway
from gateway.served import serving as gateway_at
from holdfast.agent.config import MemoryMode, read_config
from holdfast.agent.initialize import AgentModelChoice, GatewayChoice, InitResult, initialize, render_config
from holdfast.errors import (
    ConfigurationError,
    Conflict,
    HoldfastError,
    InvalidInput,
    OutcomeUnknown,
    StoreUnavailable,
    StoreUnusable,
    Unauthenticated,
    UserExists,
)
from holdfast.settings import Settings
from serving import HANG_UP, answering, http, whole_chain

OPENAI = AgentModelChoice("openai", "qwen3", "http://127.0.0.1:11434/v1")


@pytest.fixture
def open_gateway(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway where anybody may sign up."""
    with gateway_at(tmp_path / "served.db", open_sign_up=True) as served:
        yield served


@pytest.fixture
def guarded_gateway(tmp_path: Path) -> Iterator[Gateway]:
    with gateway_at(tmp_path / "served.db", token=TOKEN) as served:
        yield served


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def init(
    folder: Path, gateway: str | None = None, user: str = "ana", key_file: Path | None = None, **settings: Any
) -> InitResult:
    choice = None if gateway is None else GatewayChoice(gateway, user, key_file)
    return initialize(folder, Settings(**settings), None, choice)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def key_in(folder: Path) -> str:
    return (folder / ".holdfast" / "gateway.key").read_text()


def test_the_config_that_is_written_is_read_without_a_warning(folder: Path) -> None:
    done = init(folder)
    found = read_config(folder, Settings())
    assert (found.source, found.provider, found.memory.mode, found.warnings) == (
        done.config, "scripted", MemoryMode.CURATED, (),
    )  # fmt: skip
    assert mode(done.config) == 0o600
    assert mode(done.config.parent) == 0o700
    assert files(folder) == [".holdfast", ".holdfast/.gitignore", ".holdfast/config.json"]


@pytest.mark.parametrize("model", [AgentModelChoice(), OPENAI, AgentModelChoice("anthropic")])
@pytest.mark.parametrize("gateway", [None, GatewayChoice("http://127.0.0.1:8010", 'an"a')])
def test_whatever_is_chosen_the_config_says_so(
    folder: Path, model: AgentModelChoice, gateway: GatewayChoice | None
) -> None:
    (folder / ".holdfast").mkdir()
    (folder / ".holdfast" / "config.json").write_text(render_config(model, gateway))
    (folder / ".holdfast" / "gateway.key").write_text("uk_key")
    found = read_config(folder, Settings())
    assert (found.provider, found.model, found.base_url) == (model.provider, model.model, model.base_url)
    assert (found.memory.gateway and found.memory.gateway.user_id) == (gateway and gateway.user_id)


def test_each_setting_that_is_commented_out_works_once_it_is_not(folder: Path) -> None:
    lines = render_config(AgentModelChoice("openai")).splitlines()
    settings = [line.replace("// ", "", 1) if line.lstrip().startswith('// "') else line for line in lines]
    assert settings != lines
    shown = "\n".join(settings).replace("the name of a folder in skills/, beside this file", "birds")
    (folder / ".holdfast").mkdir()
    (folder / ".holdfast" / "config.json").write_text(shown)
    found = read_config(folder, Settings())
    assert (found.instructions, found.skills) == ("You are a helpful assistant.", ("birds",))
    assert found.model == "the name of one of the provider's models"


def test_a_config_that_is_there_is_not_overwritten(folder: Path) -> None:
    (folder / ".holdfast").mkdir()
    config = folder / ".holdfast" / "config.json"
    config.write_text("{}")
    with pytest.raises(Conflict, match="exists and is not overwritten"):
        init(folder)
    config.unlink()
    config.symlink_to(folder / "elsewhere")
    with pytest.raises(Conflict):
        init(folder)
    assert files(folder) == [".holdfast", ".holdfast/config.json"]


def test_a_user_is_created_and_its_key_works_and_is_private(open_gateway: Gateway, folder: Path) -> None:
    done = init(folder, open_gateway.url)
    assert (done.created, done.key_file) == (True, folder / ".holdfast" / "gateway.key")
    assert mode(folder / ".holdfast" / "gateway.key") == 0o600
    found = read_config(folder, Settings()).memory
    assert found.mode is MemoryMode.HYBRID
    assert found.gateway is not None
    assert found.gateway.user_key.revealed() == key_in(folder).strip()
    listed = open_gateway.http.get("/memories", headers={"Authorization": f"Bearer {key_in(folder).strip()}"})
    assert listed.status_code == 200
    assert key_in(folder).strip() not in done.config.read_text() + repr(done) + repr(found)
    assert "gateway.key" in (folder / ".holdfast" / ".gitignore").read_text()


def test_a_config_that_nobody_changed_is_connected_afterwards(open_gateway: Gateway, folder: Path) -> None:
    init(folder)
    assert init(folder, open_gateway.url).replaced
    assert read_config(folder, Settings()).memory.mode is MemoryMode.HYBRID


@pytest.mark.parametrize("model", [OPENAI, AgentModelChoice("anthropic")])
def test_a_config_with_a_chosen_model_keeps_it_when_it_is_connected_afterwards(
    open_gateway: Gateway, folder: Path, model: AgentModelChoice
) -> None:
    initialize(folder, Settings(), model)
    assert init(folder, open_gateway.url).replaced
    found = read_config(folder, Settings())
    assert (found.provider, found.model, found.base_url) == (model.provider, model.model, model.base_url)
    assert found.memory.mode is MemoryMode.HYBRID


def test_a_key_that_stays_where_it_is_becomes_private(open_gateway: Gateway, folder: Path) -> None:
    place = init(folder, open_gateway.url).key_file
    assert place is not None
    place.chmod(0o644)
    (folder / ".holdfast" / "config.json").unlink()
    init(folder, open_gateway.url, key_file=place)
    assert mode(place) == 0o600


def test_a_gateway_with_a_token_creates_users_for_its_operator_alone(guarded_gateway: Gateway, folder: Path) -> None:
    for settings in ({}, {"key": "wrong"}):
        with pytest.raises(Unauthenticated, match="operator"):
            init(folder, guarded_gateway.url, **settings)
        assert files(folder) == []
    assert init(folder, guarded_gateway.url, key=TOKEN).created


def test_the_operators_token_may_be_where_the_service_has_it(guarded_gateway: Gateway, folder: Path) -> None:
    assert init(folder, guarded_gateway.url, operator_token=TOKEN).created


@pytest.mark.parametrize("others", [0, 120])
def test_the_key_of_a_user_who_is_there_is_not_changed(guarded_gateway: Gateway, folder: Path, others: int) -> None:
    """The operator's token could change it, which would lock out users of the old key."""
    for number in range(others):
        guarded_gateway.user(f"a{number:03}")
    ana = guarded_gateway.user("ana")
    with pytest.raises(UserExists, match="--key-file"):
        init(folder, guarded_gateway.url, key=TOKEN)
    assert guarded_gateway.http.get("/memories", headers=ana.headers).status_code == 200
    assert files(folder) == []


def test_who_is_a_user_already_gives_the_key(open_gateway: Gateway, folder: Path) -> None:
    ana = open_gateway.user("ana")
    with pytest.raises(UserExists):
        init(folder, open_gateway.url)
    (folder / "mine").write_text(f" {ana.key}\n")
    done = init(folder, open_gateway.url, key_file=folder / "mine")
    assert not done.created
    assert key_in(folder) == f"{ana.key}\n"
    assert mode(folder / ".holdfast" / "gateway.key") == 0o600


@pytest.mark.parametrize(("content", "error"), [("uk_wrong", Unauthenticated), ("", ConfigurationError)])
def test_a_key_that_is_not_the_users_is_refused(
    open_gateway: Gateway, folder: Path, content: str, error: type[HoldfastError]
) -> None:
    open_gateway.user("ana")
    (folder / "mine").write_text(content)
    with pytest.raises(error) as refused:
        init(folder, open_gateway.url, key_file=folder / "mine")
    assert "uk_wrong" not in whole_chain(refused.value)
    assert files(folder) == ["mine"]


def test_a_key_that_was_kept_before_can_be_used_in_its_place(open_gateway: Gateway, folder: Path) -> None:
    done = init(folder, open_gateway.url)
    done.config.unlink()
    before = key_in(folder)
    with pytest.raises(Conflict, match="--key-file"):
        init(folder, open_gateway.url)
    assert not init(folder, open_gateway.url, key_file=folder / ".holdfast" / "gateway.key").created
    assert key_in(folder) == before


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (http(500), StoreUnavailable),
        (http(429), StoreUnavailable),
        (http(404), StoreUnusable),
        (http(422), InvalidInput),
        (http(200, b"[]"), StoreUnusable),
        (http(201, b'{"user_key": 7}'), StoreUnusable),
        (http(201, b"not JSON"), StoreUnusable),
        (http(201, b'{"user_key": "two words"}'), StoreUnusable),
        (HANG_UP, OutcomeUnknown),
    ],
)
def test_a_gateway_that_answers_otherwise_leaves_nothing_behind(
    folder: Path, reply: bytes, error: type[HoldfastError]
) -> None:
    with answering(reply) as (url, asked), pytest.raises(error):
        init(folder, url)
    assert json.loads(asked[0].partition(b"\r\n\r\n")[2]) == {"user_id": "ana"}
    assert len(asked) == 1
    assert files(folder) == []


def test_the_token_is_not_sent_to_a_gateway_that_did_not_ask_for_it(folder: Path) -> None:
    with answering(http(201, b'{"user_key": "uk_new"}')) as (url, asked):
        init(folder, url, key=TOKEN, operator_token=TOKEN)
    assert TOKEN.encode() not in asked[0]
    assert key_in(folder) == "uk_new\n"


def test_a_gateway_that_is_not_there_leaves_nothing_behind(folder: Path) -> None:
    with pytest.raises(StoreUnavailable, match="holdfast serve"):
        init(folder, "http://127.0.0.1:9")
    assert files(folder) == []


def test_a_folder_that_cannot_be_written_asks_for_no_key(open_gateway: Gateway, folder: Path) -> None:
    (folder / ".holdfast").write_text("a file where the folder should be")
    with pytest.raises(OSError):
        init(folder, open_gateway.url)
    assert open_gateway.http.post("/users", json={"user_id": "ana"}).status_code == 201


def test_the_home_and_the_config_may_be_elsewhere(open_gateway: Gateway, folder: Path) -> None:
    home, config = folder / "home", folder / "etc" / "agent.json"
    done = init(folder, open_gateway.url, home=home, config_path=config)
    assert (done.config, done.key_file) == (config, home / "gateway.key")
    found = read_config(folder, Settings(home=home, config_path=config))
    assert found.memory.gateway is not None
    assert not (folder / ".holdfast").exists()


def test_what_cannot_be_a_gateway_or_a_user_is_refused_at_once(folder: Path) -> None:
    for url, user in (("ftp://x", "ana"), ("http://127.0.0.1:8010", "")):
        with pytest.raises(InvalidInput):
            GatewayChoice(url, user)
    with pytest.raises(ConfigurationError):
        init(folder / "nowhere")


def test_a_private_file_is_private_whatever_the_umask(open_gateway: Gateway, folder: Path) -> None:
    before = os.umask(0)
    try:
        init(folder, open_gateway.url)
    finally:
        os.umask(before)
    assert mode(folder / ".holdfast" / "gateway.key") == 0o600
    assert mode(folder / ".holdfast") == 0o700
