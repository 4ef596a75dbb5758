"""Every command that a page, a sample, an error or a message names exists, with its options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer.main

from holdfast.cli.program import app

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(path for folder in ("docs", "deploy", "examples") for path in sorted((ROOT / folder).rglob("*.md"))),
    ROOT / "deploy" / "monitoring" / "alerts.yaml",
]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
_CONSOLE = re.compile(r"^ *```console\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
# In prose: `holdfast store check`. In a console: after a prompt, settings, or `$(`.
_INLINE = re.compile(r"`holdfast ([^`\n]+)`")
_TYPED = re.compile(r"(?:^\$ |\$\(|[;|&]\s*|=\S+ |-- |\bsudo |/)holdfast ([^)#\n]*)", re.MULTILINE)
_OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)")
# Alternatives such as `check|migrate`: a word of names.
_NAMES = re.compile(r"[a-z][a-z-]*(\|[a-z][a-z-]*)*")


@cache
def _root() -> Any:
    return typer.main.get_command(app)


def problem(line: str) -> str | None:
    """Return what is wrong with a command line without its program; None for nothing."""
    words = line.replace("|…", "").replace("…", "").split()
    commands = [_root()]
    while words and all(hasattr(command, "commands") for command in commands) and _NAMES.fullmatch(words[0]):
        names = words.pop(0).split("|")
        found = [command.commands.get(name) for command in commands for name in names]
        if None in found:
            return f"{' '.join(names)} is no command"
        commands = found
    # A placeholder, such as `{command}` in our own source or COMMAND on a page, is no name.
    if words and words[0][0].islower() and any(hasattr(command, "commands") for command in commands):
        return f"{words[0]} is no command"
    known = {option for command in commands for each in command.params for option in each.opts} | {"--help"}
    wrong = [option for option in _OPTION.findall(" ".join(words)) if option not in known]
    return f"{wrong[0]} is no option" if wrong else None


def _lines(page: Path) -> Iterator[str]:
    text = page.read_text("utf-8")
    for block in _CONSOLE.findall(text):
        yield from _TYPED.findall(block.replace("\\\n", " "))
    yield from _INLINE.findall(_CONSOLE.sub("", text))


def test_a_command_and_an_option_that_do_not_exist_are_found() -> None:
    assert problem("search 'x' --subject ana") is None
    assert problem("store check|migrate --json") is None
    assert problem("store chekc") == "chekc is no command"
    assert problem("store check --forse") == "--forse is no option"


def test_every_command_that_a_page_names_exists() -> None:
    named = [(page.relative_to(ROOT).as_posix(), line) for page in PAGES for line in _lines(page)]
    assert len(named) > 200
    assert [(page, line, wrong) for page, line in named if (wrong := problem(line))] == []


def test_every_command_that_the_program_advises_exists() -> None:
    named = [(path.name, line) for path in SOURCES for line in _INLINE.findall(path.read_text("utf-8"))]
    assert len(named) > 30
    assert [(path, line, wrong) for path, line in named if (wrong := problem(line))] == []
