"""What the commands of the control plane share: which company, its control plane, tables, and what is typed as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

import holdfast
from holdfast.cli.exits import Usage
from holdfast.cli.naming import as_typed
from holdfast.cli.opening import location, own
from holdfast.cli.options import OnlyText, StoreOptions
from holdfast.cli.render import UNBOUNDED, console
from holdfast.cli.safety import on_one_line
from holdfast.domain.location import is_served
from holdfast.errors import StoreUnusable
from holdfast.settings import read_settings

Company = Annotated[
    OnlyText,
    typer.Option("--company", metavar="NAME", help="The company.  [env: HOLDFAST_SPACE; default: default]"),
]
Since = Annotated[OnlyText, typer.Option("--since", metavar="TIME", help="The first moment that counts.")]
Until = Annotated[OnlyText, typer.Option("--until", metavar="TIME", help="The first moment that does not.")]
Few = Annotated[int, typer.Option("--limit", metavar="N", help="At most so many.", min=1)]
MAX_PAGE = 200
_IDS = ("id", "operation")
_NOTHING = "-"


@contextmanager
def controlled(chosen: StoreOptions, company: str | None, *, create: bool = False) -> Iterator[holdfast.ControlPlane]:
    """The company's control plane. A server's is behind its routes."""
    place = location(chosen)
    if is_served(place):
        raise StoreUnusable(
            f"{place} is a server; its control plane is under {place}/companies/…/memory: ask it there, or run this"
            " where the store is"
        )
    path = own(chosen, create=create)
    settings = read_settings()
    opened = partial(holdfast.ControlPlane.open, path, embedder=chosen.embedder, settings=settings, work=False)
    with as_typed(), opened(space=company) as plane:
        yield plane


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]], otherwise: str) -> None:
    """Rows under their headings; `otherwise` if there is none. Stored names are shown, never obeyed."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, header_style="dim")
    for column in columns:
        # A line that is cut tells less than one that is broken.
        table.add_column(column.removesuffix(">"), justify="right" if column.endswith(">") else "left", overflow="fold")
    told = [[_cell(each) for each in row] for row in rows]
    for cells in told:
        table.add_row(*map(Text, cells))
    screen = console()
    if not told:
        print(otherwise)
    elif columns[-1] in _IDS and _width(screen, table) > screen.width:
        _show_one_by_one(screen, columns, told)
    else:
        screen.print(table)


def _width(screen: Console, table: Table) -> int:
    """How wide it would be if it could."""
    return Measurement.get(screen, screen.options.update_width(UNBOUNDED), table).maximum


def _show_one_by_one(screen: Console, columns: Sequence[str], told: Iterable[Sequence[str]]) -> None:
    """Where the table is too wide: an id that is broken over lines cannot be copied, so each has a line of its own."""
    for *cells, identifier in told:
        screen.print(Text(identifier), soft_wrap=True)
        told_of = ((column, cell) for column, cell in zip(columns, cells, strict=False) if cell != _NOTHING)
        facts = (f"{column.removesuffix('>')} {cell}" for column, cell in told_of)
        screen.print(Padding(Text(", ".join(facts)), (0, 0, 0, 4)))


def _cell(value: object) -> str:
    if value is None:
        return _NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return on_one_line(f"{value:,}" if isinstance(value, int) else str(value))


def given_config(text: str | None) -> dict[str, Any] | None:
    """`--config`: a JSON object, or the name of a file that holds one, after an @."""
    if text is None:
        return None
    if text.startswith("@"):
        text = _read(Path(text[1:]))
    try:
        found = json.loads(text)
    except ValueError:
        raise Usage("--config is no JSON; give an object such as '{\"timeout_seconds\": 5}', or @FILE") from None
    if not isinstance(found, dict):
        raise Usage("--config must be a JSON object such as '{\"timeout_seconds\": 5}'")
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
    raise Usage(f"--config: {on_one_line(str(path))} cannot be read: {why}")


def given_hooks(switches: Sequence[str] | None) -> dict[str, bool]:
    """`--hook issue_comment_capture=on`, once for each."""
    found: dict[str, bool] = {}
    for switch in switches or ():
        name, equals, wanted = switch.partition("=")
        if not equals or wanted not in ("on", "off"):
            raise Usage(f"--hook {on_one_line(switch)}: write a hook and on or off, such as issue_comment_capture=on")
        found[name] = wanted == "on"
    return found


def without_none(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def asked_first(question: str, yes: bool, *, is_terminal: Callable[[], bool]) -> bool:
    """Whether somebody agreed; without a terminal to ask on, `--yes` must say so."""
    if yes:
        return True
    if not is_terminal():
        raise Usage("there is no terminal to ask on; add --yes")
    return typer.confirm(question, err=True)


def joined(config: Mapping[str, Any]) -> str:
    """A configuration on one line."""
    told = {name: value if isinstance(value, str) else json.dumps(value) for name, value in config.items()}
    return ", ".join(f"{name} {value}" for name, value in told.items() if value != "null") or "-"
