"""The models that an agent uses: one module per provider, each behind `ChatModel`.

A key is sent only to the server it belongs to. A key from the environment goes to the provider's own address, or to the
address that the environment names beside it. An address from a config file, which may have come with somebody else's
folder, gets a key only from the key file that the config names.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from holdfast.agent.keyfiles import key_text
from holdfast.domain.location import checked_url
from holdfast.domain.secret import Secret
from holdfast.errors import InvalidInput, ModelMisconfigured
from holdfast.settings import ModelSettings, Settings, read_model_settings

if TYPE_CHECKING:
    from holdfast.agent.config import AgentConfig
    from holdfast.agent.ports import ChatModel

T = TypeVar("T")
_OWN = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
_SUCH_AS = {"openai": "gpt-5-mini, or qwen3 at an Ollama of your own", "anthropic": "claude-sonnet-5"}


def open_model(config: AgentConfig, settings: Settings) -> ChatModel:
    """Open the configured model. Its SDK is imported only now."""
    provider = config.provider
    if provider is None:
        raise ModelMisconfigured(
            "no model is chosen; set agent.provider to openai, anthropic or scripted, or give --provider"
        )
    if provider == "scripted":
        from holdfast.agent.providers.rule_model import RuleModel

        return RuleModel()
    if provider not in _OWN:
        raise ModelMisconfigured("agent.provider is unknown; use openai, anthropic or scripted")
    if not config.model:
        raise ModelMisconfigured(
            f"{provider} needs the name of a model, such as {_SUCH_AS[provider]}; set agent.model, or give --model"
        )
    url, key = _resolve_endpoint(provider, config, settings)
    if provider == "openai":
        from holdfast.agent.providers.openai import OpenAIModel

        return OpenAIModel(config.model, base_url=url, api_key=key)
    from holdfast.agent.providers.anthropic import AnthropicModel

    return AnthropicModel(config.model, base_url=url, api_key=key)


def _resolve_endpoint(provider: str, config: AgentConfig, settings: Settings) -> tuple[str, Secret | None]:
    try:
        return _select_endpoint(provider, config, read_model_settings(settings))
    except ModelMisconfigured as error:
        message = str(error)
    # Raised outside `except`: the frames that read a key hold it, and some programs show frames.
    raise ModelMisconfigured(message)


def _select_endpoint(provider: str, config: AgentConfig, environment: ModelSettings) -> tuple[str, Secret | None]:
    """Return the address to call, and the key to send, if any."""
    name = provider.upper()
    env_url = environment.openai_base_url if provider == "openai" else environment.anthropic_base_url
    env_key = environment.openai_api_key if provider == "openai" else environment.anthropic_api_key
    default_url = _validate(checked_url, env_url, f"{name}_BASE_URL") if env_url else _OWN[provider]
    url = _validate(checked_url, config.base_url, "agent.baseUrl") if config.base_url else default_url
    if config.api_key_file is not None:
        return url, _read_key_file(config.api_key_file)
    if env_key is not None and url in (default_url, _OWN[provider]):
        return url, _validate(Secret, env_key.get_secret_value().strip(), f"{name}_API_KEY")
    if url == _OWN[provider]:
        raise ModelMisconfigured(
            f"{provider} needs a key; set {name}_API_KEY, or name the file that holds it as agent.apiKeyFile."
            " A server of your own, set as agent.baseUrl, may need none"
        )
    return url, None


def _read_key_file(path: Path) -> Secret:
    try:
        text = key_text(path)
    except OSError as error:
        # The path is not shown: it may be the key itself, in the wrong setting.
        raise ModelMisconfigured(f"agent.apiKeyFile names a file that cannot be read ({error.strerror})") from None
    return _validate(Secret, text, "agent.apiKeyFile")


def _validate(check: Callable[[str, str], T], value: str, name: str) -> T:
    try:
        return check(value, name)
    except InvalidInput as error:
        raise ModelMisconfigured(str(error)) from None
