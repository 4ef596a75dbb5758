"""Options shared by the agent's commands, and the configuration they result in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.exits import UsageError
from holdfast.cli.options import OnlyText, option
from holdfast.settings import Settings

if TYPE_CHECKING:
    from holdfast.agent.config import AgentConfig

_PROVIDERS = ("openai", "anthropic", "scripted")

Workspace = Annotated[Path | None, option("--workspace", "FOLDER", "The agent's folder.  [default: the current one]")]
Provider = Annotated[
    OnlyText, option("--provider", "NAME", "openai, anthropic, or scripted (offline rules instead of a model).")
]
ModelName = Annotated[OnlyText, option("--model", "NAME", "The provider's model.")]
BaseUrl = Annotated[OnlyText, option("--base-url", "URL", "A server with the provider's API, such as Ollama.")]
SessionId = Annotated[OnlyText, option("--session", "ID", "Continue this session, or start it.")]
Continue = Annotated[bool, typer.Option("--continue", help="Continue the latest session.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="After an answer, show what memory contributed, and what of that is in it.")
]


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """The agent's folder and model. Options that are not given come from the config."""

    provider: Provider = None
    model: ModelName = None
    base_url: BaseUrl = None
    workspace: Workspace = None

    def __post_init__(self) -> None:
        if self.provider is not None and self.provider not in _PROVIDERS:
            raise UsageError(f"--provider: must be one of {', '.join(_PROVIDERS)}")

    def config(self, settings: Settings) -> AgentConfig:
        from holdfast.agent.config import read_config
        from holdfast.domain.location import checked_url

        config = read_config(self.workspace, settings)
        if self.provider is not None and self.provider != config.provider:
            # Settings for another provider do not apply to this one.
            config = replace(config, provider=self.provider, model=None, base_url=None, api_key_file=None)
        if self.model is not None:
            config = replace(config, model=self.model)
        if self.base_url is not None:
            config = replace(config, base_url=checked_url(self.base_url, "--base-url"))
        return config


@dataclass(frozen=True, slots=True)
class SessionChoice:
    """The session, and whether to explain its answers."""

    session: SessionId = None
    continue_: Continue = False
    explain: Explain = False

    def __post_init__(self) -> None:
        if self.session is not None and self.continue_:
            raise UsageError("--session names a session and --continue means the latest; give one of them")
