"""The exit code of each error class, and how errors are printed.

One table. A test walks the error hierarchy and requires that it has each class or its parent.
"""

from __future__ import annotations

import io
import logging
import os
import re
import sys
from collections.abc import Sequence
from enum import IntEnum

import typer

from holdfast import errors
from holdfast.cli.json_output import print_json
from holdfast.cli.terminal_safety import on_one_line

_NUMBER = re.compile(r"-\.?\d")


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
    errors.EmbedderUnavailable: "Nothing is lost: `holdfast store flush` catches up once it answers.",
    errors.EmbedderNotNamed: "Nothing was changed. `holdfast store stats` shows what is there.",
    errors.EmbedderMisconfigured: "`--embedder static` needs no key and no network. `holdfast doctor` checks the rest.",
    errors.ModelMisconfigured: "`--provider scripted` needs no key and no network.",
    errors.ConfigurationError: "`holdfast doctor` shows every setting.",
}


def code_for(error: errors.HoldfastError) -> ExitCode:
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)


def run(app: typer.Typer, arguments: Sequence[str], *, as_json: bool) -> int:
    """Run the program and print its errors. Errors that a user can cause have no traceback."""
    _escape_unprintable()
    with _WarningPrinter(as_json):
        try:
            ended = app(args=list(arguments), prog_name="holdfast", standalone_mode=False)
            sys.stdout.flush()
        except errors.HoldfastError as error:
            print_error(error.code, str(error), HINTS.get(type(error)), as_json, error.field)
            return code_for(error)
        except typer.TyperException as error:
            print_error("usage", error.format_message(), _usage_hint(error), as_json)
            return ExitCode.USAGE
        except (KeyboardInterrupt, typer.Abort):
            ended = ExitCode.INTERRUPTED
        except BrokenPipeError:
            _redirect_stdout_to_null()
            return ExitCode.PROBLEM
        except OSError as error:
            print_error("io_error", f"{error.filename or 'input or output'}: {error.strerror or error}", None, as_json)
            _discard_failed_stdout()
            return ExitCode.PROBLEM
    if ended == ExitCode.INTERRUPTED:
        print_error("interrupted", "interrupted; what was stored before stays stored", None, as_json)
    return ended if isinstance(ended, int) else ExitCode.OK


def print_error(code: str, message: str, hint: str | None, as_json: bool, field: str | None = None) -> None:
    if as_json:
        fields = {"code": code, "message": message, "field": field, "hint": hint}
        print_json({"error": {name: value for name, value in fields.items() if value}}, sys.stderr, indent=None)
        return
    print(f"holdfast: {on_one_line(message)}", file=sys.stderr)
    if hint:
        print(f"  {hint}", file=sys.stderr)


def _usage_hint(error: typer.TyperException) -> str | None:
    if isinstance(error, UsageError):
        return None
    context = getattr(error, "ctx", None)
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

    def __enter__(self) -> None:
        self._logger.addHandler(self)

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if self._as_json:
            print_json({"warning": {"message": message}}, sys.stderr, indent=None)
        else:
            print(f"holdfast: warning: {on_one_line(message)}", file=sys.stderr)
