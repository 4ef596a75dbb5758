"""Options of the server of the Model Context Protocol: its memory, its tools, and the scope of its calls."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from pydantic import SecretStr

from holdfast.agent.keyfiles import key_text
from holdfast.cli.options import OnlyText, Space, StoreOptions, option
from holdfast.cli.store_access import server_settings
from holdfast.control.json_views import SCOPE_NAMES
from holdfast.domain.location import checked_url, is_server_url, refuse_mistyped_server
from holdfast.errors import ConfigurationError
from holdfast.installation import install_command
from holdfast.private_files import find_wide_files
from holdfast.settings import Settings, read_settings

# Programs start servers in any folder, so a path of the current one would be another memory each time.
_HOME = Path(".holdfast", "memory.db")


@dataclass(frozen=True, slots=True)
class McpOptions(StoreOptions):
    """The memory that a client gets, and the tools to reach it by."""

    store: Annotated[
        OnlyText,
        option(
            "--store",
            "PLACE",
            "A path, or a postgresql:// or http:// URL.  [env: HOLDFAST_STORE; default: ~/.holdfast/memory.db]",
        ),
    ] = None
    key_file: Annotated[
        Path | None,
        option("--key-file", "FILE", "The file with the key for a server's memory, which only you can read."),
    ] = None
    tools: Annotated[str, option("--tools", "NAME", "simple, company (the tools of a control plane) or runtime.")] = (
        "simple"
    )

    @property
    def location(self) -> str:
        """The memory's place: an absolute path, or a URL."""
        settings = read_settings()
        named = self.store or (settings.store if "store" in settings.model_fields_set else None)
        place = str(Path.home() / _HOME) if named is None else named
        refuse_mistyped_server(place)
        if is_server_url(place):
            return checked_url(place, "--store")
        return place if "://" in place else str(Path(place).expanduser().absolute())

    @property
    def in_default_folder(self) -> bool:
        return self.location == str(Path.home() / _HOME)

    def settings(self) -> Settings:
        """The settings, with the key of the file if one is named."""
        place = self.location
        if self.key_file is not None:
            if not is_server_url(place):
                raise ConfigurationError("--key-file: only a server's memory has a key; leave it out for a store")
            return read_settings().model_copy(update={"key": SecretStr(read_key(self.key_file))})
        return server_settings(place) if is_server_url(place) else read_settings()


@dataclass(frozen=True, slots=True)
class McpScopeOptions:
    """The part of the memory that a client gets."""

    subject: Annotated[OnlyText, option("--subject", "NAME", "Only what is about this subject.")] = None
    agent: Annotated[OnlyText, option("--agent", "NAME", "Only what belongs to this agent.")] = None
    project: Annotated[OnlyText, option("--project", "NAME", "Only what belongs to this project.")] = None
    space: Space = None

    def scope_parts(self) -> dict[str, str]:
        """The parts of the scope that no tool call can change, by their names in JSON."""
        parts = {SCOPE_NAMES[name]: getattr(self, name) for name in ("subject", "agent", "project")}
        return {name: value for name, value in parts.items() if value is not None}


def read_key(file: Path) -> str:
    """Read a key from a file that only its owner can read."""
    try:
        key = key_text(file)
    except OSError as error:
        raise ConfigurationError(f"--key-file: {file} cannot be read: {error.strerror}") from None
    if find_wide_files([file]):
        raise ConfigurationError(f"--key-file: others may read {file}; `chmod 600 {file}` makes it private")
    if not key:
        raise ConfigurationError(f"--key-file: {file} is empty; it holds the key and nothing else")
    return key


def check_mcp_installed() -> None:
    """Raise unless the protocol's package is installed."""
    if importlib.util.find_spec("mcp") is None or importlib.util.find_spec("mcp_types") is None:
        raise ConfigurationError(f"this needs the package mcp, version 2; install it with: {install_command('mcp')}")


Client = Annotated[str, typer.Argument(metavar="CLIENT", help="The program, such as claude-code.")]
