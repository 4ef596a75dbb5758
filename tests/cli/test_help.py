"""The help texts are golden files, and the reference agrees with them.

To accept a change of the help: `HOLDFAST_REFRESH_GOLDEN=1 pytest tests/cli/test_help.py`, then read the diff.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from holdfast.cli.exits import ExitCode
from holdfast.cli.program import app

from .conftest import Holdfast

GOLDEN = Path(__file__).parent / "golden"
REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"
# Read before the fixtures clear the settings.
REFRESH = bool(os.environ.get("HOLDFAST_REFRESH_GOLDEN"))


def every_command(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from every_command(child, (*path, name))


COMMANDS = dict(every_command(typer.main.get_command(app)))


def name_of(path: tuple[str, ...]) -> str:
    return "-".join(("holdfast", *path))


@pytest.mark.parametrize("path", COMMANDS, ids=name_of)
def test_the_help_is_what_it_was(holdfast: Holdfast, path: tuple[str, ...]) -> None:
    ran = holdfast(*path, "--help")
    assert ran.code == 0
    golden = GOLDEN / f"{name_of(path)}.txt"
    if REFRESH:
        golden.write_text(ran.out, "utf-8")
    assert ran.out == golden.read_text("utf-8")


@pytest.mark.parametrize("path", COMMANDS, ids=name_of)
def test_no_help_is_cut_off_or_names_a_type_of_python(path: tuple[str, ...]) -> None:
    text = (GOLDEN / f"{name_of(path)}.txt").read_text("utf-8")
    assert not re.search(r"[a-z,:;]\.\.\.$|<(?:str|int|float|Path|list\[)", text, re.MULTILINE)


def test_there_is_no_golden_file_of_a_command_that_is_gone() -> None:
    assert {file.stem for file in GOLDEN.glob("*.txt")} == set(map(name_of, COMMANDS))


def section(path: tuple[str, ...]) -> str:
    """The text of the reference under the command's heading."""
    title = re.escape(" ".join(("holdfast", *path)))
    found = re.search(rf"^#+ `{title}[^\n]*`\n(.*?)(?=^#+ |\Z)", REFERENCE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found, f"the reference has no heading for {title}"
    return found.group(1)


# Another name of `--space`, explained once.
SPACE_TOO = "--company"
SHARED = {
    f"--{name}" for name in ("json", "store", "embedder", "help", "subject", "conversation", "agent", "app", "project")
}
SHARED |= {"--channel", "--space", "-h"}
# One option with several names, of which a section has the first.
NUMBER_OF_RESULTS = {"--limit", "--top-k", "-k", "-n"}


@pytest.mark.parametrize("path", [path for path in COMMANDS if path], ids=name_of)
def test_the_reference_has_every_command_with_its_own_options(path: tuple[str, ...]) -> None:
    text = section(path)
    for parameter in COMMANDS[path].params:
        for option in parameter.opts[: 1 if NUMBER_OF_RESULTS & set(parameter.opts) else None]:
            if option.startswith("-") and option not in SHARED | {SPACE_TOO}:
                assert f"`{option}" in text, option


def test_the_reference_has_the_shared_options_and_the_exit_codes() -> None:
    text = REFERENCE.read_text("utf-8")
    for option in NUMBER_OF_RESULTS | SHARED - {"-h"} | {SPACE_TOO}:
        assert f"`{option}" in text, option
    for code in ExitCode:
        assert re.search(rf"^\| {code.value} \|", text, re.MULTILINE), code
