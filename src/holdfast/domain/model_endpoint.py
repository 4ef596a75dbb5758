"""The endpoint of the model that learns from conversations, as its name and its URL choose it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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


def choose_endpoint(name: str, url: str | None) -> ModelEndpoint:
    """Return the endpoint of a model; without a URL, its protocol's own.

    A name may hold colons, as Ollama's do: only a protocol before the first one is a prefix.
    """
    prefix, _, rest = name.partition(":")
    protocol = ModelProtocol(prefix) if rest and prefix in set(ModelProtocol) else None
    model = name if protocol is None else rest
    protocol = protocol or ModelProtocol.OPENAI
    return ModelEndpoint(protocol, model, url or DEFAULT_URLS[protocol])
