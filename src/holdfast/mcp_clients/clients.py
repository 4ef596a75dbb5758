"""The programs that start servers of the protocol: where their configuration is, and how an entry is written there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.domain.call_errors import likely_name
from holdfast.errors import NotFound
from holdfast.mcp_clients import jsonc, toml_text
from holdfast.settings import read_variable

SERVER = "holdfast"


@dataclass(frozen=True, slots=True)
class Launch:
    """The command that starts the server."""

    command: str
    args: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileFormat:
    """How the text of a configuration file is read and edited."""

    name: str
    parse: Callable[[str], Any]
    put: Callable[[str, Sequence[str], Mapping[str, Any]], str]
    remove: Callable[[str, Sequence[str]], str]
    empty: str


JSON = FileFormat("JSON", jsonc.parse, jsonc.set_member, jsonc.remove_member, "{}\n")
TOML = FileFormat("TOML", toml_text.parse, toml_text.set_table, toml_text.remove_table, "")


@dataclass(frozen=True, slots=True)
class ClientProgram:
    """A program. `section` names the object of its servers in the file; `entry` writes a server, `launch` reads one."""

    name: str
    title: str
    find_file: Callable[[], Path]
    section: str
    entry: Callable[[Launch], dict[str, Any]]
    launch: Callable[[Mapping[str, Any]], Launch]
    format: FileFormat = JSON

    @property
    def path(self) -> tuple[str, str]:
        """The keys that lead to our entry."""
        return self.section, SERVER


def _plain_entry(launch: Launch) -> dict[str, Any]:
    return {"command": launch.command, "args": list(launch.args)}


def _typed_entry(launch: Launch) -> dict[str, Any]:
    return {"type": "stdio", **_plain_entry(launch)}


def _zed_entry(launch: Launch) -> dict[str, Any]:
    return {"source": "custom", **_plain_entry(launch), "env": {}}


def _opencode_entry(launch: Launch) -> dict[str, Any]:
    return {"type": "local", "command": [launch.command, *launch.args], "enabled": True}


def _plain_launch(entry: Mapping[str, Any]) -> Launch:
    return Launch(str(entry["command"]), tuple(map(str, entry.get("args", ()))))


def _opencode_launch(entry: Mapping[str, Any]) -> Launch:
    command, *args = map(str, entry["command"])
    return Launch(command, tuple(args))


def _in_home(*parts: str, variable: str | None = None, below: Sequence[str] = ()) -> Callable[[], Path]:
    """Return where a file is: below the home folder, or below the folder that a variable names."""

    def find() -> Path:
        named = read_variable(variable) if variable is not None else None
        return Path(named, *below) if named else Path.home().joinpath(*parts)

    return find


def _application_file(windows: str, mac: str, linux: str) -> Callable[[], Path]:
    """Return the file of a desktop application, below the folder of applications' settings."""

    def find() -> Path:
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Application Support" / mac
        if sys.platform == "win32":
            return Path(read_variable("APPDATA") or Path.home() / "AppData" / "Roaming") / windows
        return _linux_settings() / linux

    return find


def _linux_settings() -> Path:
    return Path(read_variable("XDG_CONFIG_HOME") or Path.home() / ".config")


def _zed_file() -> Path:
    if sys.platform == "win32":
        return Path(read_variable("APPDATA") or Path.home() / "AppData" / "Roaming") / "Zed" / "settings.json"
    folder = Path.home() / ".config" if sys.platform == "darwin" else _linux_settings()
    return folder / "zed" / "settings.json"


def _opencode_file() -> Path:
    """Return the file that exists; `opencode.json` if neither does."""
    folder = _linux_settings() / "opencode"
    commented = folder / "opencode.jsonc"
    return commented if commented.exists() else folder / "opencode.json"


_CLAUDE = "Claude/claude_desktop_config.json"
_CODE = "Code/User/mcp.json"
CLIENTS: Mapping[str, ClientProgram] = {
    each.name: each
    for each in (
        ClientProgram(
            "claude-code",
            "Claude Code",
            _in_home(".claude.json", variable="CLAUDE_CONFIG_DIR", below=(".claude.json",)),
            "mcpServers",
            _typed_entry,
            _plain_launch,
        ),
        ClientProgram(
            "claude-desktop",
            "Claude Desktop",
            _application_file(_CLAUDE, _CLAUDE, _CLAUDE),
            "mcpServers",
            _plain_entry,
            _plain_launch,
        ),
        ClientProgram("cursor", "Cursor", _in_home(".cursor", "mcp.json"), "mcpServers", _plain_entry, _plain_launch),
        ClientProgram(
            "vscode",
            "Visual Studio Code",
            _application_file(_CODE, _CODE, _CODE),
            "servers",
            _typed_entry,
            _plain_launch,
        ),
        ClientProgram(
            "codex",
            "Codex",
            _in_home(".codex", "config.toml", variable="CODEX_HOME", below=("config.toml",)),
            "mcp_servers",
            _plain_entry,
            _plain_launch,
            TOML,
        ),
        ClientProgram(
            "windsurf",
            "Windsurf",
            _in_home(".codeium", "windsurf", "mcp_config.json"),
            "mcpServers",
            _plain_entry,
            _plain_launch,
        ),
        ClientProgram("zed", "Zed", _zed_file, "context_servers", _zed_entry, _plain_launch),
        ClientProgram(
            "gemini-cli",
            "Gemini CLI",
            _in_home(".gemini", "settings.json"),
            "mcpServers",
            _plain_entry,
            _plain_launch,
        ),
        ClientProgram("opencode", "opencode", _opencode_file, "mcp", _opencode_entry, _opencode_launch),
    )
}


def find_client(name: str) -> ClientProgram:
    if name in CLIENTS:
        return CLIENTS[name]
    likely = likely_name(name, list(CLIENTS), ())
    hint = f"did you mean {likely}?" if likely else f"use one of {', '.join(CLIENTS)}"
    raise NotFound(f"there is no client {name!r:.60}; {hint}")
