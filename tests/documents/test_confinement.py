"""The reader process has few rights and sees none of our data; its parent survives any failure of it."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from pathlib import Path

import pytest

import holdfast
from holdfast.documents.file_types import FileType
from holdfast.documents.kernel import Barrier, available_barriers
from holdfast.documents.limits import MEGABYTE, Limits
from holdfast.documents.reader import parse_output
from holdfast.documents.sandbox import NOT_CONFINED, run_program
from holdfast.errors import ConfigurationError, InvalidDocument

SMALL = Limits(max_characters=1000, memory_bytes=400 * MEGABYTE, cpu_seconds=1, wall_seconds=20)


def program(source: str) -> list[str]:
    return [sys.executable, "-P", "-s", "-B", "-c", textwrap.dedent(source)]


# Skip importing the engine, as the reader's program does: the import would take longer than the test.
WITHOUT_ENGINE = f"""
import os, socket, subprocess, sys, types
sys.modules["holdfast"] = types.ModuleType("holdfast")
sys.modules["holdfast"].__path__ = {list(holdfast.__path__)!r}
"""
CONFINED = f"""{WITHOUT_ENGINE}
from holdfast.documents.kernel import Barrier
from holdfast.documents.sandbox import OUT_OF_MEMORY, confine
HERE = os.getcwd()
FDS = os.listdir("/proc/self/fd") if os.path.exists("/proc") else []
confine({SMALL.memory_bytes}, {SMALL.cpu_seconds}, Barrier({available_barriers().value}))
given = sys.stdin.buffer.read()
"""


def answer_of(source: str, document: bytes = b"document", limits: Limits = SMALL) -> str:
    return run_program(program(CONFINED + textwrap.dedent(source)), document, limits, available_barriers()).decode()


def refused(source: str, document: bytes = b"document", limits: Limits = SMALL) -> str:
    with pytest.raises(InvalidDocument) as caught:
        run_program(program(textwrap.dedent(source)), document, limits, available_barriers())
    assert caught.value.field == "content"
    return caught.value.problem


# --- rights of the child ----------------------------------------------------------------------------------------------


def test_it_is_given_the_whole_document_and_its_whole_answer_is_taken() -> None:
    document = bytes(range(256)) * 40_000
    assert answer_of("print(len(given), 'x' * 2_000_000, end='')", document) == "10240000 " + "x" * 2_000_000


def test_it_inherits_no_secrets_no_files_and_not_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOLDFAST_OPERATOR_TOKEN", "canary-in-the-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-in-the-environment")
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "secret").open("w+") as open_file:
        os.set_inheritable(open_file.fileno(), True)
        found = answer_of("print(sorted(os.environ), HERE, FDS)")
    assert "canary" not in found
    assert set(eval(found.split("]")[0] + "]")) <= {"LC_ALL", "LC_CTYPE", "PYTHONPATH"}
    assert "] / [" in found
    assert len(eval("[" + found.rsplit("[", 1)[1])) <= 4  # three pipes, and the listing itself


@pytest.mark.parametrize(
    "attempt",
    [
        "socket.socket()",
        "socket.socket().connect(('127.0.0.1', 9))",
        "subprocess.run(['true'])",
        "os.fork()",
        "os.system('true')",
        "open(TARGET, 'w')",
        "open(TARGET, 'r+')",
        "os.open(TARGET, os.O_WRONLY | os.O_CREAT)",
        "os.remove(TARGET)",
        "os.rename(TARGET, TARGET + '2')",
        "os.mkdir(TARGET + 'd')",
    ],
)
def test_it_can_neither_write_nor_call_nor_start_anything(attempt: str, tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("untouched")
    source = f"""
    TARGET = {str(target)!r}
    try:
        {attempt}
        print("done")
    except OSError as error:
        print("refused", type(error).__name__)
    """
    assert answer_of(source) == "refused PermissionError\n"
    assert target.read_text() == "untouched"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_its_limits_cannot_be_raised_again_nor_files_written_beneath_python(tmp_path: Path) -> None:
    """A file opened earlier stands for one opened by native code: only the process's limits protect it."""
    source = f"""
    import resource
    from holdfast.documents.kernel import Barrier
    from holdfast.documents.sandbox import confine
    file = os.open({str(tmp_path / "file")!r}, os.O_WRONLY | os.O_CREAT)
    confine({SMALL.memory_bytes}, {SMALL.cpu_seconds}, Barrier.NONE)
    try:
        os.write(file, b"x")
        print("written")
    except OSError as error:
        print("refused", error.errno)
    for name in ("RLIMIT_FSIZE", "RLIMIT_NPROC", "RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_NOFILE"):
        soft, hard = resource.getrlimit(getattr(resource, name))
        print(name, hard)
    """
    lines = (
        run_program(program(WITHOUT_ENGINE + textwrap.dedent(source)), b"", SMALL, Barrier.ALL).decode().splitlines()
    )
    assert lines[0].startswith("refused")
    most = dict(line.split() for line in lines[1:])
    assert most["RLIMIT_FSIZE"] == most["RLIMIT_NPROC"] == "0"
    assert most["RLIMIT_AS"] == str(SMALL.memory_bytes)
    assert most["RLIMIT_CPU"] == str(SMALL.cpu_seconds + 1)
    assert int(most["RLIMIT_NOFILE"]) <= 16


