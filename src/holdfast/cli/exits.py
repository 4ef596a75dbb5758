"""The exit code of each error class, and how errors are printed.

One table. A test walks the error hierarchy and requires that it has each class or its parent.
"""

from __future__ import annotations

import io
import logging
import os
import re
import sys
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import typer

from holdfast import errors
from holdfast.cli.json_output import print_json
from holdfast.cli.terminal_safety import on_one_line

_NUMBER = re.compile(r"-\.?\d")
_EXTRA = re.compile(r"Got unexpected extra argument\(s\) \((.*)\)", re.DOTALL)
# How the parser reports a value that is no number, and what it must be.
_NUMBERS = {"Input should be a valid integer": "a whole number", "Input should be a valid number": "a number"}


class ExitCode(IntEnum):
    OK = 0
    PROBLEM = 1
    USAGE = 2
    NOT_FOUND = 3
    DENIED = 4
    CONFLICT = 5
    STORE = 6
    EMBEDDER = 7
    MODEL = 8
    PROVIDER = 9
    INTERRUPTED = 130


class UsageError(typer.TyperException):
    """The options contradict each other or their context. The message says what to type instead."""


def require_terminal(yes: bool, instead: str = "add --yes") -> None:
    """Raise if the user can neither be asked nor has answered with `--yes`."""
    if not (yes or sys.stdin.isatty()):
        raise UsageError(f"there is no terminal to ask on; {instead}")


EXIT_CODES: dict[type[errors.HoldfastError], ExitCode] = {
    errors.InvalidInput: ExitCode.USAGE,
    errors.ConfigurationError: ExitCode.USAGE,
    errors.DocumentsBusy: ExitCode.PROBLEM,
    errors.NotFound: ExitCode.NOT_FOUND,
    errors.AccessDenied: ExitCode.DENIED,
    errors.Conflict: ExitCode.CONFLICT,
    errors.LeaseLost: ExitCode.CONFLICT,
    errors.StoreError: ExitCode.STORE,
    errors.EmbedderError: ExitCode.EMBEDDER,
    errors.ModelError: ExitCode.MODEL,
    errors.ProviderError: ExitCode.PROVIDER,
    errors.HoldfastError: ExitCode.PROBLEM,
}

HINTS: dict[type[errors.HoldfastError], str] = {
    errors.StoreBusy: "HOLDFAST_BUSY_SECONDS sets how long to wait for another process.",
    errors.Unauthenticated: "Set HOLDFAST_KEY to a user's key, or to the operator's token.",
    errors.StoreCorrupt: "Keep a copy of the file before you change anything.",
    errors.EmbedderUnavailable: "Nothing is lost: `holdfast flush` catches up once it answers.",
    errors.EmbedderNotNamed: "Nothing was changed. `holdfast store stats` shows what is there.",
    errors.EmbedderMisconfigured: "`--embedder static` needs no key and no network. `holdfast doctor` checks the rest.",
    errors.ModelMisconfigured: "`--provider scripted` needs no key and no network.",
    errors.ConfigurationError: "`holdfast doctor --settings` shows every setting, and where it comes from.",
}


def code_for(error: errors.HoldfastError) -> ExitCode:
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)


