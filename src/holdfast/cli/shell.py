"""`shell`: a prompt for the same commands, without `holdfast`. The store stays open between them.

At a terminal an error ends nothing. Commands from a pipe stop at the first that fails.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer.main import get_command

from holdfast.cli.exits import ExitCode, UsageError, print_error, run_in_shell
from holdfast.cli.options import ScopeOptions, StoreOptions, expand_options, parts_of_shell, quoted_in_shell
from holdfast.cli.shell_editor import LineEditor
from holdfast.cli.shell_words import UnclosedQuote, quote_value, quoted_words, split_words
from holdfast.cli.store_access import keep_memory_open, location, memory_stays_open
from holdfast.cli.terminal_safety import on_one_line
from holdfast.domain.location import redact_location
from holdfast.settings import read_settings

PROGRAM = "holdfast"
# The values that `use` sets for the commands after it, by option.
_PLACES = tuple(field.name for field in fields(ScopeOptions) + fields(StoreOptions))
_SAME = {"company": "space"}
# Values that are completed by the names of files and folders.
_FILES = frozenset({"FILE", "PATH", "FOLDER", "PLACE", "BACKUP", "STORE", "FROM", "TO"})
_HELP = """
In this shell:
  use NAME VALUE  Use the option --NAME VALUE for the commands that have it; without VALUE, no longer.
                  NAME is {names}.
  help [COMMAND]  Show this, or the help of a command.
  exit            Leave, as Ctrl-D does.
Words without quotes are one text: add I moved to Lisbon. Quotes make several: add "One." "Two."
"""


@expand_options
def shell(
    place: ScopeOptions,
    chosen: StoreOptions,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Run the commands after one that fails, too; from a pipe.")
    ] = False,
) -> None:
    """Type commands at a prompt; Tab completes them.

    They are written without `holdfast`. The options are for all of them, until `use` changes that. From a pipe, it runs
    each line, and stops at the first that fails, with its exit code.
    """
    if memory_stays_open():
        raise UsageError("this is the shell already; `exit` leaves it")
    with keep_memory_open():
        failed = Shell({**asdict(place), **asdict(chosen)}).run(keep_going)
    if failed:
        raise typer.Exit(failed)


class _Line(NamedTuple):
    """A line's command: its path, the command itself, and the words after it."""

    path: tuple[str, ...]
    command: Any
    words: list[str]


def _refuse(problem: str) -> int:
    print_error("usage", problem, None, as_json=False)
    return ExitCode.USAGE


