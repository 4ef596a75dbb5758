"""The endpoint of the model that learns from conversations, as its name and its URL choose it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from holdfast.domain.checks import checked_text
from holdfast.domain.location import checked_url
from holdfast.errors import InvalidInput, ModelMisconfigured


class ModelProtocol(StrEnum):
    """The prefix of a model's name: the protocol of its endpoint. Without one it is OpenAI's."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    OLLAMA = "ollama"


DEFAULT_URLS = {
    ModelProtocol.OPENAI: "https://api.openai.com/v1",
    ModelProtocol.ANTHROPIC: "https://api.anthropic.com",
    ModelProtocol.OLLAMA: "http://127.0.0.1:11434/v1",
}


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    protocol: ModelProtocol
    model: str
    url: str


def validate_model(model: str, url: str) -> tuple[str, str]:
    """Return the name and the URL, without a slash at its end. Errors show neither: the URL may hold a key."""
    try:
        return checked_text(model, "model", max_chars=256), checked_url(url, "model_url")
    except InvalidInput as error:
        problem = str(error)
    raise ModelMisconfigured(f"{problem}; set HOLDFAST_MODEL and HOLDFAST_MODEL_URL")


def choose_endpoint(name: str, url: str | None) -> ModelEndpoint:
    """Return the endpoint of a model; without a URL, its protocol's own.

    A name may hold colons, as Ollama's do: only a protocol before the first one is a prefix.
    """
    prefix, colon, rest = name.partition(":")
    if colon and not rest.strip() and prefix in set(ModelProtocol):
        # Taken for a name, it would send the texts to OpenAI.
        raise ModelMisconfigured(f"{name!r} names no model; set HOLDFAST_MODEL to {prefix}:<name>")
    protocol = ModelProtocol(prefix) if rest and prefix in set(ModelProtocol) else None
    model = name if protocol is None else rest
    protocol = protocol or ModelProtocol.OPENAI
    return ModelEndpoint(protocol, model, url or DEFAULT_URLS[protocol])
