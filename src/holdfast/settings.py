"""Typed settings from the environment. No other module reads it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from holdfast.errors import ConfigurationError

S = TypeVar("S", bound=BaseSettings)
# The verbs that can ask a model.
MODEL_VERBS = frozenset({"maintain", "flush"})
# The transports of runtimes that can be switched on, and those that are not built yet.
TRANSPORTS = ("http", "mcp")
LATER_TRANSPORTS = ("ws", "a2a")
# The problem of a value by pydantic's name for it, where its own sentence is about parsing.
_PROBLEMS = {
    "int_parsing": "must be a whole number",
    "float_parsing": "must be a number",
    "bool_parsing": "must be true or false",
}


class Settings(BaseSettings):
    """Holdfast's settings. Each is read from the environment variable `HOLDFAST_` plus its name in capitals."""

    model_config = SettingsConfigDict(env_prefix="HOLDFAST_", extra="ignore")

    secrets_dir: Path | None = Field(
        default=None,
        description="A folder of files named like settings, such as holdfast_operator_token, each with one value."
        " Bindings may refer to its other files by file://.",
    )
    secret_env_prefix: str = Field(
        default="HOLDFAST_SECRET_",
        min_length=1,
        description="The prefix of the environment variables that bindings may refer to by env://.",
    )
    store: str = Field(
        default="memory.db",
        description="The command line's memory: a path, or a postgresql:// or http:// URL.",
    )
    space: str = Field(default="default", description="The space of calls that name none.")
    embedder: str = Field(
        default="static",
        description="static, onnx:<directory>, openai:<model> or fake. A change re-embeds in the background.",
    )
    embedder_url: str = Field(
        default="https://api.openai.com/v1", description="The OpenAI-compatible endpoint that openai:<model> calls."
    )
    embedder_key: SecretStr | None = Field(default=None, description="The key for that endpoint, if it needs one.")
    model: str = Field(
        default="",
        description="The model that learns from conversations: anthropic:<name>, ollama:<name>, openai:<name>, or a"
        " name at an OpenAI-compatible endpoint; empty for none.",
    )
    model_url: str = Field(
        default="https://api.openai.com/v1",
        description="The endpoint of that model; if not set, that of Anthropic, or of Ollama on this machine.",
    )
    model_key: SecretStr | None = Field(default=None, description="The key for that endpoint, if it needs one.")
    model_verbs: str | None = Field(
        default=None,
        description="The verbs for which the model is asked: maintain, flush, both, or none. If not set, both; for a"
        " store that an older version created, maintain.",
    )
    model_messages: int = Field(
        default=2_000,
        ge=1,
        description="The newest messages of a conversation that flush shows to the model; rules learn from older ones.",
    )
    model_seconds: float = Field(
        default=300.0,
        gt=0,
        le=86_400,
        description="The time after which a job of flush asks the model no further; rules learn from the rest.",
    )
    busy_seconds: float = Field(
        default=15.0,
        gt=0,
        description="Seconds to wait for another process's write lock, or for a lost server to return.",
    )
    postgres_connections: int = Field(
        default=8, ge=2, le=100, description="The most connections a process may open to PostgreSQL."
    )
    cache_bytes: int = Field(
        default=512 * 1024 * 1024,
        gt=0,
        description="The most memory for the columns of recently searched partitions.",
    )
    approximate_from: int = Field(
        default=100_000,
        ge=0,
        description="The number of records from which a partition is searched by an approximate index; 0 for never.",
    )
    unconfined_documents: bool = Field(
        default=False,
        description="Read HTML, PDF and DOCX even where the system can confine no process; `holdfast doctor` says so.",
    )
    job_lease_seconds: float = Field(
        default=60.0,
        ge=1,
        le=1_800,
        description="The lease of a background job: another worker takes it over if its worker is silent this long.",
    )
    worker_jobs: int = Field(
        default=4, ge=1, le=64, description="The concurrent jobs of `holdfast worker` and `holdfast serve`."
    )
    key: SecretStr | None = Field(
        default=None, description="The key for a server's memory: a user's key, or the operator's token."
    )
    timeout_seconds: float = Field(
        default=30.0, gt=0, le=86_400, description="The timeout of a whole call to a server's memory."
    )
    host: str = Field(default="127.0.0.1", min_length=1, description="The address that `holdfast serve` listens on.")
    port: int = Field(default=8010, ge=0, le=65535, description="The port that it listens on; 0 for any free one.")
    operator_token: SecretStr | None = Field(
        default=None,
        description="The operators' token for the service; else it creates one in a private file beside the store.",
    )
    open_sign_up: bool = Field(
        default=False, description="Let anybody who reaches the service create a user, without a credential."
    )
    allow_confusable_ids: bool = Field(
        default=False,
        description="Allow ids of new users that hold invisible characters or look like the id of another.",
    )
    allowed_hosts: str = Field(
        default="", description="Comma-separated host names that the service accepts besides loopback's own."
    )
    allowed_origins: str = Field(
        default="",
        description="Comma-separated origins, such as https://app.example.org, whose web pages may change memory.",
    )
    trusted_proxies: str = Field(
        default="",
        description="Comma-separated addresses or networks of proxies whose X-Forwarded-For is trusted.",
    )
    transports: str = Field(
        default="http,mcp",
        description="The transports over which `holdfast serve` offers runtimes, comma-separated: http, mcp, or none.",
    )
    profile: str = Field(
        default="server-linux-memory-gateway",
        description="The profile of those runtimes; `holdfast platform profiles` lists all.",
    )
    rate_per_minute: int = Field(
        default=6_000,
        ge=0,
        description="The requests per minute of a key, a tenth of which may come at once; 0 for no limit.",
    )
    max_requests: int = Field(
        default=128, ge=1, description="The concurrent requests of the service; more are answered with 503."
    )
    max_requests_per_key: int = Field(
        default=3,
        ge=1,
        description="The concurrent requests of one key; more wait for their turn. Slow requests do not count.",
    )
    max_connections: int = Field(
        default=2_000, ge=1, description="The open connections to the service; more are closed at once."
    )
    max_body_bytes: int = Field(default=4 * 1024 * 1024, ge=1024, description="The largest request body.")
    max_upload_bytes: int = Field(
        default=25 * 1024 * 1024, ge=1024, description="The largest request body of a resource upload."
    )
    max_bodies_bytes: int = Field(
        default=256 * 1024 * 1024, ge=1024, description="The most memory for the bodies of all requests together."
    )
    body_seconds: float = Field(default=30.0, gt=0, description="The timeout for receiving a request's body.")
    header_seconds: float = Field(default=10.0, gt=0, description="The timeout for receiving a request's headers.")
    idle_seconds: float = Field(default=65.0, gt=0, description="The timeout after which an idle connection is closed.")
    shutdown_seconds: float = Field(
        default=20.0, gt=0, description="The time that the service has to finish accepted requests when it is stopped."
    )
    request_logs: bool = Field(default=True, description="Log a line for each request to the service.")
    home: Path | None = Field(
        default=None,
        description="The agent's folder of config, memories, sessions and skills; by default in its workspace.",
    )
    config_path: Path | None = Field(default=None, description="The path of the agent's config file.")
    agent_skill_dirs: str = Field(
        default="",
        description="The folders of Agent Skills that runtimes mount, with the platform's separator of paths between"
        " them: a colon, on Windows a semicolon.",
    )
    shell_history: Path | None = Field(
        default=None, description="The private file for the history of `holdfast shell`; none if not set."
    )

    @field_validator("model_verbs")
    @classmethod
    def _check_verbs(cls, value: str | None) -> str | None:
        """Refuse an empty value too: it could mean none, or not set."""
        names = () if value is None else tuple(name.strip() for name in value.split(","))
        if value is not None and names != ("none",) and not set(names) <= MODEL_VERBS:
            raise PydanticCustomError("verbs", "name maintain, flush, both with a comma, or none")
        return value

    @field_validator("transports")
    @classmethod
    def _check_transports(cls, value: str) -> str:
        names = [name.strip() for name in value.split(",")]
        if names == ["none"]:
            return value
        for name in names:
            if name in LATER_TRANSPORTS:
                raise PydanticCustomError("transports", f"{name} is not built yet; name http, mcp, or none")
            if name not in TRANSPORTS:
                raise PydanticCustomError("transports", f"{name!r:.40} is no transport; name http, mcp, or none")
        return value

    @property
    def listed_transports(self) -> tuple[str, ...]:
        """The transports that are on."""
        return tuple(name for name in TRANSPORTS if name in {each.strip() for each in self.transports.split(",")})

    @property
    def skill_folders(self) -> tuple[str, ...]:
        """The folders that `agent_skill_dirs` names."""
        return tuple(folder for folder in self.agent_skill_dirs.split(os.pathsep) if folder)

    @property
    def named_model_url(self) -> str | None:
        """The endpoint that was named; None for the model's own."""
        return self.model_url if "model_url" in self.model_fields_set else None

    @property
    def asked_verbs(self) -> frozenset[str] | None:
        """The verbs that `model_verbs` names; None if it is not set."""
        if self.model_verbs is None:
            return None
        return MODEL_VERBS & {name.strip() for name in self.model_verbs.split(",")}

    @field_validator("home", "config_path", "shell_history", mode="before")
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        """Treat an empty path as unset; it would otherwise mean the current folder."""
        return None if value == "" else value