# --- failures of the child --------------------------------------------------------------------------------------------


def test_memory_beyond_its_limit_is_refused() -> None:
    hungry = """
    try:
        bytearray(500 * 1024 * 1024)
    except MemoryError:
        sys.exit(OUT_OF_MEMORY)
    """
    assert "more than 400 MB" in refused(CONFINED + textwrap.dedent(hungry))


def test_one_that_could_not_be_confined_says_so() -> None:
    with pytest.raises(ConfigurationError, match="could not be confined"):
        run_program(program(f"import sys; sys.exit({NOT_CONFINED})"), b"document", SMALL, Barrier.ALL)


def test_seconds_of_work_beyond_its_limit_are_refused() -> None:
    assert "more than 1 seconds" in refused(CONFINED + "while True: pass")


def test_one_that_never_answers_is_ended() -> None:
    waiting = Limits(wall_seconds=0.5)
    assert "more than 0.5 seconds" in refused("import time; time.sleep(600)", limits=waiting)
    # The child does not read the document either, which is larger than a pipe's buffer.
    assert "more than 0.5 seconds" in refused("import time; time.sleep(600)", bytes(MEGABYTE), limits=waiting)


def test_one_that_talks_without_end_is_ended() -> None:
    endless = "import sys\nsys.stdin.buffer.read()\nwhile True: sys.stdout.buffer.write(b'x' * 65536)"
    assert "split it" in refused(endless)


@pytest.mark.parametrize(
    "source",
    [
        "raise ValueError('a piece of the document')",
        "import os; os._exit(3)",
        "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import sys; sys.stdin.close(); sys.exit(1)",
        "this is no program",
    ],
)
def test_however_it_breaks_down_the_document_is_refused(source: str) -> None:
    problem = refused(source, bytes(MEGABYTE))
    assert "damaged" in problem
    assert "piece of the document" not in problem


def test_a_program_that_cannot_be_started_is_no_crash() -> None:
    with pytest.raises(InvalidDocument, match="try again later"):
        run_program(["/nowhere/python"], b"document", SMALL, Barrier.ALL)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"garbage",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"3",
        b"{}",
        b'{"title": null}',
        b'{"title": null, "characters": -1}',
        b'{"title": null, "characters": 1001}',
        b'{"title": null, "characters": "1"}',
        b'{"title": null, "characters": 1}\n',
        b'{"title": null, "characters": 1}\n5',
        b'{"title": null, "characters": 1}\n["a"]',
        b'{"title": null, "characters": 1}\n""',
        b'{"title": null, "characters": 1}\n"  "',
        b'{"title": null, "characters": 1}\n"a\\u0000b"',
        b'{"title": null, "characters": 1}\n"a\\ud800b"',
        b'{"title": null, "characters": 1}\n"' + b"a" * 901 + b'"',
        b'{"problem": 5}',
        b"[" * 100_000,
    ],
    ids=lambda answer: repr(answer)[:40],
)
def test_an_answer_that_is_nonsense_is_refused(answer: bytes) -> None:
    with pytest.raises(InvalidDocument, match="invalid output"):
        parse_output(FileType.PDF, answer, SMALL)


def test_an_answer_is_checked_as_if_the_document_had_given_it() -> None:
    head = json.dumps({"title": "a\x00b\n" + "c" * 9000, "characters": 6}).encode()
    found = parse_output(FileType.PDF, head + b'\n"one"\n"two"', SMALL)
    assert (found.chunks, found.characters) == (("one", "two"), 6)
    assert found.title is not None
    assert len(found.title) == 300
    with pytest.raises(InvalidDocument, match="more than 1 chunks"):
        parse_output(FileType.PDF, head + b'\n"one"\n"two"', Limits(max_chunks=1))
