"""Progress on stderr, and only where somebody watches."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

Advance = Callable[..., None]


@contextlib.contextmanager
def progress(doing: str, *, quiet: bool, total: int | None = None) -> Iterator[Advance]:
    """A bar, and a way to tell it how many are done, and of how many if that is known only later.

    Without a total it only shows that it moves.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda done, total=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda done, total=total: bar.update(task, completed=done, total=total)


@contextlib.contextmanager
def working(doing: str, *, quiet: bool) -> Iterator[None]:
    """Shows that something goes on, where nobody can say how far it is."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(doing):
        yield
