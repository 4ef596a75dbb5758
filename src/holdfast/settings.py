"""Settings: from the environment, typed. The only place that reads it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from holdfast.errors import ConfigurationError

S = TypeVar("S", bound=BaseSettings)


class Settings(BaseSettings):
    """Each setting is the environment variable of its name, in capitals, after `HOLDFAST_`."""

    model_config = SettingsConfigDict(env_prefix="HOLDFAST_", extra="ignore")

    secrets_dir: Path | None = Field(
        default=None,
        description="A folder of files named like settings, such as holdfast_operator_token: each holds one's value."
        " Bindings may refer to the other files in it by file://.",
    )
    secret_env_prefix: str = Field(
        default="HOLDFAST_SECRET_",
        min_length=1,
        description="How the names of the variables begin that bindings may refer to by env://.",
    )
    store: str = Field(
        default="memory.db",
        description="Where the command line keeps its memory: a path, a postgresql:// or an http:// URL.",
    )
    space: str = Field(default="default", description="The space that calls work in unless they name one.")
    embedder: str = Field(
        default="static",
        description="static, onnx:<directory>, openai:<model> or fake. Naming another re-embeds in the background.",
    )
    embedder_url: str = Field(
        default="https://api.openai.com/v1", description="The OpenAI-compatible endpoint that openai:<model> calls."
    )
    embedder_key: SecretStr | None = Field(default=None, description="The key for that endpoint, if it needs one.")
    model: str = Field(
        default="", description="The model that maintains memory, by its name at the endpoint; empty is none."
    )
    model_url: str = Field(
        default="https://api.openai.com/v1", description="The OpenAI-compatible endpoint where that model is asked."
    )
    model_key: SecretStr | None = Field(default=None, description="The key for that endpoint, if it needs one.")
    busy_seconds: float = Field(
        default=15.0,
        gt=0,
        description="How long to wait for another process's write lock, or for a lost server to come back.",
    )
    postgres_connections: int = Field(
        default=8, ge=2, le=100, description="How many connections a process may open to PostgreSQL."
    )
    cache_bytes: int = Field(
        default=512 * 1024 * 1024,
        gt=0,
        description="How much memory the columns of recently searched partitions may take.",
    )
    approximate_from: int = Field(
        default=100_000,
        ge=0,
        description="From how many records on a partition is searched by way of an approximate index; 0 is never.",
    )
    job_lease_seconds: float = Field(
        default=60.0,
        ge=1,
        le=1_800,
        description="How long a background job stays with a worker that is not heard of any more.",
    )
    worker_jobs: int = Field(
        default=4, ge=1, le=64, description="How many jobs `holdfast worker` and `holdfast serve` work on at once."
    )
    key: SecretStr | None = Field(
        default=None, description="The key to a memory behind a server: a user's, or the operator's token."
    )
    timeout_seconds: float = Field(
        default=30.0, gt=0, le=86_400, description="How long a call to a memory behind a server may take in all."
    )
    host: str = Field(default="127.0.0.1", min_length=1, description="The address that `holdfast serve` listens on.")
    port: int = Field(default=8010, ge=0, le=65535, description="The port that it listens on; 0 is any free one.")
    operator_token: SecretStr | None = Field(
        default=None, description="What operators present to the service; needed to listen beyond loopback."
    )
    allowed_hosts: str = Field(
        default="", description="Names, by commas, that the service may be called by besides loopback's own."
    )
    trusted_proxies: str = Field(
        default="",
        description="Addresses or networks, by commas, of proxies whose X-Forwarded-For says who is calling.",
    )
    rate_per_minute: int = Field(
        default=6_000, ge=0, description="How many requests a key may make a minute, all at once if need be; 0 is any."
    )
    max_requests: int = Field(
        default=128, ge=1, description="How many requests the service works on at once; more are answered with 503."
    )
    max_connections: int = Field(
        default=2_000, ge=1, description="How many connections may be open to the service; more are closed at once."
    )
    max_body_bytes: int = Field(default=4 * 1024 * 1024, ge=1024, description="The largest body of a request.")
    max_upload_bytes: int = Field(
        default=25 * 1024 * 1024, ge=1024, description="The largest body of an upload of a resource."
    )
    max_bodies_bytes: int = Field(
        default=256 * 1024 * 1024, ge=1024, description="How much memory the bodies of all requests may take together."
    )
    body_seconds: float = Field(default=30.0, gt=0, description="How long a request's body may take to arrive.")
    header_seconds: float = Field(default=10.0, gt=0, description="How long a request's headers may take to arrive.")
    idle_seconds: float = Field(
        default=65.0, gt=0, description="How long a connection may stay open with nothing to do."
    )
    shutdown_seconds: float = Field(
        default=20.0, gt=0, description="How long the service may take to finish what it accepted when it is stopped."
    )
    request_logs: bool = Field(default=True, description="Whether the service writes a line for each request.")
    home: Path | None = Field(
        default=None, description="The agent's folder: its config, memories, sessions and skills; else its workspace's."
    )
    config_path: Path | None = Field(default=None, description="The agent's config file, wherever it is.")

    @field_validator("home", "config_path", mode="before")
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        """An empty path would be the current folder, which nobody means by it."""
        return None if value == "" else value


class GatewayClientSettings(BaseSettings):
    """How an agent reaches its Memory Gateway. Each is the variable of its name after `MEMORY_GATEWAY_`."""

    model_config = SettingsConfigDict(env_prefix="MEMORY_GATEWAY_", extra="ignore")

    base_url: str = Field(description="The gateway's address, such as http://127.0.0.1:8010.")
    user_id: str = Field(min_length=1, description="Whose memory it is.")
    user_key: SecretStr = Field(min_length=1, description="The key to it.")
    timeout_seconds: float = Field(default=10.0, gt=0, le=86_400, description="How long a call may take in all.")


class ModelSettings(BaseSettings):
    """How the agent's models are reached, by the names that their own SDKs use."""

    model_config = SettingsConfigDict(extra="ignore", env_ignore_empty=True)

    openai_api_key: SecretStr | None = Field(default=None, description="The key to OpenAI, or to OPENAI_BASE_URL.")
    openai_base_url: str | None = Field(
        default=None, description="Where OpenAI's protocol is spoken, if not at OpenAI itself."
    )
    anthropic_api_key: SecretStr | None = Field(
        default=None, description="The key to Anthropic, or to ANTHROPIC_BASE_URL."
    )
    anthropic_base_url: str | None = Field(
        default=None, description="Where Anthropic's protocol is spoken, if not at Anthropic itself."
    )


