"""Line editing for `holdfast shell` by `readline`: history and completion. Without it, as on Windows, lines are read.

The history is of this process, unless HOLDFAST_SHELL_HISTORY names a file. Lines hold private text, so the file is
private, and `clear_history_file` empties it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from holdfast.private_files import create_private_file, open_private

Complete = Callable[[str, str], Sequence[str]]
_MOST_LINES = 1_000


class LineEditor:
    """Reads lines at a terminal. `complete` takes the line before the last word, and that word as it is so far."""

    def __init__(self, complete: Complete, history: Path | None) -> None:
        self._complete = complete
        self._file = history
        self._found: Sequence[str] = ()
        self._lines = _read_lines(history)
        self._readline: Any = None
        try:
            import readline
        except ImportError:
            return
        self._readline = readline
        readline.set_auto_history(False)  # answers to questions are no commands
        readline.set_completer_delims(" \t")
        readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")

    def read(self, prompt: str) -> str:
        """Read a line. Raises EOFError at Ctrl-D, and KeyboardInterrupt at Ctrl-C."""
        if self._readline is None:
            return input(prompt)
        self._restore_history()
        self._readline.set_completer(self._complete_nth)
        try:
            return input(prompt)
        finally:
            self._readline.set_completer(None)

    def remember(self, line: str) -> None:
        """Add a line to the history, unless it begins with a space or repeats the last."""
        if self._readline is None or not line or line[0].isspace() or self._lines[-1:] == [line]:
            return
        self._lines.append(line)
        self._readline.add_history(line)
        if self._file is not None:
            with open(self._file, "a", encoding="utf-8", errors="replace", opener=open_private) as file:
                file.write(f"{line}\n")

    def _restore_history(self) -> None:
        """Bring back the lines of this shell if a command, such as a chat, has replaced them by its own."""
        if self._readline.get_current_history_length() != len(self._lines):
            self._readline.clear_history()
            for line in self._lines:
                self._readline.add_history(line)

    def _complete_nth(self, word: str, number: int) -> str | None:
        if number == 0:
            before = self._readline.get_line_buffer()[: self._readline.get_begidx()]
            self._found = self._complete(before, word)
        return self._found[number] if number < len(self._found) else None


def clear_history_file(path: Path | None) -> bool:
    """Empty the file. Return False if there is none."""
    if path is None or not path.is_file():
        return False
    with open(path, "wb", opener=open_private):
        return True


def _read_lines(path: Path | None) -> list[str]:
    """Return the newest lines of the file, which is created if there is none."""
    if path is None or create_private_file(path):
        return []
    return path.read_text("utf-8", errors="replace").replace("\0", "").splitlines()[-_MOST_LINES:]
