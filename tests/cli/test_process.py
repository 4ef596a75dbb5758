"""Tests that need a real process: terminals, pipes, signals and the time to the first response."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import holdfast

PROGRAM = [sys.executable, "-c", "from holdfast.cli import main; raise SystemExit(main())"]
# No keys, settings or proxies; and the same source that these tests import.
SOURCE = str(Path(holdfast.__file__).parents[1])
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "COLUMNS": "100", "TERM": "xterm-256color"}
PATIENCE_SECONDS = 30


def start(folder: Path, *arguments: str, **streams: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*PROGRAM, *arguments], cwd=folder, env=ENVIRONMENT, **streams)  # type: ignore[call-overload,no-any-return]


class Terminal:
    """Both ends of a pseudo-terminal, with all output read so far."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        self.seen = b""

    def read_until(self, wanted: bytes) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while wanted not in self.seen:
            assert select.select([self.ours], [], [], deadline - time.monotonic())[0], self.seen
            self.seen += os.read(self.ours, 4096)

    def read_rest(self) -> bytes:
        while select.select([self.ours], [], [], 0)[0]:
            self.seen += os.read(self.ours, 4096)
        return self.seen


@pytest.fixture
def messages(tmp_path: Path) -> Path:
    path = tmp_path / "messages.jsonl"
    path.write_text("".join(json.dumps({"text": f"Message {n}"}) + "\n" for n in range(1_200)))
    return path


def test_the_demo_answers_with_no_key_and_no_settings(tmp_path: Path) -> None:
    process = start(tmp_path, "demo", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    while b"peanuts" not in process.stdout.readline():
        pass
    _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    assert err == b""
    assert list(tmp_path.iterdir()) == []


def test_progress_shows_on_a_terminal(tmp_path: Path, messages: Path) -> None:
    terminal = Terminal()
    process = start(tmp_path, "add", "--file", messages.name, stdout=subprocess.PIPE, stderr=terminal.theirs)
    out, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    assert b"adding" in terminal.read_rest()
    assert out == b"Stored 1,200 messages in conversation default.\n"


def test_progress_shows_nowhere_else(tmp_path: Path, messages: Path) -> None:
    process = start(tmp_path, "add", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(messages.read_bytes(), timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    assert err == b""
    assert out == b"Stored 1,200 messages in conversation default.\n"


@pytest.mark.parametrize(("answer", "code", "left"), [(b"n\n", 1, 1), (b"y\n", 0, 0)])
def test_forget_asks_on_a_terminal(tmp_path: Path, answer: bytes, code: int, left: int) -> None:
    assert start(tmp_path, "add", "Forget me.", "--subject", "ana", stdout=subprocess.DEVNULL).wait() == 0
    terminal = Terminal()
    process = start(
        tmp_path, "forget", "--subject", "ana", stdin=terminal.theirs, stdout=subprocess.PIPE, stderr=terminal.theirs
    )
    terminal.read_until(b"for good?")
    os.write(terminal.ours, answer)
    out, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == code
    assert b"Forget me." in out
    stats = start(tmp_path, "store", "stats", "--json", stdout=subprocess.PIPE).communicate()[0]
    assert json.loads(stats)["messages"] == left


def test_forget_refuses_if_there_is_more_than_it_showed(tmp_path: Path) -> None:
    assert start(tmp_path, "add", "Forget me.", "--subject", "ana", stdout=subprocess.DEVNULL).wait() == 0
    terminal = Terminal()
    process = start(
        tmp_path, "forget", "--subject", "ana", stdin=terminal.theirs, stdout=subprocess.PIPE, stderr=terminal.theirs
    )
    terminal.read_until(b"for good?")
    assert start(tmp_path, "add", "Said meanwhile.", "--subject", "ana", stdout=subprocess.DEVNULL).wait() == 0
    os.write(terminal.ours, b"y\n")
    process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 5
    assert b"the token is of no preview of what would be deleted now" in terminal.read_rest()


def test_an_interrupt_ends_it_cleanly(tmp_path: Path) -> None:
    terminal = Terminal()
    process = start(tmp_path, "add", "-", stdin=terminal.theirs, stdout=subprocess.PIPE, stderr=terminal.theirs)
    terminal.read_until(b"Ctrl-D")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    told = terminal.read_rest()
    assert b"holdfast: interrupted" in told
    assert b"Traceback" not in told


def test_colour_is_for_terminals_and_not_for_no_color(tmp_path: Path) -> None:
    assert start(tmp_path, "add", "Hello there.", stdout=subprocess.DEVNULL).wait() == 0
    for setting, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        terminal = Terminal()
        environment = {**ENVIRONMENT, **setting}
        process = subprocess.Popen([*PROGRAM, "search", "hello"], cwd=tmp_path, env=environment, stdout=terminal.theirs)
        terminal.read_until(b"msg_")
        assert process.wait(PATIENCE_SECONDS) == 0
        # Bold is not a colour; 36 is cyan.
        assert (b";36m" in terminal.read_rest()) is coloured


def test_a_reader_that_goes_away_causes_no_traceback(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    process = start(tmp_path, "doctor", "--json", stdout=theirs, stderr=subprocess.PIPE)
    _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 1
    assert err == b""


def test_a_terminal_of_few_letters_is_no_reason_to_fail(tmp_path: Path) -> None:
    assert start(tmp_path, "add", "里斯本", stdout=subprocess.DEVNULL).wait() == 0
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": "ascii"}
    process = subprocess.run([*PROGRAM, "search", "x"], cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert b"\\u91cc" in process.stdout


def test_completion_is_there(tmp_path: Path) -> None:
    environment = {
        **ENVIRONMENT,
        "_HOLDFAST_COMPLETE": "complete_bash",
        "COMP_WORDS": "holdfast sea",
        "COMP_CWORD": "1",
    }
    process = subprocess.run([*PROGRAM], cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert b"search" in process.stdout
