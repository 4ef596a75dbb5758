"""Changes of a program's configuration file: planned first, shown or made afterwards.

A change is made only if it reads back as exactly one entry more or less, and if the file is still as it was planned
for. The file as it was before the first change is kept beside it, readable by its owner alone.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import ConfigurationError, NotFound
from holdfast.mcp_clients.clients import ClientProgram, Launch
from holdfast.private_files import make_private_folder, open_beside, open_private, sync_folder

BACKUP_SUFFIX = ".before-holdfast"


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change of a file. None is a file that does not exist."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def is_empty(self) -> bool:
        return self.before == self.after

    def describe(self) -> tuple[int, list[str], list[str]]:
        """Return the line of the change, and the texts of the removed and the added lines.

        Only the changed span is shown: other lines may hold the keys of other servers.
        """
        before, after = _as_text(self.before), _as_text(self.after)
        start = _common_length(before, after)
        end = _common_length(before[start:][::-1], after[start:][::-1])
        spans = before[start : len(before) - end], after[start : len(after) - end]
        removed, added = ([line for line in span.splitlines() if line.strip()] for span in spans)
        return before.count("\n", 0, start) + 1, removed, added


def plan_install(client: ClientProgram, launch: Launch, file: Path | None = None) -> FileChange:
    """Plan an entry for the server in a program's file."""
    path = _resolve(file or client.find_file())
    before = _read(path)
    return FileChange(path, before, _with_entry(client, path, before, client.entry(launch)))


def plan_uninstall(client: ClientProgram, file: Path | None = None) -> FileChange:
    """Plan the removal of the entry. A file that is otherwise as it was before `install` becomes that again."""
    path = _resolve(file or client.find_file())
    before = _read(path)
    entry = _entry_in(client, path, before)
    if before is None or entry is None:
        raise NotFound(f"{path} has no server called {client.path[1]}; nothing was changed")
    backup = _read(backup_of(path))
    if _with_entry(client, path, backup, entry) == before:
        return FileChange(path, before, backup)
    return FileChange(path, before, _without_entry(client, path, before))


def read_launch(client: ClientProgram, file: Path | None = None) -> Launch:
    """Return the command that a program's file names for the server."""
    path = _resolve(file or client.find_file())
    entry = _entry_in(client, path, _read(path))
    if entry is None:
        raise NotFound(f"{path} has no server called {client.path[1]}; `holdfast mcp install {client.name}` adds it")
    try:
        return client.launch(entry)
    except (KeyError, TypeError, ValueError):
        raise ConfigurationError(
            f"{path}: the entry of {client.path[1]} names no command; `holdfast mcp install {client.name}` replaces it"
        ) from None


def make_change(change: FileChange) -> Path | None:
    """Change the file, unless it is no longer as it was; return the backup, if there is one."""
    if _read(change.path) != change.before:
        raise ConfigurationError(f"{change.path} was changed by another program just now; try again")
    backup = _back_up(change)
    if change.after is None:
        change.path.unlink()
        return backup
    make_private_folder(change.path.parent)
    handle, beside = open_beside(change.path)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(change.after)
            if os.name == "posix" and change.before is not None:
                os.fchmod(file.fileno(), change.path.stat().st_mode)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(change.path)
    finally:
        beside.unlink(missing_ok=True)
    sync_folder(change.path.parent)
    return backup


def backup_of(path: Path) -> Path:
    return path.with_name(path.name + BACKUP_SUFFIX)


def _back_up(change: FileChange) -> Path | None:
    """Keep the file as it was before the first change."""
    backup = backup_of(change.path)
    if change.before is None or backup.exists():
        return backup if backup.exists() else None
    with open(backup, "xb", opener=open_private) as file:
        file.write(change.before)
    return backup


def _resolve(path: Path) -> Path:
    """Follow links, so that a link stays one and its target is changed."""
    return Path(os.path.realpath(path.expanduser()))


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}; nothing was changed") from None


_BOM = codecs.BOM_UTF8


def _with_entry(client: ClientProgram, path: Path, before: bytes | None, entry: Mapping[str, Any]) -> bytes:
    content = before if before is not None and before.strip() else client.format.empty.encode()
    by_hand = " ".join(client.format.put(client.format.empty, client.path, entry).split())
    found = _parse(client, path, content, f", or add this by hand: {by_hand}")
    try:
        text = client.format.put(_text(content), client.path, entry)
        expected = {**found, client.section: {**found.get(client.section, {}), client.path[1]: dict(entry)}}
        if client.format.parse(text) != expected:
            raise ValueError
    except (TypeError, ValueError):
        raise ConfigurationError(
            f"{path} cannot be changed without touching other lines, and was left as it was; add this by hand:"
            f" {by_hand}"
        ) from None
    return _bytes(content, text)


def _without_entry(client: ClientProgram, path: Path, before: bytes) -> bytes:
    found = _parse(client, path, before)
    text = client.format.remove(_text(before), client.path)
    others = {name: each for name, each in found[client.section].items() if name != client.path[1]}
    left = client.format.parse(text)
    # A table of TOML without tables in it is gone.
    if {**left, client.section: left.get(client.section, {})} != {**found, client.section: others}:
        raise ConfigurationError(
            f"{path} cannot be changed without touching other lines; remove {'.'.join(client.path)} by hand"
        )
    return _bytes(before, text)


def _entry_in(client: ClientProgram, path: Path, content: bytes | None) -> Mapping[str, Any] | None:
    servers = _parse(client, path, content).get(client.section) if content is not None and content.strip() else None
    entry = servers.get(client.path[1]) if isinstance(servers, dict) else None
    return entry if isinstance(entry, dict) else None


def _parse(client: ClientProgram, path: Path, content: bytes, advice: str = "") -> dict[str, Any]:
    try:
        found = client.format.parse(_text(content))
        if isinstance(found, dict):
            return found
        problem = "is not an object"
    except (ValueError, RecursionError) as error:
        problem = f"is not {client.format.name}: {str(error) or 'it cannot be read'}"
    raise ConfigurationError(f"{path} {problem}. It was left as it was; put it right and try again{advice}")


def _text(content: bytes) -> str:
    return content.removeprefix(_BOM).decode("utf-8")


def _bytes(content: bytes, text: str) -> bytes:
    return (_BOM if content.startswith(_BOM) else b"") + text.encode("utf-8")


def _common_length(one: str, other: str) -> int:
    shorter = min(len(one), len(other))
    return next((place for place in range(shorter) if one[place] != other[place]), shorter)


def _as_text(content: bytes | None) -> str:
    return (content or b"").decode("utf-8", "replace")
