"""Shared by the control-plane commands: the space option, its control plane, and options in JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

import holdfast
from holdfast.cli.exits import UsageError
from holdfast.cli.options import OnlyText, StoreOptions
from holdfast.cli.store_access import location, require_local_store
from holdfast.cli.terminal_safety import on_one_line
from holdfast.domain.location import is_server_url
from holdfast.errors import StoreUnusable
from holdfast.settings import read_settings

# The routes of the contract say company; people type both.
Company = Annotated[
    OnlyText,
    typer.Option("--space", "--company", metavar="NAME", help="The space.  [env: HOLDFAST_SPACE; default: default]"),
]
MAX_PAGE = 200


@contextmanager
def open_control_plane(
    chosen: StoreOptions, company: str | None, *, create: bool = False
) -> Iterator[holdfast.ControlPlane]:
    """Open the space's control plane. A server is refused: it has HTTP routes for that."""
    place = location(chosen)
    if is_server_url(place):
        raise StoreUnusable(
            f"{place} is a server; its control plane is under {place}/companies/…/memory: use it there, or run this"
            " where the store is"
        )
    path = require_local_store(chosen, create=create)
    settings = read_settings()
    opened = partial(holdfast.ControlPlane.open, path, embedder=chosen.embedder, settings=settings, work=False)
    with opened(space=company) as plane:
        yield plane


def parse_config(text: str | None) -> dict[str, Any] | None:
    """Parse `--config`: a JSON object, or @ and the name of a file that holds one."""
    if text is None:
        return None
    if text.startswith("@"):
        text = _read(Path(text[1:]))
    try:
        found = json.loads(text)
    except ValueError:
        raise UsageError("--config is not JSON; give an object such as '{\"timeout_seconds\": 5}', or @FILE") from None
    if not isinstance(found, dict):
        raise UsageError("--config must be a JSON object such as '{\"timeout_seconds\": 5}'")
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
    raise UsageError(f"--config: {on_one_line(str(path))} cannot be read: {why}")


def parse_hooks(switches: Sequence[str] | None) -> dict[str, bool]:
    """Parse the `--hook` options, such as `--hook issue_comment_capture=on`."""
    found: dict[str, bool] = {}
    for switch in switches or ():
        name, equals, state = switch.partition("=")
        if not equals or state not in ("on", "off"):
            raise UsageError(
                f"--hook {on_one_line(switch)}: write a hook and on or off, such as issue_comment_capture=on"
            )
        found[name] = state == "on"
    return found


def format_config(config: Mapping[str, Any]) -> str:
    """A configuration on one line."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in config.items()}
    return ", ".join(f"{name} {value}" for name, value in texts.items() if value != "null") or "-"
