"""Folders of skills for tests, and the calls by which a process opens and lists files."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_watchers: dict[int, Callable[[str], None]] = {}


def write_skill(root: Path, path: str, description: str | None = None, body: str = "Do it well.") -> Path:
    name = path.rpartition("/")[2]
    return write_document(root, path, f"---\nname: {name}\ndescription: {description or f'For {name}.'}\n---\n{body}\n")


def write_document(root: Path, path: str, text: str) -> Path:
    folder = root / path
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(text, "utf-8")
    return folder


@contextmanager
def before_opens(watch: Callable[[str], None]) -> Iterator[None]:
    """Call `watch` with each path before this thread opens it, and with the name of each listing and each start."""
    here = threading.get_ident()
    _watchers[here] = watch
    try:
        yield
    finally:
        del _watchers[here]


@contextmanager
def record_opens() -> Iterator[list[str]]:
    """Record what this thread opens, lists or runs, until the block ends."""
    record: list[str] = []
    with before_opens(record.append):
        yield record


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    watch = _watchers.get(threading.get_ident()) if _watchers else None
    if watch is None:
        return
    if event == "open" and not isinstance(arguments[0], int):  # a number is open already
        watch(str(arguments[0]))
    elif event in ("os.scandir", "os.listdir", "subprocess.Popen", "os.exec", "exec"):
        watch(event)


sys.addaudithook(_watch)  # for the rest of the process: a hook cannot be removed
