"""The agent's configuration: its search path, its valid contents, and errors that show no key."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent.config import AgentConfig, MemoryGatewayConfig, MemoryMode, read_config
from holdfast.domain.secret import Secret
from holdfast.errors import ConfigurationError, InvalidInput
from holdfast.settings import Settings, read_settings
from serving import whole_chain

KEY = "uk_never-to-be-seen-0815"
GATEWAY = {
    "baseUrl": "http://127.0.0.1:8010/", "userId": "ana", "userKey": KEY, "appId": "chat", "projectId": "home",
    "scope": ["current_chat", "all_user_memory"], "topK": 12, "timeoutSeconds": 2.5,
    "minScore": 0.25,
}  # fmt: skip


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
        monkeypatch.delenv(name)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)


def written(folder: Path, content: Any) -> Path:
    """Write a config file into `folder`, from a text or from a value to serialize as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def configured(workspace: Path, content: Any) -> AgentConfig:
    written(workspace / ".holdfast", content)
    return read_config(workspace, Settings())


def with_gateway(**changes: Any) -> dict[str, Any]:
    return {name: value for name, value in (GATEWAY | changes).items() if value is not None}


def refused(workspace: Path, content: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        configured(workspace, content)
    shown = whole_chain(caught.value)
    assert KEY not in shown, "no error shows a key, nor does anything that it holds"
    assert str(workspace) in str(caught.value), "an error says which file is wrong"
    return str(caught.value)


# --- modes ----------------------------------------------------------------------------------------------------------


@pytest.mark.seed("000.config.1", "001.config.1")
@pytest.mark.parametrize("content", [None, {}, {"memory": {}}, {"agent": {"id": "x"}}, {"memory": {"curated": {}}}])
def test_missing_memory_configuration_produces_implicit_hybrid_mode(tmp_path: Path, content: Any) -> None:
    found = read_config(tmp_path, Settings()) if content is None else configured(tmp_path, content)
    assert (found.memory.mode, found.memory.explicit) == (MemoryMode.HYBRID, False)
    assert found.memory.mode.has_curated


@pytest.mark.seed("000.config.2")
@pytest.mark.parametrize(
    ("gateway", "lacking"),
    [
        ({}, "baseUrl, userId and userKey or userKeyFile"),
        (with_gateway(baseUrl=""), "baseUrl;"),
        (with_gateway(userId=" "), "userId;"),
        (with_gateway(userKey=""), "userKey or userKeyFile;"),
        (with_gateway(userKey=None), "userKey or userKeyFile;"),
        (with_gateway(userKey=None, userKeyFile="nowhere"), "the file that userKeyFile names;"),
    ],
)
def test_implicit_hybrid_without_credentials_has_no_gateway_and_one_warning(
    tmp_path: Path, gateway: dict[str, Any], lacking: str
) -> None:
    found = configured(tmp_path, {"memory": {"gateway": gateway}})
    assert (found.memory.mode, found.memory.gateway) == (MemoryMode.HYBRID, None)
    assert len(found.warnings) == 1
    assert lacking in found.warnings[0]
    assert KEY not in found.warnings[0]


def test_implicit_hybrid_with_credentials_has_a_gateway(tmp_path: Path) -> None:
    found = configured(tmp_path, {"memory": {"gateway": GATEWAY}})
    assert (found.memory.mode, found.memory.explicit, found.warnings) == (MemoryMode.HYBRID, False, ())
    assert found.memory.gateway is not None


@pytest.mark.seed("000.config.3")
@pytest.mark.parametrize("gateway", [None, GATEWAY, {}, "rubbish", {"topK": -1, "unknown": KEY}, 5])
def test_explicit_curated_mode_does_not_look_at_the_gateways_part(tmp_path: Path, gateway: Any) -> None:
    section = {"mode": "curated"} if gateway is None else {"mode": "curated", "gateway": gateway}
    found = configured(tmp_path, {"memory": section})
    assert (found.memory.mode, found.memory.explicit) == (MemoryMode.CURATED, True)
    assert (found.memory.gateway, found.warnings) == (None, ())


@pytest.mark.seed("000.config.4", "001.config.2")
@pytest.mark.parametrize("mode", ["hybrid", "memory_gateway"])
def test_a_complete_explicit_configuration_is_read_by_its_camel_case_names(tmp_path: Path, mode: str) -> None:
    found = configured(tmp_path, {"memory": {"mode": mode, "gateway": GATEWAY}}).memory
    assert (found.mode, found.explicit) == (MemoryMode(mode), True)
    assert found.mode.has_curated == (mode == "hybrid")
    gateway = found.gateway
    assert gateway is not None
    assert (gateway.base_url, gateway.user_id, gateway.user_key.revealed()) == ("http://127.0.0.1:8010", "ana", KEY)
    assert (gateway.app_id, gateway.project_id) == ("chat", "home")
    assert (gateway.scope, gateway.top_k) == (("current_chat", "all_user_memory"), 12)
    assert (gateway.timeout_seconds, gateway.min_score) == (2.5, 0.25)


def test_what_a_gateway_needs_not_be_told_has_defaults(tmp_path: Path) -> None:
    least = {name: GATEWAY[name] for name in ("baseUrl", "userId", "userKey")}
    gateway = configured(tmp_path, {"memory": {"mode": "hybrid", "gateway": least}}).memory.gateway
    assert gateway is not None
    assert (gateway.app_id, gateway.project_id, gateway.scope) == ("default", "default", ("current_chat", "resources"))
    assert (gateway.top_k, gateway.timeout_seconds, gateway.min_score) == (8, 10.0, None)


@pytest.mark.seed("000.config.5", "001.config.3")
@pytest.mark.parametrize("mode", ["hybrid", "memory_gateway"])
@pytest.mark.parametrize(
    ("gateway", "lacking"),
    [
        (None, "baseUrl, userId and userKey or userKeyFile"),
        (with_gateway(baseUrl=None), "baseUrl"),
        (with_gateway(baseUrl=""), "baseUrl"),
        (with_gateway(userId=""), "userId"),
        (with_gateway(userKey=" "), "userKey or userKeyFile"),
        (with_gateway(userKey=None, userKeyFile="nowhere"), "the file that userKeyFile names"),
    ],
)
def test_an_explicit_mode_with_a_gateway_fails_without_credentials(
    tmp_path: Path, mode: str, gateway: Any, lacking: str
) -> None:
    section = {"mode": mode} if gateway is None else {"mode": mode, "gateway": gateway}
    told = refused(tmp_path, {"memory": section})
    assert told.endswith(f"memory.gateway: mode {mode} needs {lacking}")


@pytest.mark.seed("000.config.6", "001.config.3", "000.config.7", "001.config.4")
@pytest.mark.parametrize("mode", [None, "hybrid", "memory_gateway"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scope", []), ("scope", ["elsewhere"]), ("scope", ["current_chat", "elsewhere"]), ("scope", "current_chat"),
        ("scope", [5]), ("scope", KEY), ("scope", [KEY]),
        ("topK", 0), ("topK", 101), ("topK", -1), ("topK", 2.5), ("topK", "8"), ("topK", True), ("topK", KEY),
        ("timeoutSeconds", 0), ("timeoutSeconds", -1), ("timeoutSeconds", "10"), ("timeoutSeconds", True),
        ("timeoutSeconds", 1e9), ("timeoutSeconds", KEY), ("timeoutSeconds", None),
        ("minScore", -0.1), ("minScore", 1.1), ("minScore", "0.5"), ("minScore", True), ("minScore", KEY),
        ("baseUrl", "127.0.0.1:8010"), ("baseUrl", "ftp://h"), ("baseUrl", f"http://x:{KEY}@h"), ("baseUrl", 5),
        ("baseUrl", f"http://h?key={KEY}"), ("baseUrl", KEY),
        ("userId", 5), ("userId", "a\x00b"), ("userId", "x" * 257), ("appId", ""), ("appId", 5), ("projectId", " "),
        ("userKey", 5), ("userKey", f"{KEY} {KEY}"), ("userKey", f"{KEY}é"), ("userKey", [KEY]),
        ("userKeyFile", KEY), ("userKeyFile", 5),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_gateways_part_fails_by_name_and_without_its_value(
    tmp_path: Path, mode: str | None, name: str, value: Any
) -> None:
    section = {"gateway": GATEWAY | {name: value}} | ({} if mode is None else {"mode": mode})
    assert f"memory.gateway.{name}: " in refused(tmp_path, {"memory": section})


@pytest.mark.seed("000.config.6", "001.config.3")
@pytest.mark.parametrize("mode", ["", "none", "Hybrid", KEY, 5, None, ["hybrid"]])
def test_a_mode_that_is_none_fails_and_says_which_there_are(tmp_path: Path, mode: Any) -> None:
    told = refused(tmp_path, {"memory": {"mode": mode, "gateway": GATEWAY}})
    assert told.endswith("memory.mode: must be one of curated, hybrid, memory_gateway")


# --- the key --------------------------------------------------------------------------------------------------------


def test_a_key_can_be_in_a_file_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / ".holdfast").mkdir()
    (tmp_path / ".holdfast" / "gateway.key").write_text(f"{KEY}\n")
    given = with_gateway(userKey=None, userKeyFile="gateway.key")
    gateway = configured(tmp_path, {"memory": {"mode": "hybrid", "gateway": given}}).memory.gateway
    assert gateway is not None
    assert gateway.user_key.revealed() == KEY


@pytest.mark.seed("000.config.7", "001.config.4")
@pytest.mark.parametrize("content", [f"{KEY} {KEY}", f"{KEY}\n{KEY}\n", f"{KEY}é", "", " \n"])
def test_a_file_that_holds_no_key_is_refused_without_what_it_holds(tmp_path: Path, content: str) -> None:
    written(tmp_path / ".holdfast", {})
    (tmp_path / ".holdfast" / "key").write_text(content)
    given = with_gateway(userKey=None, userKeyFile="key")
    assert "userKeyFile" in refused(tmp_path, {"memory": {"mode": "hybrid", "gateway": given}})


def test_a_folder_in_place_of_a_key_file_is_refused_in_any_mode(tmp_path: Path) -> None:
    given = with_gateway(userKey=None, userKeyFile=".")
    assert "memory.gateway.userKeyFile: names a file" in refused(tmp_path, {"memory": {"gateway": given}})


@pytest.mark.parametrize("way", ["absolute", "upwards", "a link"])
@pytest.mark.parametrize("setting", ["userKeyFile", "apiKeyFile"])
def test_a_config_that_lies_in_a_folder_names_no_file_outside_of_it(tmp_path: Path, setting: str, way: str) -> None:
    (tmp_path / "token").write_text(KEY)
    written(tmp_path / ".holdfast", {})
    (tmp_path / ".holdfast" / "link").symlink_to(tmp_path / "token")
    named = {"absolute": str(tmp_path / "token"), "upwards": "../token", "a link": "link"}[way]
    given = with_gateway(userKey=None, userKeyFile=named)
    content = {"memory": {"gateway": given}} if setting == "userKeyFile" else {"agent": {"apiKeyFile": named}}
    assert f"{setting}: names a file outside of this folder" in refused(tmp_path, content)


def test_a_config_that_somebody_chose_may_name_any_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(KEY)
    content = {"memory": {"gateway": with_gateway(userKey=None, userKeyFile=str(tmp_path / "token"))}}
    for settings in (
        Settings(config_path=written(tmp_path / "chosen", content)),
        Settings(home=written(tmp_path / "home", content).parent),
    ):
        gateway = read_config(tmp_path, settings).memory.gateway
        assert gateway is not None
        assert gateway.user_key.revealed() == KEY


@pytest.mark.seed("000.config.7", "001.config.4")
def test_no_representation_pickle_or_warning_of_a_configuration_shows_the_key(tmp_path: Path) -> None:
    found = configured(tmp_path, {"memory": {"mode": "hybrid", "gateway": GATEWAY}})
    assert KEY not in f"{found} {found!r} {found.memory.gateway} {found.warnings}"
    with pytest.raises(TypeError):
        pickle.dumps(found)


def test_a_gateway_config_cannot_be_made_of_what_a_gateway_cannot_use() -> None:
    good: dict[str, Any] = {"base_url": "http://h", "user_id": "ana", "user_key": Secret(KEY)}
    assert KEY not in repr(MemoryGatewayConfig(**good))
    for name, value in {
        "base_url": "h",
        "user_id": "",
        "user_key": KEY,
        "scope": (),
        "top_k": 0,
        "min_score": 2,
    }.items():
        with pytest.raises(InvalidInput) as caught:
            MemoryGatewayConfig(**{**good, name: value})
        assert caught.value.field == name
        assert KEY not in str(caught.value)


# --- the agent section ----------------------------------------------------------------------------------------------


def test_the_agents_part_is_read(tmp_path: Path) -> None:
    agent = {
        "id": "beaver", "provider": "openai", "model": "qwen3", "baseUrl": "http://127.0.0.1:11434/v1/",
        "apiKeyFile": "model.key", "instructions": "Be brief.", "maxToolRounds": 3, "historyMessages": 0,
        "skills": ["tidy"],
    }  # fmt: skip
    curated = {"memoryChars": 500, "userChars": 300}
    found = configured(tmp_path, {"agent": agent, "memory": {"mode": "curated", "curated": curated}})
    assert (found.agent_id, found.provider, found.model) == ("beaver", "openai", "qwen3")
    assert found.base_url == "http://127.0.0.1:11434/v1"
    assert found.api_key_file == tmp_path / ".holdfast" / "model.key"
    assert (found.instructions, found.max_tool_rounds, found.history_messages) == ("Be brief.", 3, 0)
    assert found.skills == ("tidy",)
    assert (found.memory.memory_chars, found.memory.user_chars) == (500, 300)
    assert found.source == tmp_path / ".holdfast" / "config.json"


def test_without_a_file_defaults_hold(tmp_path: Path) -> None:
    found = read_config(tmp_path, Settings())
    assert (found.source, found.workspace, found.home) == (None, tmp_path, tmp_path / ".holdfast")
    assert (found.agent_id, found.provider, found.model, found.base_url) == ("holdfast", None, None, None)
    assert (found.max_tool_rounds, found.history_messages, found.skills) == (8, 40, ())
    assert (found.memory.memory_chars, found.memory.user_chars) == (2200, 1375)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", ""), ("id", 5), ("provider", "gpt"), ("provider", None), ("model", 5), ("baseUrl", "localhost"),
        ("apiKeyFile", 5), ("apiKeyFile", "a\x00b"), ("instructions", []), ("maxToolRounds", -1),
        ("maxToolRounds", "8"), ("historyMessages", 1_001), ("skills", "tidy"), ("skills", [5]),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_agents_part_is_told_by_name(tmp_path: Path, name: str, value: Any) -> None:
    assert f"agent.{name}: " in refused(tmp_path, {"agent": {name: value}})


# --- the file -------------------------------------------------------------------------------------------------------


def test_comments_are_allowed_except_where_they_are_text(tmp_path: Path) -> None:
    text = """
    // what the agent is
    { "agent": { "id": "a//b", // not a comment in quotes
                 "instructions": "say \\"//\\" twice" } } // the end"""
    found = configured(tmp_path, text)
    assert (found.agent_id, found.instructions) == ("a//b", 'say "//" twice')


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"memmory": {}}, "there is no setting `memmory`; did you mean `memory`?"),
        ({"memory": {"gateway": {"user_key": KEY}}}, "no setting `user_key`; did you mean `userKey`?"),
        ({"memory": {"modes": KEY}}, "memory: there is no setting `modes`"),
        ({"memory": {"curated": {"chars": 5}}}, "memory.curated: there is no setting `chars`"),
        ({"agent": {"key": KEY}}, "agent: there is no setting `key`; known are id, provider"),
        ({KEY: 5}, "there is no setting a name that is not a plain word"),
        ({"memory": {"gateway": {KEY: 5}}}, "memory.gateway: there is no setting a name"),
        ({"memory": None}, "memory: must be an object"),
        ({"memory": []}, "memory: must be an object"),
        ({"memory": {"mode": "hybrid", "gateway": KEY}}, "memory.gateway: must be an object"),
        ([KEY], "must be one object"),
        ("", "line 1, column 1"),
        ('{"memory": {\n "gateway": {"userKey": "' + KEY + '",}}}', "line 2"),
        ('{"memory": {"gateway": {"userKey": "' + KEY, "line 1"),
        ('{"agent": {}, "agent": {}}', "has `agent` twice"),
        ('{"' + KEY + '": 1, "' + KEY + '": 2}', "has a setting twice"),
        ('{"a": ' + "[" * 100_000, "nested too deeply"),
        ('{"agent": {"maxToolRounds": ' + "9" * 5_000 + "}}", "a number that is too long"),
        (" " * 1_000_001, "is larger than"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_by_place_and_never_by_value(tmp_path: Path, content: Any, told: str) -> None:
    assert told in refused(tmp_path, content)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    written(tmp_path / ".holdfast", "").write_bytes(b"\xff" + KEY.encode())
    with pytest.raises(ConfigurationError, match="is not UTF-8") as caught:
        read_config(tmp_path, Settings())
    assert KEY not in whole_chain(caught.value)


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    assert configured(tmp_path, '\ufeff{"agent": {"id": "x"}}').agent_id == "x"


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".holdfast" / "config.json").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_config(tmp_path, Settings())