def read_settings() -> Settings:
    """The settings; what is wrong with one is told by its name, never by its value.

    What is in the environment goes before a file: a file is for what others on the machine must not see there.
    """
    folder = os.environ.get("HOLDFAST_SECRETS_DIR") or None
    if folder is not None and not Path(folder).is_dir():
        raise ConfigurationError("HOLDFAST_SECRETS_DIR: there is no such folder")
    try:
        return _read(lambda: Settings(_secrets_dir=folder), "HOLDFAST_")  # type: ignore[call-arg]
    except SettingsError:
        raise ConfigurationError("HOLDFAST_SECRETS_DIR: a file in it cannot be read") from None


def read_variable(name: str) -> str | None:
    """A variable that a binding refers to; whether it may is for whoever asks to decide."""
    return os.environ.get(name)


def read_gateway_client_settings() -> GatewayClientSettings:
    """What is missing or wrong is told by its name, as above."""
    return _read(lambda: GatewayClientSettings(), "MEMORY_GATEWAY_")  # type: ignore[call-arg]


def read_model_settings(settings: Settings) -> ModelSettings:
    """The same; the folder of secrets may hold them too."""
    return _read(lambda: ModelSettings(_secrets_dir=settings.secrets_dir), "")  # type: ignore[call-arg]


def _read(make: Callable[[], S], prefix: str) -> S:
    try:
        return make()
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
    # Raised apart from what was caught: that one quotes the value.
    name = prefix + "_".join(str(part) for part in first["loc"]).upper()
    raise ConfigurationError(f"{name}: {first['msg'][:1].lower()}{first['msg'][1:]}")
