"""Loading builds what the configuration names, and reports errors before any request is sent."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from recorded import configured

from holdfast.agent.config import MemoryMode, read_config
from holdfast.agent.loader import EngineLoader, EngineLoadResult
from holdfast.agent.loop import AgentLoop
from holdfast.agent.ports import ModelMessage, Reply, Role
from holdfast.agent.providers.scripted import ScriptedModel
from holdfast.errors import ConfigurationError, InvalidInput, ModelMisconfigured, StoreClosed
from holdfast.settings import Settings
from serving import answering, http

KEY = "uk_never-to-be-seen"
GATEWAY = {"baseUrl": "http://127.0.0.1:9", "userId": "ana", "userKey": KEY}


def loaded(folder: Path, **more: Any) -> EngineLoadResult:
    async def load() -> EngineLoadResult:
        loader = EngineLoader(folder, settings=Settings(), **{"model": ScriptedModel(), **more})
        async with await loader.load() as found:
            return found

    return asyncio.run(load())


@pytest.mark.parametrize(
    ("memory", "layers", "tools"),
    [
        ({"mode": "curated", "gateway": GATEWAY}, (True, False), ("memory", "session_search")),
        ({"mode": "hybrid", "gateway": GATEWAY}, (True, True), ("memory", "session_search")),
        ({"gateway": GATEWAY}, (True, True), ("memory", "session_search")),
        (None, (True, False), ("memory", "session_search")),
        ({"mode": "memory_gateway", "gateway": GATEWAY}, (False, True), ("session_search",)),
    ],
)
def test_each_mode_has_its_layers_and_tools(
    memory: dict[str, Any] | None, layers: tuple[bool, bool], tools: tuple[str, ...], tmp_path: Path
) -> None:
    found = loaded(configured(tmp_path, memory))
    assert (found.memory_service is not None, found.memory_gateway_service is not None) == layers
    assert (found.memory.curated, found.memory.gateway) == (found.memory_service, found.memory_gateway_service)
    assert found.tools.names == tools


def test_an_implicit_hybrid_without_credentials_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    partly = {"gateway": {"baseUrl": "http://127.0.0.1:9", "userKey": KEY}}

    async def run() -> EngineLoadResult:
        model = ScriptedModel([Reply("One."), Reply("Two.")])
        async with await EngineLoader(configured(tmp_path, partly), settings=Settings(), model=model).load() as found:
            loop = AgentLoop(found)
            await loop.run("One?")
            await loop.run("Two?")
            return found

    with caplog.at_level(logging.WARNING):
        found = asyncio.run(run())
    (warning,) = found.warnings
    assert "userId" in warning
    assert [record.getMessage() for record in caplog.records] == [warning]
    assert caplog.records[0].name == "holdfast.agent"
    assert KEY not in repr(found) + caplog.text
    assert found.config.memory.mode is MemoryMode.HYBRID
    assert not found.config.memory.explicit


def test_an_explicit_hybrid_without_credentials_is_not_loaded(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="userId") as refused:
        loaded(configured(tmp_path, {"mode": "hybrid", "gateway": {"baseUrl": "http://127.0.0.1:9", "userKey": KEY}}))
    assert KEY not in str(refused.value)
    assert not (tmp_path / ".holdfast" / "sessions").exists()


def test_a_skill_that_cannot_be_read_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / ".holdfast" / "skills" / "broken").mkdir(parents=True)
    found = loaded(configured(tmp_path, {"mode": "curated"}))
    assert [warning for warning in found.warnings if "broken" in warning]
    assert "broken" in caplog.text
    assert "activate_skill" not in found.tools


@pytest.mark.parametrize("name", ["broken", "unknown"])
def test_a_skill_that_was_chosen_and_cannot_be_read_is_an_error(name: str, tmp_path: Path) -> None:
    (tmp_path / ".holdfast" / "skills" / "broken").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match=rf"agent\.skills: .*{name}"):
        loaded(configured(tmp_path, {"mode": "curated"}, skills=[name]))


def test_a_tool_of_a_name_that_the_agent_uses_itself_is_refused(tmp_path: Path) -> None:
    def session_search(query: str) -> str:
        """Mine."""
        return query

    with pytest.raises(InvalidInput, match="session_search"):
        loaded(configured(tmp_path, {"mode": "curated"}), tools=[session_search])


def test_a_config_that_is_given_goes_before_the_file(tmp_path: Path) -> None:
    configured(tmp_path / "file", {"mode": "memory_gateway", "gateway": GATEWAY})
    other = read_config(configured(tmp_path / "other", {"mode": "curated"}), Settings())
    assert loaded(tmp_path / "file", config=other).config is other


def test_a_model_that_was_given_is_left_open(tmp_path: Path) -> None:
    given = ScriptedModel()
    assert loaded(configured(tmp_path, {"mode": "curated"}), model=given).model is given
    assert not given.closed


def test_the_model_is_the_configured_one(tmp_path: Path) -> None:
    folder = configured(tmp_path, {"mode": "curated"}, provider="scripted")
    assert loaded(folder, model=None).model.name == "scripted:rules"


def test_without_a_model_nothing_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(ModelMisconfigured, match=r"agent\.provider"):
        loaded(configured(tmp_path, {"mode": "curated"}), model=None)
    assert not (tmp_path / ".holdfast" / "sessions").exists()


def test_a_model_that_was_opened_is_closed(tmp_path: Path) -> None:
    async def run(url: str) -> None:
        folder = configured(tmp_path, {"mode": "curated"}, provider="openai", model="m", baseUrl=url)
        found = await EngineLoader(folder, settings=Settings()).load()
        await found.close()
        with pytest.raises(RuntimeError, match="closed"):
            await anext(aiter(found.model.stream([ModelMessage(Role.USER, "Hello?")], [])))

    with answering(http(200)) as (url, asked):
        asyncio.run(run(url))
    assert asked == []


def test_what_was_loaded_can_be_closed_twice_and_loaded_again(tmp_path: Path) -> None:
    async def run() -> None:
        loader = EngineLoader(configured(tmp_path, {"mode": "curated"}), settings=Settings(), model=ScriptedModel())
        for _ in range(2):
            found = await loader.load()
            await found.sessions.sessions()
            await found.close()
            await found.close()
            with pytest.raises(StoreClosed):
                await found.sessions.sessions()

    asyncio.run(run())


def test_nothing_stays_open_when_loading_fails(tmp_path: Path) -> None:
    """A folder is in the place of the sessions file."""
    (tmp_path / ".holdfast" / "sessions" / "state.db").mkdir(parents=True)
    with pytest.raises(Exception, match=r"state\.db"):
        loaded(configured(tmp_path, {"mode": "curated"}))
