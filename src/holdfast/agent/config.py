"""The agent's configuration: its model and its memory.

The first file that exists is read: $HOLDFAST_CONFIG_PATH, $HOLDFAST_HOME/config.json,
`<workspace>/.holdfast/config.json`, `./.holdfast/config.json`. Without a file, defaults apply. Missing gateway
credentials are an error if the file sets the memory mode; otherwise the gateway is left out with one warning.

A file that lies in a folder may come from someone else. It can name a server, and a key file whose text is sent there.
That key file must lie in the same folder, so that opening a folder cannot leak anybody's secrets.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from holdfast.agent.config_file import ConfigSection, read_sections
from holdfast.agent.keyfiles import key_text
from holdfast.client.gateway import DEFAULT_SCOPE, DEFAULT_TOP_K, MAX_TOP_K, SCOPES
from holdfast.domain.checks import checked_seconds, checked_whole
from holdfast.domain.location import checked_url
from holdfast.domain.recall_policy import check_floor
from holdfast.domain.scope import check_part
from holdfast.domain.secret import Secret
from holdfast.errors import ConfigurationError, InvalidInput
from holdfast.settings import Settings, read_settings

PROVIDERS = ("openai", "anthropic", "scripted")
FOLDER = ".holdfast"
FILE = "config.json"
DEFAULT_AGENT_ID = "holdfast"
DEFAULT_TIMEOUT_SECONDS = 10.0
DEFAULT_MEMORY_CHARS = 2_200
DEFAULT_USER_CHARS = 1_375
_MAX_CURATED_CHARS = 100_000
_NO_GATEWAY = (
    "no Memory Gateway is configured, so only the curated files are used; `holdfast agent init` writes a config that"
    " says so, or that names a gateway"
)
_AGENT = (
    "id", "provider", "model", "baseUrl", "apiKeyFile", "instructions", "maxToolRounds", "historyMessages", "skills",
)  # fmt: skip
_GATEWAY = (
    "baseUrl",
    "userId",
    "userKey",
    "userKeyFile",
    "appId",
    "projectId",
    "scope",
    "topK",
    "minScore",
    "timeoutSeconds",
)


class MemoryMode(StrEnum):
    CURATED = "curated"
    HYBRID = "hybrid"
    MEMORY_GATEWAY = "memory_gateway"

    @property
    def has_curated(self) -> bool:
        return self is not MemoryMode.MEMORY_GATEWAY


@dataclass(frozen=True, slots=True)
class MemoryGatewayConfig:
    """The gateway's address, its user, and the search options."""

    base_url: str
    user_id: str
    user_key: Secret
    app_id: str = "default"
    project_id: str = "default"
    scope: tuple[str, ...] = DEFAULT_SCOPE
    top_k: int = DEFAULT_TOP_K
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    min_score: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.user_key, Secret):
            raise InvalidInput("user_key", "expected a Secret")
        checked_url(self.base_url, "base_url")
        for name in ("user_id", "app_id", "project_id"):
            check_part(name, getattr(self, name))
        if not self.scope or not all(name in SCOPES for name in self.scope):
            raise InvalidInput("scope", f"must be one or more of {', '.join(SCOPES)}")
        checked_whole(self.top_k, "top_k", 1, MAX_TOP_K)
        check_floor(self.min_score)
        checked_seconds(self.timeout_seconds, "timeout_seconds")


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    """`explicit` is true if the file sets the mode; otherwise the mode is the default."""

    mode: MemoryMode = MemoryMode.HYBRID
    explicit: bool = False
    gateway: MemoryGatewayConfig | None = None
    memory_chars: int = DEFAULT_MEMORY_CHARS
    user_chars: int = DEFAULT_USER_CHARS


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """An agent's whole configuration. `source` is the file it was read from, if any."""

    workspace: Path
    home: Path
    source: Path | None = None
    agent_id: str = DEFAULT_AGENT_ID
    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    api_key_file: Path | None = None
    instructions: str | None = None
    max_tool_rounds: int = 8
    history_messages: int = 40
    skills: tuple[str, ...] = ()
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    warnings: tuple[str, ...] = ()

    @property
    def memories(self) -> Path:
        """The folder of the curated files."""
        return self.home / "memories"

    @property
    def sessions(self) -> Path:
        """The SQLite file of the sessions."""
        return self.home / "sessions" / "state.db"

    @property
    def skills_folder(self) -> Path:
        return self.home / "skills"


def read_config(workspace: Path | str | None = None, settings: Settings | None = None) -> AgentConfig:
    """Read the configuration of the agent that works in `workspace`, by default the current folder."""
    try:
        return _config(workspace, settings or read_settings())
    except ConfigurationError as error:
        message = str(error)
    # Raised outside `except`: the frames that read the file hold its content, and some programs show frames.
    raise ConfigurationError(message)


def _config(workspace: Path | str | None, settings: Settings) -> AgentConfig:
    folder = Path(workspace or Path.cwd()).absolute()
    if not folder.is_dir():
        raise ConfigurationError(f"{folder}: no such folder; create it, or name another workspace")
    home = settings.home.absolute() if settings.home else folder / FOLDER
    source, chosen = _find_file(folder, settings)
    root = read_sections(source, confined=not chosen) if source else ConfigSection(None, "", {})
    root.allow_only(("agent", "memory"))
    warnings: list[str] = []
    memory = _memory(root.section("memory"), warnings)
    agent = root.section("agent")
    agent.allow_only(_AGENT)
    return AgentConfig(
        workspace=folder,
        home=home,
        source=source,
        agent_id=_part(agent, "id", DEFAULT_AGENT_ID),
        provider=agent.choice("provider", PROVIDERS, "") or None,
        model=agent.text("model").strip() or None,
        base_url=_url(agent, "baseUrl") if agent.text("baseUrl").strip() else None,
        api_key_file=agent.path("apiKeyFile"),
        instructions=agent.text("instructions") or None,
        max_tool_rounds=agent.integer("maxToolRounds", 8, 0, 100),
        history_messages=agent.integer("historyMessages", 40, 0, 1_000),
        skills=agent.texts("skills"),
        memory=memory,
        warnings=tuple(warnings),
    )


