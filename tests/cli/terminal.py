"""A program on its own pseudo-terminal: its output, and typed input."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import holdfast

PROGRAM = [sys.executable, "-c", "from holdfast.cli import main; raise SystemExit(main())"]
# No keys, settings or proxies; and the same source that these tests import.
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "PYTHONPATH": str(Path(holdfast.__file__).parents[1]),
    "TERM": "xterm-256color",
    "LANG": "C.UTF-8",
    "HOLDFAST_EMBEDDER": "fake",
}
PATIENCE_SECONDS = 60
CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"
# Colours and other control sequences, including incomplete ones.
_STEERING = re.compile(r"\x1b\[[0-?]*[ -/]*(?:[@-~]|$)|\x1b$")


class Terminal:
    """The terminal's output and input. `see` waits for a text after the last one that it found."""

    def __init__(self, process: subprocess.Popen[bytes], ours: int) -> None:
        self._process = process
        self._ours = ours
        self._raw = b""
        self._at = 0

    @property
    def shown(self) -> str:
        """All output, without control sequences."""
        return _STEERING.sub("", self._raw.decode("utf-8", "ignore")).replace("\r", "")

    @property
    def raw(self) -> bytes:
        return self._raw

    def see(self, wanted: str) -> str:
        """Wait for this text, and return the output between the last text found and this one."""
        if not self._comes(wanted, PATIENCE_SECONDS):
            raise AssertionError(f"{wanted!r} was not shown after: {self.shown[self._at :]!r}")
        found = self.shown.find(wanted, self._at)
        before, self._at = self.shown[self._at : found], found + len(wanted)
        return before

    def interrupt(self, wanted: str) -> None:
        """Press Ctrl-C until this is shown: Python may miss the first, just before it waits for a key."""
        for _ in range(PATIENCE_SECONDS // 2):
            self.type(CTRL_C)
            if self._comes(wanted, 2):
                break
        self.see(wanted)

    def _comes(self, wanted: str, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while wanted not in self.shown[self._at :]:
            ready = select.select([self._ours], [], [], max(0, deadline - time.monotonic()))[0]
            if not ready or not self._read():
                return False
        return True

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def say(self, line: str) -> None:
        self.type(f"{line}\n")
        self.see(line)  # the terminal's echo

    def leave(self, keys: str = CTRL_D) -> int:
        self.type(keys)
        return self.end()

    def end(self) -> int:
        while self._read():
            pass
        return self._process.wait(PATIENCE_SECONDS)

    def _read(self) -> bool:
        try:
            got = os.read(self._ours, 4096)
        except OSError:  # on Linux: the other end is closed
            return False
        self._raw += got
        return bool(got)


@contextmanager
def at_a_terminal(folder: Path, *arguments: str, **environment: str) -> Iterator[Terminal]:
    """Run the program in the folder, with this as its controlling terminal, so that Ctrl-C reaches it as usual."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    process = subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=folder,
        env=_environment(environment),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def ran(folder: Path, *arguments: str, typed: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program with pipes."""
    return subprocess.run(
        [*PROGRAM, *arguments],
        cwd=folder,
        env=_environment(environment),
        input=typed,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    return {**ENVIRONMENT, **more}
