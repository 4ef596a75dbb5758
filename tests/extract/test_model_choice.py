"""The model that the settings name: its protocol, its address, and the only address that the key goes to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from test_model_curator import KEY, SAID

from completions import completion
from holdfast.app import make_curator
from holdfast.domain.secret import Secret
from holdfast.errors import ModelMisconfigured, ModelUnavailable
from holdfast.ports import CurationResult
from holdfast.settings import Settings
from model_server import COMPLETIONS, INPUT_TOKENS, MESSAGES, OUTPUT_TOKENS, fact, model_server
from serving import answering

OPENAI, ANTHROPIC, OLLAMA = "https://api.openai.com/v1", "https://api.anthropic.com", "http://127.0.0.1:11434/v1"
ELSEWHERE = "https://models.example/v1"


def curate(settings: Settings, **more: Any) -> CurationResult:
    async def ask() -> CurationResult:
        curator = make_curator(settings, **more)
        assert curator is not None
        curator._first_wait = 0.001
        try:
            return await curator.curate(SAID)
        finally:
            await curator.close()

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("model", "name", "path", "suffix"),
    [
        ("small", "small", COMPLETIONS, "/v1"),
        ("qwen3:4b", "qwen3:4b", COMPLETIONS, "/v1"),
        ("openai:small", "small", COMPLETIONS, "/v1"),
        ("ollama:qwen3:4b", "qwen3:4b", COMPLETIONS, "/v1"),
        ("anthropic:claude-sonnet-5", "claude-sonnet-5", MESSAGES, ""),
    ],
)
def test_each_protocol_is_spoken(model: str, name: str, path: str, suffix: str) -> None:
    with model_server(lambda shown: [fact("The user lives in Porto.", 1)]) as server:
        made = curate(Settings(model=model, model_url=server.url + suffix, model_key=KEY))
    assert made.failure is None
    assert [(each.text, each.evidence) for each in made.proposals] == [("The user lives in Porto.", (SAID[0].id,))]
    assert (made.usage.model, made.usage.requests) == (name, 1)
    assert (made.usage.input_tokens, made.usage.output_tokens) == (INPUT_TOKENS, OUTPUT_TOKENS)
    (asked,) = server.asked
    assert (asked.path, asked.body["model"]) == (path, name)
    assert asked.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("named", "given", "url", "sends"),
    [
        ({"model": "small"}, {}, OPENAI, True),
        ({"model": "openai:small"}, {}, OPENAI, True),
        ({"model": "anthropic:claude"}, {}, ANTHROPIC, True),
        ({"model": "ollama:qwen3:4b"}, {}, OLLAMA, False),
        ({"model": "ollama:qwen3:4b", "model_url": ELSEWHERE}, {}, ELSEWHERE, True),
        ({"model": "small", "model_url": OLLAMA}, {}, OLLAMA, True),
        # A host names another model, and perhaps an address of its own.
        ({"model": "small"}, {"model": "large"}, OPENAI, True),
        ({"model": "small"}, {"model": "anthropic:claude"}, ANTHROPIC, False),
        ({"model": "anthropic:claude"}, {"model": "small"}, OPENAI, False),
        ({"model": "small", "model_url": ELSEWHERE}, {"model": "anthropic:claude"}, ELSEWHERE, True),
        ({"model": "small", "model_url": ELSEWHERE}, {"url": OPENAI}, OPENAI, False),
        ({"model": "small"}, {"url": ELSEWHERE}, ELSEWHERE, False),
        ({}, {"model": "anthropic:claude"}, ANTHROPIC, False),
    ],
)
def test_the_key_of_the_settings_goes_to_their_address_alone(
    named: dict[str, str], given: dict[str, str], url: str, sends: bool
) -> None:
    curator: Any = make_curator(Settings(**named, model_key=KEY), given.get("model"), given.get("url"))
    model = curator._model
    assert model.url.removesuffix("/chat/completions") == url
    client = model._client if hasattr(model, "_client") else model._open_model()._client
    assert (KEY in (client.api_key if hasattr(client, "api_key") else str(client.headers.raw))) is sends
    own: Any = make_curator(Settings(**named, model_key=KEY), "small", ELSEWHERE, Secret("another"))
    assert "another" in str(own._model._client.headers.raw)
    for each in (curator, own):
        asyncio.run(each.close())


def test_without_leave_for_any_verb_no_model_is_made() -> None:
    assert make_curator(Settings(model="small", model_verbs="none")) is None
    assert make_curator(Settings()) is None


@pytest.mark.parametrize(
    ("answer", "error", "problem"),
    [
        (401, ModelMisconfigured, "HOLDFAST_MODEL_KEY"),
        (403, ModelMisconfigured, "HOLDFAST_MODEL_KEY"),
        (404, ModelMisconfigured, "404"),
        (413, ModelMisconfigured, "too long"),
        (429, ModelUnavailable, "429"),
        (500, ModelUnavailable, "500"),
        ("rubbish", ModelUnavailable, "did not answer as asked"),
        ("", ModelUnavailable, "did not answer as asked"),
        (None, ModelUnavailable, "took too long"),
    ],
)
def test_faults_of_anthropics_api_are_errors_that_name_no_key(answer: Any, error: type, problem: str) -> None:
    async def ask(url: str) -> CurationResult:
        curator: Any = make_curator(Settings(model="anthropic:claude", model_url=url, model_key=KEY))
        curator._first_wait, curator._model._timeout_seconds = 0.001, 0.3 if answer is None else 30.0
        curator._attempts = 2
        made: CurationResult = await curator.curate(SAID)
        await curator.close()
        return made

    with model_server(lambda shown: answer) as server:
        failure = asyncio.run(ask(server.url)).failure
        assert isinstance(failure, error)
        assert problem in str(failure)
        assert len(server.asked) == (1 if error is ModelMisconfigured else 2)
    assert "agent." not in str(failure)
    assert not {KEY, "canary"} & set(str(failure).split())


def test_a_server_that_speaks_another_protocol_is_an_outage() -> None:
    with answering(completion({"memories": []})) as (url, _):
        failure = curate(Settings(model="anthropic:claude", model_url=url, model_key=KEY)).failure
    assert isinstance(failure, ModelUnavailable)
    assert KEY not in str(failure)


@pytest.mark.parametrize("verbs", ["", " ", "search", "maintain,search", "none,flush", "maintain flush"])
def test_a_wrong_list_of_verbs_is_refused_with_what_to_write(verbs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.errors import ConfigurationError
    from holdfast.settings import read_settings

    monkeypatch.setenv("HOLDFAST_MODEL_VERBS", verbs)
    with pytest.raises(ConfigurationError, match="HOLDFAST_MODEL_VERBS: name maintain, flush"):
        read_settings()


@pytest.mark.parametrize("protocol", ["anthropic", "ollama", "openai"])
def test_a_protocol_without_a_model_is_refused_and_not_taken_for_a_name(protocol: str) -> None:
    """Taken for a name, it would send the texts to OpenAI."""
    with pytest.raises(ModelMisconfigured, match=f"set HOLDFAST_MODEL to {protocol}:<name>"):
        make_curator(Settings(model=f"{protocol}: "))