def wants_json(arguments: Sequence[str]) -> bool:
    """True if `--json` was given. Checked before parsing, because parse errors are reported as JSON too."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def run(app: Callable[..., Any], arguments: Sequence[str]) -> int:
    """Run the program and print its errors. Errors that a user can cause have no traceback."""
    ended = run_in_shell(app, arguments)
    if ended == ExitCode.INTERRUPTED:
        print_error("interrupted", "interrupted; what was stored before stays stored", None, wants_json(arguments))
    return ended


def run_in_shell(app: Callable[..., Any], arguments: Sequence[str]) -> int:
    """Run one command and print its errors, but for an interrupt: its shell says what becomes of it."""
    as_json = wants_json(arguments)
    _escape_unprintable()
    with _WarningPrinter(as_json):
        try:
            ended = app(args=list(arguments), prog_name="holdfast", standalone_mode=False)
            sys.stdout.flush()
        except errors.HoldfastError as error:
            print_error(error.code, str(error), HINTS.get(type(error)), as_json, error.field)
            return code_for(error)
        except typer.TyperException as error:
            print_error("usage", _usage_problem(error), _usage_hint(error), as_json)
            return ExitCode.USAGE
        except (KeyboardInterrupt, typer.Abort):
            return ExitCode.INTERRUPTED
        except BrokenPipeError:
            _redirect_stdout_to_null()
            return ExitCode.PROBLEM
        except OSError as error:
            print_error("io_error", f"{error.filename or 'input or output'}: {error.strerror or error}", None, as_json)
            _discard_failed_stdout()
            return ExitCode.PROBLEM
    return ended if isinstance(ended, int) else ExitCode.OK


def print_error(code: str, message: str, hint: str | None, as_json: bool, field: str | None = None) -> None:
    if as_json:
        fields = {"code": code, "message": message, "field": field, "hint": hint}
        print_json({"error": {name: value for name, value in fields.items() if value}}, sys.stderr, indent=None)
        return
    print(f"holdfast: {on_one_line(message)}", file=sys.stderr)
    if hint:
        print(f"  {hint}", file=sys.stderr)


def _usage_problem(error: typer.TyperException) -> str:
    """The message of an error, with a suggestion for an option that the command does not have."""
    wanted = next((text for start, text in _NUMBERS.items() if error.message.startswith(start)), None)
    if isinstance(error, typer.BadParameter) and wanted and error.param is not None:
        names = [name for name in error.param.opts if name.startswith("--")]
        return f"{names[0] if names else error.param.metavar}: must be {wanted}"
    from holdfast.cli.suggestions import explain_extra, suggest_option

    missing = getattr(error, "param", None) if hasattr(error, "param_type") else None
    if missing is not None and missing.param_type_name == "option" and missing.metavar:
        return f"Missing option '{missing.opts[0]} {missing.metavar}'."
    context, wrong = getattr(error, "ctx", None), getattr(error, "option_name", None)
    if context is not None and (extra := _EXTRA.fullmatch(error.message)):
        return explain_extra(extra[1].split(" "), context.command)
    if context is None or wrong is None or not hasattr(error, "possibilities"):
        return error.format_message()

    problem = f"No such option: {wrong}."
    if found := suggest_option(wrong, context.command):
        return f"{problem} {found}"
    if hasattr(context.command, "commands"):
        return f"{problem} Give options after the command: {context.command_path} COMMAND {wrong}"
    return problem


def _usage_hint(error: typer.TyperException) -> str | None:
    if isinstance(error, UsageError):
        return None
    context = getattr(error, "ctx", None)
    if context is None and (option := getattr(error, "option_name", None)):
        return f"Write a value after it: {option} VALUE."
    command = context.command_path if context is not None else "holdfast"
    how = f"`{command} --help` shows its usage."
    if (number := getattr(error, "option_name", None)) and _NUMBER.match(number):
        return f"To give {number} as an argument, put -- before all of them: `{command} -- …`. {how}"
    return how


def _escape_unprintable() -> None:
    """Escape characters that a terminal cannot show. Bytes in stdin that are not text are rejected later."""
    numbered = "backslashreplace"
    for stream, instead in ((sys.stdin, "surrogateescape"), (sys.stdout, numbered), (sys.stderr, numbered)):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=instead)


def _discard_failed_stdout() -> None:
    """Discard stdout if it failed: Python would flush it again at exit, and change the exit code."""
    try:
        sys.stdout.flush()
    except OSError:
        _redirect_stdout_to_null()


def _redirect_stdout_to_null() -> None:
    """Redirect stdout to null, because its reader has gone: Python's final flush must not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _WarningPrinter(logging.Handler):
    """Prints the library's warnings, while a command runs, as single lines on stderr."""

    def __init__(self, as_json: bool) -> None:
        super().__init__(logging.WARNING)
        self._as_json = as_json
        self._logger = logging.getLogger("holdfast")
        # The printer of the shell that runs this command.
        self._outer = [each for each in self._logger.handlers if isinstance(each, _WarningPrinter)]

    def __enter__(self) -> None:
        for each in self._outer:
            self._logger.removeHandler(each)
        self._logger.addHandler(self)

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
        for each in self._outer:
            self._logger.addHandler(each)

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if self._as_json:
            print_json({"warning": {"message": message}}, sys.stderr, indent=None)
        else:
            print(f"holdfast: warning: {on_one_line(message)}", file=sys.stderr)