def _find_file(workspace: Path, settings: Settings) -> tuple[Path | None, bool]:
    """Return the file, and whether the user chose it; any other lies in a folder that may be anybody's."""
    if settings.config_path is not None:
        named = settings.config_path.absolute()
        if not os.path.exists(named):
            raise ConfigurationError(f"HOLDFAST_CONFIG_PATH: there is no file {named}")
        return named, True
    if settings.home and os.path.exists(own := settings.home.absolute() / FILE):
        return own, True
    places = (workspace / FOLDER / FILE, Path.cwd() / FOLDER / FILE)
    return next((place for place in places if os.path.exists(place)), None), False


def _memory(section: ConfigSection, warnings: list[str]) -> MemoryConfig:
    section.allow_only(("mode", "gateway", "curated"))
    explicit = "mode" in section
    mode = MemoryMode(section.choice("mode", [mode.value for mode in MemoryMode], MemoryMode.HYBRID))
    curated = section.section("curated")
    curated.allow_only(("memoryChars", "userChars"))
    gateway = None
    # Curated mode does not read the gateway section at all.
    if mode is not MemoryMode.CURATED and not explicit and "gateway" not in section:
        warnings.append(_NO_GATEWAY)
    elif mode is not MemoryMode.CURATED:
        gateway = _gateway(section.section("gateway"), explicit=explicit, mode=mode, warnings=warnings)
    return MemoryConfig(
        mode=mode,
        explicit=explicit,
        gateway=gateway,
        memory_chars=curated.integer("memoryChars", DEFAULT_MEMORY_CHARS, 1, _MAX_CURATED_CHARS),
        user_chars=curated.integer("userChars", DEFAULT_USER_CHARS, 1, _MAX_CURATED_CHARS),
    )


def _gateway(
    section: ConfigSection, *, explicit: bool, mode: MemoryMode, warnings: list[str]
) -> MemoryGatewayConfig | None:
    """Read the gateway section. Invalid values are always an error; missing ones only if the mode is `explicit`."""
    section.allow_only(_GATEWAY)
    if not section.texts("scope", DEFAULT_SCOPE) or not set(section.texts("scope", DEFAULT_SCOPE)) <= set(SCOPES):
        raise section.setting_error("scope", f"must be one or more of {', '.join(SCOPES)}")
    app_id, project_id = _part(section, "appId", "default"), _part(section, "projectId", "default")
    top_k = section.integer("topK", DEFAULT_TOP_K, 1, MAX_TOP_K)
    timeout_seconds = section.seconds("timeoutSeconds", DEFAULT_TIMEOUT_SECONDS)
    min_score = section.share("minScore")
    base_url = _url(section, "baseUrl") if section.text("baseUrl").strip() else ""
    user_id = _part(section, "userId", "") if section.text("userId").strip() else ""
    user_key, absent = _key(section)
    missing = [name for name, value in (("baseUrl", base_url), ("userId", user_id), (absent, user_key)) if not value]
    if user_key is None or missing:
        if explicit:
            raise section.setting_error("", f"mode {mode} needs {_join_names(missing)}")
        warnings.append(
            f"no Memory Gateway is used: memory.gateway lacks {_join_names(missing)}; only the curated files are used."
            ' Set what is missing, or set memory.mode to "curated" if that is what you want'
        )
        return None
    return MemoryGatewayConfig(
        base_url=base_url,
        user_id=user_id,
        user_key=user_key,
        app_id=app_id,
        project_id=project_id,
        scope=tuple(dict.fromkeys(section.texts("scope", DEFAULT_SCOPE))),
        top_k=top_k,
        timeout_seconds=timeout_seconds,
        min_score=min_score,
    )


def _key(section: ConfigSection) -> tuple[Secret | None, str]:
    """Return the key, or None and the name of what is missing. A key file is safer than a key in the config."""
    path = section.path("userKeyFile")
    inline = section.text("userKey")
    if path is None:
        return (_secret(section, "userKey", inline) if inline.strip() else None), "userKey or userKeyFile"
    if inline.strip():
        raise section.setting_error("userKeyFile", "is given together with userKey; keep one of them")
    try:
        text = key_text(path)
    except FileNotFoundError:
        return None, "the file that userKeyFile names"
    except OSError as error:
        # The path is not shown: it may be the key itself, in the wrong setting.
        problem = f"names a file that cannot be read ({error.strerror})"
    else:
        return (_secret(section, "userKeyFile", text) if text else None), "a key in the file that userKeyFile names"
    raise section.setting_error("userKeyFile", problem)


def _secret(section: ConfigSection, name: str, value: str) -> Secret:
    return section.validate(name, lambda: Secret(value.strip(), name))


def _part(section: ConfigSection, name: str, default: str) -> str:
    value = section.text(name, default)
    section.validate(name, lambda: check_part(name, value))
    return value


def _url(section: ConfigSection, name: str) -> str:
    value = section.text(name)
    return section.validate(
        name,
        lambda: checked_url(value, name),
        "must be a server's address alone, like http://127.0.0.1:8010; put a key in its own setting",
    )


def _join_names(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)
