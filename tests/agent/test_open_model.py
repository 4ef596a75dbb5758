"""Opening the configured model; each key is sent only to the address it belongs to."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from spoken import Answer, failing, speaking

from holdfast.agent.config import AgentConfig
from holdfast.agent.ports import ChatModel, ModelMessage, Reply, Role
from holdfast.agent.providers import open_model
from holdfast.agent.providers.rule_model import RuleModel
from holdfast.errors import HoldfastError, ModelMisconfigured
from holdfast.settings import Settings
from serving import whole_chain

ENV_KEY, FILE_KEY = "sk-of-the-environment", "sk-of-the-file"
OPENAI = Answer(pieces=[b'data: {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}\n\n'])
ANTHROPIC = Answer(
    pieces=[
        b'event: content_block_start\ndata: {"type": "content_block_start", "index": 0,'
        b' "content_block": {"type": "text", "text": "Hi"}}\n\n',
        b'event: message_delta\ndata: {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}\n\n',
    ]
)
BOTH = pytest.mark.parametrize("provider", ["openai", "anthropic"])


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def config(tmp_path: Path) -> AgentConfig:
    return AgentConfig(workspace=tmp_path, home=tmp_path, model="m")


def said(model: ChatModel) -> str:
    async def talk() -> str:
        events = [event async for event in model.stream([ModelMessage(Role.USER, "Hello")], ())]
        await model.close()
        assert isinstance(events[-1], Reply)
        return events[-1].text

    return asyncio.run(talk())


def sent_to(provider: str, config: AgentConfig, settings: Settings | None = None, **more: Any) -> str | None:
    """The key that a server at `agent.baseUrl` receives."""
    with speaking(OPENAI if provider == "openai" else ANTHROPIC) as server:
        asked = replace(config, provider=provider, **{"base_url": server.url} | more)
        assert said(open_model(asked, settings or Settings())) == "Hi"
    (request,) = server.requests
    assert "x-api-key" not in request.headers
    return request.headers.get("authorization")


def test_scripted_is_a_model_of_rules_that_needs_nothing(config: AgentConfig) -> None:
    assert isinstance(open_model(replace(config, provider="scripted", model=None), Settings()), RuleModel)


@BOTH
def test_a_server_of_ones_own_needs_no_key_and_gets_none_that_is_not_its_own(
    provider: str, config: AgentConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sent_to(provider, config) is None
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", ENV_KEY)
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", ENV_KEY)
    assert sent_to(provider, config) is None


@BOTH
def test_a_key_in_a_file_goes_to_the_address_that_is_named_with_it(
    provider: str, config: AgentConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text(f"  {FILE_KEY}\n")
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", ENV_KEY)
    assert sent_to(provider, config, api_key_file=tmp_path / "key") == f"Bearer {FILE_KEY}"


@BOTH
def test_a_key_in_the_environment_goes_to_the_address_beside_it(
    provider: str, config: AgentConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = provider.upper()
    monkeypatch.setenv(f"{name}_API_KEY", ENV_KEY)
    with speaking(OPENAI if provider == "openai" else ANTHROPIC) as server:
        monkeypatch.setenv(f"{name}_BASE_URL", f"{server.url}/")
        assert said(open_model(replace(config, provider=provider), Settings())) == "Hi"
        monkeypatch.delenv(f"{name}_API_KEY")
        (tmp_path / f"{provider}_api_key").write_text(FILE_KEY)
        assert said(open_model(replace(config, provider=provider), Settings(secrets_dir=tmp_path))) == "Hi"
    assert [request.headers["authorization"] for request in server.requests] == [
        f"Bearer {ENV_KEY}",
        f"Bearer {FILE_KEY}",
    ]


@BOTH
def test_a_refusal_says_which_key_an_address_gets(provider: str, config: AgentConfig) -> None:
    with speaking(failing(401)) as server:
        model = open_model(replace(config, provider=provider, base_url=server.url), Settings())
        with pytest.raises(ModelMisconfigured, match=r"agent\.apiKeyFile"):
            said(model)


@BOTH
def test_what_is_missing_is_told_with_what_to_do(provider: str, config: AgentConfig, tmp_path: Path) -> None:
    def refused(**more: Any) -> str:
        with pytest.raises(ModelMisconfigured) as told:
            open_model(replace(config, **{"provider": provider} | more), Settings())
        return str(told.value)

    assert "--provider" in refused(provider=None)
    assert "openai, anthropic or scripted" in refused(provider="canary")
    assert "--model" in refused(model=None)
    assert f"{provider.upper()}_API_KEY" in refused()
    assert "cannot be read" in refused(api_key_file=tmp_path / "nowhere")
    (tmp_path / "empty").write_text("\n")
    assert "agent.apiKeyFile" in refused(api_key_file=tmp_path / "empty")
    assert "agent.baseUrl" in refused(base_url="ftp://somewhere")


def test_a_key_that_cannot_be_one_is_told_by_its_name_alone(
    config: AgentConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text("hunter2 and more")
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2 and more")
    for more in ({"api_key_file": tmp_path / "key"}, {"api_key_file": tmp_path / "hunter2"}, {}):
        with pytest.raises(HoldfastError) as told:
            open_model(replace(config, provider="openai", **more), Settings())
        assert "hunter2" not in f"{told.value}{told.value!r}"
        assert "hunter2 and more" not in whole_chain(told.value)


def test_an_sdk_is_imported_only_for_its_own_models(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom holdfast.agent.config import AgentConfig\n"
        "from holdfast.agent.providers import open_model\nfrom holdfast.settings import Settings\n"
        "place = Path(sys.argv[1])\n"
        "open_model(AgentConfig(place, place, provider='scripted'), Settings())\n"
        "assert not {'openai', 'anthropic'} & set(sys.modules)\n"
        "config = AgentConfig(place, place, provider='openai', model='m', base_url='http://127.0.0.1:1')\n"
        "open_model(config, Settings())\n"
        "assert 'anthropic' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, timeout=60)
