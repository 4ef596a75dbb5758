"""Kills all processes of a test run when the run is gone, also after SIGKILL, when it cannot clean up itself.

Every process of a run inherits a mark in its environment. A small watcher process detects the end of the run by the end
of a pipe that only the run holds open, and kills the processes that still have the mark.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

MARK = "HOLDFAST_TEST_RUN"


def kill_when_we_are_gone() -> None:
    """Start the watcher process and mark this one. Does nothing where there is no /proc."""
    if not Path("/proc/self/environ").exists():
        return
    mark = os.environ[MARK] = secrets.token_hex(8)
    ours, theirs = os.pipe()
    os.set_inheritable(ours, True)
    # A separate session: Ctrl-C at the terminal must not end it before the run.
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    subprocess.Popen(
        [sys.executable, "-S", __file__, mark, str(ours)], env=environment, pass_fds=[ours], start_new_session=True
    )
    os.close(ours)
    # Never closed explicitly: it ends with this process. Children do not inherit `theirs`.
    assert not os.get_inheritable(theirs)


def marked(mark: str) -> list[int]:
    """The processes that have the mark."""
    entry = f"{MARK}={mark}".encode()
    pids = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if entry in path.read_bytes().split(b"\0"):
                pids.append(int(path.parent.name))
    return pids


def _wait_and_kill(mark: str, pipe: int) -> None:
    while os.read(pipe, 1):
        pass
    for _ in range(100):
        pids = marked(mark)
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _wait_and_kill(sys.argv[1], int(sys.argv[2]))