class GatewayClientSettings(BaseSettings):
    """An agent's connection to its Memory Gateway, from the environment variables `MEMORY_GATEWAY_*`."""

    model_config = SettingsConfigDict(env_prefix="MEMORY_GATEWAY_", extra="ignore")

    base_url: str = Field(description="The gateway's address, such as http://127.0.0.1:8010.")
    user_id: str = Field(min_length=1, description="The user whose memory it is.")
    user_key: SecretStr = Field(min_length=1, description="The user's key.")
    timeout_seconds: float = Field(default=10.0, gt=0, le=86_400, description="The timeout of a whole call.")


class ModelSettings(BaseSettings):
    """Keys and URLs of the agent's models, by the variable names of the vendors' own SDKs."""

    model_config = SettingsConfigDict(extra="ignore", env_ignore_empty=True)

    openai_api_key: SecretStr | None = Field(default=None, description="The key for OpenAI, or for OPENAI_BASE_URL.")
    openai_base_url: str | None = Field(default=None, description="The endpoint of OpenAI's API, if not OpenAI itself.")
    anthropic_api_key: SecretStr | None = Field(
        default=None, description="The key for Anthropic, or for ANTHROPIC_BASE_URL."
    )
    anthropic_base_url: str | None = Field(
        default=None, description="The endpoint of Anthropic's API, if not Anthropic itself."
    )


