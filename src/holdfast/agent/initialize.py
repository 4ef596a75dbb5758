"""Set up an agent: a config file with comments and, for a Memory Gateway, a user there with its key in a file.

Nothing is overwritten, except a config file that is exactly as this module wrote it. The key file is created before
the user: no key is requested that could not be stored. The key is never shown.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.agent.config import FILE, FOLDER
from holdfast.agent.config_file import read_sections
from holdfast.agent.keyfiles import MAX_KEY_BYTES, key_text
from holdfast.agent.signup import sign_up
from holdfast.domain.location import checked_url
from holdfast.domain.scope import check_part
from holdfast.domain.secret import Secret
from holdfast.errors import ConfigurationError, Conflict
from holdfast.private_files import FILE_MODE, make_private_folder, open_private
from holdfast.settings import Settings

KEY_FILE = "gateway.key"
_IGNORED = "# What was said, and the key to it: nothing for a repository.\ngateway.key\nmemories/\nsessions/\n"


@dataclass(frozen=True, slots=True)
class AgentModelChoice:
    """The model to write into the config."""

    provider: str = "scripted"
    model: str | None = None
    base_url: str | None = None


@dataclass(frozen=True, slots=True)
class GatewayChoice:
    """The gateway to connect to. `key_file` holds the key of an existing user."""

    url: str
    user_id: str
    key_file: Path | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", checked_url(self.url, "--gateway"))
        check_part("--user", self.user_id)


@dataclass(frozen=True, slots=True)
class InitResult:
    """The files of the set-up agent. `created` is true if the user is new."""

    config: Path
    key_file: Path | None = None
    created: bool = False
    replaced: bool = False  # an unchanged config was replaced


def initialize(
    workspace: Path | str | None,
    settings: Settings,
    model: AgentModelChoice | None,
    gateway: GatewayChoice | None = None,
) -> InitResult:
    """Write the config of the agent that works in `workspace`, after signing up at the gateway, if there is one.

    Without a `model`, the one of a replaced config is used, if there is one.
    """
    folder = Path(workspace or Path.cwd()).absolute()
    if not folder.is_dir():
        raise ConfigurationError(f"{folder}: no such folder; create it, or name another workspace")
    home = settings.home.absolute() if settings.home else folder / FOLDER
    config = settings.config_path.absolute() if settings.config_path else home / FILE
    known = _read_unchanged_model(config)
    with _create_folders((home, config.parent)):
        key_file, created = (None, False) if gateway is None else _connect_gateway(home, gateway, settings)
        named = key_file.name if key_file and key_file.parent == config.parent else str(key_file)
        _write(config, render_config(model or known or AgentModelChoice(), gateway, named), known is not None)
        _ignore(home)
    return InitResult(config, key_file, created, known is not None)


@contextlib.contextmanager
def _create_folders(folders: Iterable[Path]) -> Iterator[None]:
    """Create the folders, private to this user. New ones are removed again if the block fails."""
    new = [folder for folder in folders if not folder.exists()]
    for folder in new:
        make_private_folder(folder)
    try:
        yield
    except BaseException:
        for folder in new:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def _read_unchanged_model(config: Path) -> AgentModelChoice | None:
    """Return the model of an unchanged config that was written here without a gateway; None if there is no config.

    Any other config is a `Conflict`.
    """
    if not os.path.lexists(config):
        return None
    with contextlib.suppress(OSError, UnicodeDecodeError, ConfigurationError):
        agent = read_sections(config, confined=False).section("agent")
        known = AgentModelChoice(agent.text("provider"), agent.text("model") or None, agent.text("baseUrl") or None)
        if not config.is_symlink() and config.read_text("utf-8") == render_config(known):
            return known
    raise Conflict(f"{config} exists and is not overwritten; change it with an editor, or move it away and try again")


def _connect_gateway(home: Path, gateway: GatewayChoice, settings: Settings) -> tuple[Path, bool]:
    """Return the file that holds the user's key, and whether the user is new."""
    place = home / KEY_FILE
    known = None if gateway.key_file is None else _read_key(gateway.key_file)
    if gateway.key_file is not None and gateway.key_file.absolute() == place:
        asyncio.run(sign_up(gateway.url, gateway.user_id, known, settings))
        place.chmod(FILE_MODE)
        return place, False
    with _reserve_key_file(place) as handle:
        key = asyncio.run(sign_up(gateway.url, gateway.user_id, known, settings))
        os.ftruncate(handle, os.pwrite(handle, f"{key.revealed()}\n".encode(), 0))
        os.fsync(handle)
    return place, known is None


