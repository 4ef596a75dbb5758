"""Displays a run in progress: streams the answer to stdout, and everything else to stderr.

On a pipe only the complete answer is printed. Model output is untrusted: all of it goes through `visible`.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING

from holdfast.agent.ports import ReasoningPiece, TextPiece
from holdfast.cli.terminal_safety import escape_controls, on_one_line

if TYPE_CHECKING:
    from rich.console import Console

    from holdfast.agent.result import RunEvent

# Faster answers need no spinner.
_PATIENCE_SECONDS = 0.4
_SHOWN_CHARS = 100


class Screen:
    """Shows one run. Call `close` however the run ended."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._streams = sys.stdout.isatty() and not quiet
        self._tells = sys.stderr.isatty() and not quiet
        self._waiting: asyncio.TimerHandle | None = None
        self._spinning: contextlib.AbstractContextManager[object] | None = None
        self._within = False  # the cursor is not at the start of a line
        self._thinking = False  # the text before the cursor is the model's reasoning
        self._answer = ""
        self.answered = False  # the answer is complete; only the gateway is still to be updated

    def watch(self, event: RunEvent) -> None:
        from holdfast.agent.result import AnswerCompleted, ToolEnded, ToolStarted

        self.stop_waiting()
        if isinstance(event, TextPiece):
            # Some models begin with empty lines.
            text = event.text if self._answer else event.text.lstrip()
            self._answer += text
            if self._streams and text:
                self._put(escape_controls(text))
        elif isinstance(event, ReasoningPiece):
            self._think(event.text)
        elif isinstance(event, ToolStarted):
            self._answer = ""
            called = on_one_line(f"{event.call.name} {event.call.arguments}")
            self._print_note(f"· {called[:_SHOWN_CHARS]}{'…' if len(called) > _SHOWN_CHARS else ''}")
        elif isinstance(event, ToolEnded) and not event.ok:
            self._print_note(f"· {on_one_line(f'{event.call.name} failed: {event.content}')[:_SHOWN_CHARS]}")
        elif isinstance(event, AnswerCompleted):
            self._end(event.text)
        self.wait()

    def wait(self) -> None:
        """Start a spinner after a short delay, unless an event comes first."""
        if self._tells and not self._within:
            self._waiting = asyncio.get_running_loop().call_later(_PATIENCE_SECONDS, self._spin)

    def stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if self._spinning is not None:
            self._spinning.__exit__(None, None, None)
            self._spinning = None

    def _end(self, text: str) -> None:
        """Print the answer, unless it was already streamed."""
        self.answered = True
        if text and not self._quiet and not (self._streams and self._answer):
            self._new_line()
            self._put(escape_controls(text))
        self._new_line()

    def close(self) -> None:
        self.stop_waiting()
        self._new_line()

    def _put(self, text: str) -> None:
        if self._thinking:
            self._new_line()
        sys.stdout.write(text)
        sys.stdout.flush()
        if text:
            self._within = not text.endswith("\n")

    def _think(self, text: str) -> None:
        if self._tells and text:
            if not self._thinking:
                self._new_line()
            _dim(escape_controls(text), end="")
            self._within, self._thinking = not text.endswith("\n"), True

    def _print_note(self, text: str) -> None:
        if self._tells:
            self._new_line()
            _dim(text)

    def _new_line(self) -> None:
        if self._within:
            stream = sys.stderr if self._thinking else sys.stdout
            stream.write("\n")
            stream.flush()
        self._within = self._thinking = False

    def _spin(self) -> None:
        self._waiting = None
        self._spinning = _stderr_console().status(
            "updating the gateway" if self.answered else "thinking", spinner_style="dim"
        )
        self._spinning.__enter__()


def _dim(text: str, end: str = "\n") -> None:
    from rich.text import Text

    _stderr_console().print(Text(text, style="dim"), end=end, soft_wrap=True)


def _stderr_console() -> Console:
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False, emoji=False)