_GROUPS: tuple[tuple[type[BaseSettings], str], ...] = (
    (Settings, "HOLDFAST_"),
    (ModelSettings, ""),
    (GatewayClientSettings, "MEMORY_GATEWAY_"),
)


@dataclass(frozen=True, slots=True)
class SettingSource:
    """A setting as text, and where it comes from: "default", "environment" or "file " and its path.

    The value of a secret is None, and so is one that is not set and has no default.
    """

    variable: str
    value: str | None
    origin: str
    is_secret: bool

    @property
    def is_set(self) -> bool:
        return self.origin != "default"


def list_settings() -> list[SettingSource]:
    """List every setting of the program, its agent and its clients, whether its value is valid or not."""
    environment = {name.upper(): value for name, value in os.environ.items()}
    files = _secret_files(environment.get("HOLDFAST_SECRETS_DIR"))
    found = []
    for group, prefix in _GROUPS:
        for name, field in group.model_fields.items():
            variable = f"{prefix}{name}".upper()
            value, origin = environment.get(variable), "environment"
            if value is None and group is not GatewayClientSettings and variable in files:
                value, origin = "", f"file {files[variable]}"
                with contextlib.suppress(OSError, UnicodeError):  # reading the settings says so
                    value = files[variable].read_text("utf-8").strip()
            if value is None or (value == "" and group.model_config.get("env_ignore_empty")):
                value, origin = _default_text(field), "default"
            is_secret = "SecretStr" in str(field.annotation)
            found.append(SettingSource(variable, None if is_secret else value, origin, is_secret))
    return found


def list_unknown_variables(settings: Settings) -> list[str]:
    """List the variables, and the files among the settings, that look like settings and are none."""
    known = {f"{prefix}{name}".upper() for group, prefix in _GROUPS for name in group.model_fields}
    prefixes = tuple(prefix for _, prefix in _GROUPS if prefix)
    own = settings.secret_env_prefix.upper()
    variables = [name for name in sorted(os.environ) if not name.upper().startswith(own)]
    files = _secret_files(os.environ.get("HOLDFAST_SECRETS_DIR"))
    names = dict.fromkeys([*variables, *(file.name for file in files.values())])
    return [name for name in names if name.upper().startswith(prefixes) and name.upper() not in known]


def _secret_files(folder: str | None) -> dict[str, Path]:
    """Return the files of the folder of settings by the names of their settings."""
    if not folder or not Path(folder).is_dir():
        return {}
    return {file.name.upper(): file for file in sorted(Path(folder).iterdir()) if file.is_file()}


def _default_text(field: FieldInfo) -> str | None:
    default = None if field.is_required() else field.default
    if default is None or isinstance(default, str):
        return default or None
    return f"{default:g}" if isinstance(default, float) else str(default).lower()


def read_settings() -> Settings:
    """Read the settings. Errors name a setting, never its value.

    The environment takes precedence over files; files are for values that others on the machine must not see.
    """
    folder = os.environ.get("HOLDFAST_SECRETS_DIR") or None
    if folder is not None and not Path(folder).is_dir():
        raise ConfigurationError("HOLDFAST_SECRETS_DIR: there is no such folder")
    try:
        return _read(lambda: Settings(_secrets_dir=folder), "HOLDFAST_")  # type: ignore[call-arg]
    except SettingsError:
        raise ConfigurationError("HOLDFAST_SECRETS_DIR: a file in it cannot be read") from None


def read_variable(name: str) -> str | None:
    """Read an environment variable that a binding refers to. The caller checks that it may."""
    return os.environ.get(name)


def read_gateway_client_settings() -> GatewayClientSettings:
    """Read the gateway client's settings. Errors name a setting, never its value."""
    return _read(lambda: GatewayClientSettings(), "MEMORY_GATEWAY_")  # type: ignore[call-arg]


def read_model_settings(settings: Settings) -> ModelSettings:
    """Read the model settings, from the environment or the secrets folder."""
    return _read(lambda: ModelSettings(_secrets_dir=settings.secrets_dir), "")  # type: ignore[call-arg]


def _read(make: Callable[[], S], prefix: str) -> S:
    try:
        return make()
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
    # Raised outside the except block, because the original error quotes the value.
    name = prefix + "_".join(str(part) for part in first["loc"]).upper()
    problem = _PROBLEMS.get(first["type"], first["msg"])
    raise ConfigurationError(f"{name}: {problem[:1].lower()}{problem[1:]}")
