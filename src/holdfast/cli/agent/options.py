"""The options that the agent's commands share, and what they come to: a configuration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.exits import Usage
from holdfast.cli.options import OnlyText
from holdfast.settings import Settings

if TYPE_CHECKING:
    from holdfast.agent.config import AgentConfig

_PROVIDERS = ("openai", "anthropic", "scripted")

Workspace = Annotated[
    Path | None,
    typer.Option("--workspace", metavar="FOLDER", help="The folder that it works in.  [default: the current one]"),
]
Provider = Annotated[
    OnlyText,
    typer.Option(
        "--provider", metavar="NAME", help="openai, anthropic, or scripted: rules, offline, instead of a model."
    ),
]
ModelName = Annotated[OnlyText, typer.Option("--model", metavar="NAME", help="Which of the provider's models.")]
BaseUrl = Annotated[
    OnlyText,
    typer.Option("--base-url", metavar="URL", help="A server that speaks like the provider's, such as Ollama."),
]
SessionId = Annotated[OnlyText, typer.Option("--session", metavar="ID", help="Go on with this session, or begin it.")]
Continue = Annotated[bool, typer.Option("--continue", help="Go on with the latest session.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="After an answer, show what memory gave to it, and what of that is in it.")
]


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """Which agent: where it works, and which model speaks for it. What is not given is the config's to say."""

    provider: Provider = None
    model: ModelName = None
    base_url: BaseUrl = None
    workspace: Workspace = None

    def __post_init__(self) -> None:
        if self.provider is not None and self.provider not in _PROVIDERS:
            raise Usage(f"--provider: must be one of {', '.join(_PROVIDERS)}")

    def config(self, settings: Settings) -> AgentConfig:
        from holdfast.agent.config import read_config
        from holdfast.domain.location import checked_url

        config = read_config(self.workspace, settings)
        if self.provider is not None and self.provider != config.provider:
            # What was said of another provider does not hold for this one.
            config = replace(config, provider=self.provider, model=None, base_url=None, api_key_file=None)
        if self.model is not None:
            config = replace(config, model=self.model)
        if self.base_url is not None:
            config = replace(config, base_url=checked_url(self.base_url, "--base-url"))
        return config


@dataclass(frozen=True, slots=True)
class TalkOptions:
    """Which session, and what to show of it."""

    session: SessionId = None
    continue_: Continue = False
    explain: Explain = False

    def __post_init__(self) -> None:
        if self.session is not None and self.continue_:
            raise Usage("--session names a session and --continue means the latest; give one of them")
