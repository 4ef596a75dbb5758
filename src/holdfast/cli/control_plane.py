"""Shared by the control-plane commands: the company option, its control plane, tables, and JSON options."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

import holdfast
from holdfast.cli.error_names import errors_as_typed
from holdfast.cli.exits import UsageError
from holdfast.cli.options import OnlyText, StoreOptions, option
from holdfast.cli.render import UNBOUNDED, console
from holdfast.cli.store_access import location, require_local_store
from holdfast.cli.terminal_safety import on_one_line
from holdfast.domain.location import is_server_url
from holdfast.errors import StoreUnusable
from holdfast.settings import read_settings

Company = Annotated[OnlyText, option("--company", "NAME", "The company.  [env: HOLDFAST_SPACE; default: default]")]
MAX_PAGE = 200
_IDS = ("id", "operation")
_NOTHING = "-"


@contextmanager
def open_control_plane(
    chosen: StoreOptions, company: str | None, *, create: bool = False
) -> Iterator[holdfast.ControlPlane]:
    """Open the company's control plane. A server is refused: it has HTTP routes for that."""
    place = location(chosen)
    if is_server_url(place):
        raise StoreUnusable(
            f"{place} is a server; its control plane is under {place}/companies/…/memory: use it there, or run this"
            " where the store is"
        )
    path = require_local_store(chosen, create=create)
    settings = read_settings()
    opened = partial(holdfast.ControlPlane.open, path, embedder=chosen.embedder, settings=settings, work=False)
    with errors_as_typed(), opened(space=company) as plane:
        yield plane


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]], otherwise: str) -> None:
    """Print rows as a table, or `otherwise` if there are none. Stored names are escaped."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, header_style="dim")
    for column in columns:
        # Wrap long cells; truncated ones would lose information.
        table.add_column(column.removesuffix(">"), justify="right" if column.endswith(">") else "left", overflow="fold")
    body = [[_cell(each) for each in row] for row in rows]
    for cells in body:
        table.add_row(*map(Text, cells))
    screen = console()
    if not body:
        print(otherwise)
    elif columns[-1] in _IDS and _width(screen, table) > screen.width:
        _show_as_list(screen, columns, body)
    else:
        screen.print(table)


def _width(screen: Console, table: Table) -> int:
    """The width of the table without wrapping."""
    return Measurement.get(screen, screen.options.update_width(UNBOUNDED), table).maximum


def _show_as_list(screen: Console, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows one by one if the table is too wide: an id that is broken over lines cannot be copied."""
    for *cells, identifier in rows:
        screen.print(Text(identifier), soft_wrap=True)
        pairs = ((column, cell) for column, cell in zip(columns, cells, strict=False) if cell != _NOTHING)
        facts = (f"{column.removesuffix('>')} {cell}" for column, cell in pairs)
        screen.print(Padding(Text(", ".join(facts)), (0, 0, 0, 4)))


def _cell(value: object) -> str:
    if value is None:
        return _NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return on_one_line(f"{value:,}" if isinstance(value, int) else str(value))


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