@contextlib.contextmanager
def _reserve_key_file(place: Path) -> Iterator[int]:
    """Create a file that only this user may read, from its first moment on. It is removed if the block fails."""
    try:
        handle = open_private(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW)
    except FileExistsError:
        raise Conflict(
            f"{place} exists and is not overwritten; if it holds the user's key, add --key-file {place},"
            " else move it away"
        ) from None
    try:
        os.write(handle, b" " * MAX_KEY_BYTES)  # a full disk fails here
        os.fsync(handle)
        yield handle
    except BaseException:
        place.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)


def _read_key(file: Path) -> Secret:
    try:
        text = key_text(file)
    except OSError as error:
        problem = f"{file} cannot be read ({error.strerror})"
    else:
        if text:
            return Secret(text, "--key-file")
        problem = f"{file} is empty; it must hold the user's key"
    raise ConfigurationError(f"--key-file: {problem}")


def _write(config: Path, content: str, replace: bool) -> None:
    """Write the file atomically: to a temporary file first, then into its place."""
    beside = config.with_name(f"{config.name}.{os.getpid()}.new")
    handle = open_private(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            beside.replace(config)
        else:
            os.link(beside, config)  # never overwrites
    except FileExistsError:
        raise Conflict(f"{config} was created by another process just now, and is not overwritten; try again") from None
    finally:
        beside.unlink(missing_ok=True)


def _ignore(home: Path) -> None:
    """Keep private files out of repositories. An existing .gitignore is not changed."""
    with contextlib.suppress(FileExistsError):
        with open(home / ".gitignore", "x", encoding="utf-8", opener=open_private) as file:
            file.write(_IGNORED)


# --- the file -------------------------------------------------------------------------------------------------------


def render_config(model: AgentModelChoice, gateway: GatewayChoice | None = None, key_file: str = KEY_FILE) -> str:
    """Return the first text of the config: the chosen settings, with the other ones as comments."""
    return f"""\
// The agent's configuration. It is JSON in which comments like this one are allowed.
{{
  "agent": {{
    // Which model speaks:
    //   "scripted"    rules instead of a model: offline, without a key, to see how things work
    //   "openai"      OpenAI, or a server that speaks like it (Ollama, vLLM, llama.cpp): set "baseUrl" to that one,
    //                 such as "http://127.0.0.1:11434/v1"
    //   "anthropic"   Anthropic
    // The key is OPENAI_API_KEY or ANTHROPIC_API_KEY in the environment, or the text of the file that "apiKeyFile"
    // names. A server on this machine needs none.

{_model_lines(model)}
  }},
  "memory": {{
    // What it remembers with:
    //   "curated"          two small files, memories/MEMORY.md and memories/USER.md, which the model keeps itself
    //   "hybrid"           those, and a Memory Gateway, which keeps every conversation
    //   "memory_gateway"   the Memory Gateway alone

{_memory_lines(gateway, key_file)}
  }}
}}
"""


def _model_lines(model: AgentModelChoice) -> str:
    """Settings in comments come first, with their commas: to use one, only the slashes need to go."""
    lines = [
        '    // "instructions": "You are a helpful assistant.",',
        '    // "skills": ["the name of a folder in skills/, beside this file"],',
        '    // "maxToolRounds": 8,',
        '    // "historyMessages": 40,',
    ]
    if model.model is None:
        lines.append('    // "model": "the name of one of the provider\'s models",')
    chosen = {"baseUrl": model.base_url, "model": model.model, "provider": model.provider}
    settings = [f"    {_pair(name, value)}" for name, value in chosen.items() if value is not None]
    return "\n".join(lines) + "\n" + ",\n".join(settings)


def _memory_lines(gateway: GatewayChoice | None, key_file: str) -> str:
    if gateway is None:
        lines = (
            "// `holdfast agent init --gateway URL --user NAME` connects it with a gateway, as long as this file is",
            '// as it was written. By hand, with mode "hybrid":',
            '// "gateway": { "baseUrl": "http://127.0.0.1:8010", "userId": "ana", "userKeyFile": "gateway.key" },',
            '"mode": "curated"',
        )
        return "\n".join(f"    {line}" for line in lines)
    return f"""\
    "mode": "hybrid",
    "gateway": {{
      {_pair("baseUrl", gateway.url)},
      {_pair("userId", gateway.user_id)},
      // The key is a secret: keep it in a file that only you can read, and out of repositories.
      {_pair("userKeyFile", key_file)},
      // Where it looks: "current_chat", "resources" (documents), "all_user_memory" (every conversation and document).
      "scope": ["all_user_memory"],
      "topK": 8,
      // A gateway that does not answer costs at most this much; the agent goes on without it.
      "timeoutSeconds": 10
    }}"""


def _pair(name: str, value: str) -> str:
    return f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