# --- search path ----------------------------------------------------------------------------------------------------


def test_the_file_is_the_first_that_there_is_of_four(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = {"agent": {"id": "named"}}
    workspace, home, current = tmp_path / "workspace", tmp_path / "home", Path.cwd()
    workspace.mkdir()
    monkeypatch.setenv("HOLDFAST_HOME", str(home))

    def found() -> str:
        return read_config(workspace, read_settings()).agent_id

    assert found() == "holdfast"
    written(current / ".holdfast", {"agent": {"id": "current"}})
    assert found() == "current"
    written(workspace / ".holdfast", {"agent": {"id": "workspace"}})
    assert found() == "workspace"
    written(home, {"agent": {"id": "home"}})
    assert found() == "home"
    monkeypatch.setenv("HOLDFAST_CONFIG_PATH", str(written(tmp_path / "named", named)))
    assert found() == "named"
    monkeypatch.setenv("HOLDFAST_CONFIG_PATH", "")
    assert found() == "home"


def test_the_home_is_where_it_is_said_or_in_the_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = read_config(tmp_path, read_settings())
    assert (found.home, found.memories) == (tmp_path / ".holdfast", tmp_path / ".holdfast" / "memories")
    assert found.sessions == tmp_path / ".holdfast" / "sessions" / "state.db"
    monkeypatch.setenv("HOLDFAST_HOME", "somewhere")
    assert read_config(tmp_path).home == Path.cwd() / "somewhere"
    monkeypatch.setenv("HOLDFAST_HOME", "")
    assert read_config().home == Path.cwd() / ".holdfast"


def test_a_file_that_was_named_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / ".holdfast", {})
    monkeypatch.setenv("HOLDFAST_CONFIG_PATH", str(tmp_path / "nowhere.json"))
    with pytest.raises(ConfigurationError, match="HOLDFAST_CONFIG_PATH: there is no file"):
        read_config(tmp_path)


def test_a_workspace_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such folder; create it"):
        read_config(tmp_path / "nowhere", Settings())