class Shell:
    """The commands of the program and a few of its own, and the values that `use` sets."""

    def __init__(self, used: Mapping[str, str | None]) -> None:
        from holdfast.cli.program import app

        self._root = get_command(app)
        self._used = {name: value for name, value in used.items() if value is not None}
        self._names: dict[str, dict[str, None]] = defaultdict(dict)  # typed before, by option
        for name, value in self._used.items():
            self._names[name][value] = None
        self._own: dict[str, Callable[[list[str]], int]] = {
            "use": self._use,
            "help": self._help,
            "exit": self._leave,
            "quit": self._leave,
        }
        self._left = False

    def run(self, keep_going: bool) -> int:
        if sys.stdin.isatty() and sys.stdout.isatty():
            self._run_terminal()
            return ExitCode.OK
        return self._run_pipe(keep_going)

    # --- reading ------------------------------------------------------------------------------------------------------

    def _run_terminal(self) -> None:
        store = StoreOptions(self._used.get("store"), self._used.get("embedder"))
        print(
            f"{on_one_line(redact_location(location(store)))} · help lists the commands, Tab completes, Ctrl-D leaves"
        )
        editor = LineEditor(self._complete, read_settings().shell_history)
        while not self._left:
            try:
                line = editor.read(self._prompt())
                editor.remember(line)
                code = self._run_line(line.strip())
            except KeyboardInterrupt:
                print()
                continue
            except EOFError:
                print()
                return
            if code == ExitCode.INTERRUPTED:
                print("(interrupted; what was stored before stays stored)", file=sys.stderr)

    def _run_pipe(self, keep_going: bool) -> int:
        if sys.stdin.isatty():
            print("Each line is a command; Ctrl-D ends.", file=sys.stderr)
        failed = 0
        with _stdin_as_lines() as lines:
            for number, line in enumerate(lines, 1):
                code = self._run_line(line.removeprefix("\ufeff").strip())
                if code == ExitCode.INTERRUPTED:
                    return code
                failed = failed or code
                if code:
                    rest = "" if keep_going else "; the lines after it are not run"
                    print_error("shell", f"line {number} failed{rest}", None, as_json=False)
                if self._left or (failed and not keep_going):
                    break
        return failed

    def _prompt(self) -> str:
        parts = [on_one_line(f"{name} {self._used[name]}") for name in _PLACES[:-2] if name in self._used]
        return f"{PROGRAM} ({', '.join(parts)})> " if parts else f"{PROGRAM}> "

    # --- running ------------------------------------------------------------------------------------------------------

    def _run_line(self, line: str) -> int:
        """Run a line and print its errors. Return its exit code."""
        if line.startswith("#"):
            return ExitCode.OK
        try:
            words = split_words(line)
        except UnclosedQuote as quote:
            return _refuse(f"the quote {quote} is not closed; close it, or write \\{quote}")
        if words[:1] == [PROGRAM]:  # pasted
            words = words[1:] or ["help"]
        if not words:
            return ExitCode.OK
        if own := self._own.get(words[0]):
            return own(words[1:])
        token = quoted_in_shell.set(quoted_words(line))
        try:
            return self._run_command(words)
        finally:
            quoted_in_shell.reset(token)

    def _run_command(self, words: list[str]) -> int:
        found = self._find(words)
        added = self._add_used(found)
        token = parts_of_shell.set(frozenset(added))
        try:
            options = [f"{name}={value}" for name, value in added.values()]
            return run_in_shell(self._root, [*found.path, *options, *found.words])
        finally:
            parts_of_shell.reset(token)

    def _find(self, words: Sequence[str]) -> _Line:
        """Follow the names of commands as far as they go."""
        command: Any = self._root
        path = list(words)
        while path and (found := getattr(command, "commands", {}).get(path[0])) is not None:
            command = found
            path = path[1:]
        return _Line(tuple(words[: len(words) - len(path)]), command, path)

    def _add_used(self, line: _Line) -> dict[str, tuple[str, str]]:
        """Return the set options that the command has and the user did not type: by parameter, with their values."""
        context = line.command.make_context(PROGRAM, list(line.words), resilient_parsing=True)
        added = {}
        for each in line.command.params:
            name = _SAME.get(each.name, each.name)
            if each.param_type_name != "option" or each.multiple or name not in _PLACES:
                continue
            if context.get_parameter_source(each.name).name == "COMMANDLINE":
                self._names[name][str(context.params[each.name])] = None
            elif name in self._used:
                added[each.name] = (each.opts[0], self._used[name])
        return added

    # --- the shell's own commands -------------------------------------------------------------------------------------

    def _use(self, words: list[str]) -> int:
        if not set(words[:1]) <= set(_PLACES):
            return _refuse(f"use: NAME must be one of {', '.join(_PLACES)}")
        match words:
            case []:
                for name, value in self._used.items():
                    print(on_one_line(f"  {name} {redact_location(value)}"))
                if not self._used:
                    print("Nothing is set. `use subject ana` sets --subject ana for the commands after it.")
            case [name]:
                self._used.pop(name, None)
            case [name, *values]:
                self._used[name] = " ".join(values)
                self._names[name][self._used[name]] = None
        return ExitCode.OK

    def _help(self, words: list[str]) -> int:
        code = run_in_shell(self._root, [*words, "--help"])
        if not words:
            *most, last = _PLACES
            print(_HELP.format(names=f"{', '.join(most)} or {last}"), end="")
        return code

    def _leave(self, words: list[str]) -> int:
        self._left = True
        return ExitCode.OK

    # --- completion ---------------------------------------------------------------------------------------------------

    def _complete(self, before: str, word: str) -> list[str]:
        """Return what the word may become, with a space after it unless it is a folder."""
        try:
            words = split_words(before)
            start = split_words(word)[0] if word else ""
        except UnclosedQuote:
            return []
        if words[:1] == [PROGRAM]:
            words = words[1:]
        return [quote_value(value) + ("" if value.endswith("/") else " ") for value in self._values(words, start)]

    def _values(self, words: list[str], start: str) -> list[str]:
        if words[:1] == ["use"]:
            names = _PLACES if len(words) == 1 else self._names.get(words[1], ())
            return [name for name in names if name.startswith(start)]
        own = [] if words else [name for name in self._own if name.startswith(start)]
        if words[:1] == ["help"]:
            words = words[1:]
        line = self._find(words)
        context = line.command.make_context(PROGRAM, list(line.words), resilient_parsing=True)
        asked = _completed_by(line, context, start)
        items = [] if asked is None else asked.shell_complete(context, start)
        values = [str(item.value) for item in items]
        if asked in line.command.params:
            names = self._names.get(_SAME.get(asked.name, asked.name), ())
            values += [name for name in names if name.startswith(start)]
        if getattr(asked, "metavar", None) in _FILES:
            values += _paths(start)
        return values + own


def _completed_by(line: _Line, context: Any, start: str) -> Any:
    """Return the option that lacks its value, else the command for its options, else an argument that takes a word."""
    options = [each for each in line.command.params if each.param_type_name == "option"]
    for each in options:
        if line.words and line.words[-1] in each.opts and not each.is_flag:
            return each
    if hasattr(line.command, "commands"):
        return None if line.words else line.command
    if start.startswith("-") and "--" not in line.words:
        return line.command
    for each in line.command.params:
        if each not in options and (each.nargs == -1 or context.params.get(each.name) is None):
            return each
    return None


def _paths(start: str) -> list[str]:
    folder, name = os.path.split(start)
    try:
        found = sorted(Path(folder or ".").expanduser().iterdir())
    except OSError:
        return []
    return [
        os.path.join(folder, each.name) + ("/" if each.is_dir() else "")
        for each in found
        if each.name.startswith(name) and (name or not each.name.startswith("."))
    ]


@contextmanager
def _stdin_as_lines() -> Iterator[Iterator[str]]:
    """Yield the lines of stdin, which commands then cannot read: they would take the commands after them."""
    lines = sys.stdin
    with open(os.devnull) as nothing:
        sys.stdin = nothing
        try:
            yield iter(lines)
        finally:
            sys.stdin = lines
