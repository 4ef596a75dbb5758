"""Progress on stderr, only on a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from holdfast.cli.terminal_safety import on_one_line

Advance = Callable[..., None]
_NAME_CHARS = 40


@contextlib.contextmanager
def progress(doing: str, *, quiet: bool, total: int | None = None) -> Iterator[Advance]:
    """Show a bar, and yield a callback for the number done, and for the total if it is known only later.

    Without a total it only shows activity.
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
def spinner(doing: str, *, quiet: bool) -> Iterator[None]:
    """Show a spinner for work whose progress is unknown."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(doing):
        yield


class UploadProgress:
    """Progress of sequential uploads: the current file, its bytes sent, and the bytes of all files."""

    def __init__(self, sizes: list[int], show: Callable[[str, int], None]) -> None:
        self._sizes = sizes
        self._show = show
        self._begun = 0
        self._doing = ""

    def begin(self, name: str) -> None:
        self._begun += 1
        self._doing = f"{self._begun} of {len(self._sizes)}, {on_one_line(name):.{_NAME_CHARS}}"
        self._show(self._doing, self._before)

    def report_sent(self, done: int, total: int) -> None:
        """Report bytes sent, scaled to the file's size: the request body is longer than the file."""
        if self._begun:
            doing = self._doing if done < total else f"{self._doing}: sent, being read"
            self._show(doing, self._before + self._sizes[self._begun - 1] * done // total)

    def end(self) -> None:
        self._show(self._doing, sum(self._sizes[: self._begun]))

    @property
    def _before(self) -> int:
        return sum(self._sizes[: self._begun - 1])


@contextlib.contextmanager
def uploads(sizes: list[int], *, quiet: bool) -> Iterator[UploadProgress]:
    """Show a bar over the bytes of some files."""
    if quiet or not sys.stderr.isatty():
        yield UploadProgress(sizes, lambda doing, done: None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    label = TextColumn("{task.description}", markup=False)  # file names are not markup
    columns = (SpinnerColumn(), label, BarColumn(), DownloadColumn(), TimeElapsedColumn())
    screen = Console(stderr=True)
    with Progress(*columns, console=screen, transient=True, redirect_stdout=False) as bar:
        task = bar.add_task("", total=sum(sizes))
        yield UploadProgress(sizes, lambda doing, done: bar.update(task, description=doing, completed=done))
