"""Files are private: whatever the umask, everything that a command creates can be used by its owner alone."""

from __future__ import annotations

import io
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import holdfast
from holdfast.cli import main
from holdfast.cli.program import app
from holdfast.settings import Settings
from holdfast.stores.sqlite.connection import connect

_COPY = ("store", "copy", "memory.db", "copy.db", "--replace")
_WHERE = ("--subject", "ana", "--conversation", "one")
# Commands that create files, in an order in which each finds what it needs. A pattern stands for the files it matches.
CREATING: dict[str, tuple[str, ...]] = {
    "store init": ("--store", "init.db"),
    "demo": ("--json",),
    "add": ("I moved to Lisbon.", "Alice lives in Berlin.", *_WHERE),
    "resource add": ("note.txt", "--subject", "ana", "--store", "resources.db"),
    "user create": ("ana", "--store", "users.db"),
    "credential create": ("helper", "--space", "acme", "--store", "credentials.db"),
    "binding create": ("main", "local", "--space", "acme", "--store", "bindings.db"),
    "worker": ("--once",),
    "store copy": ("memory.db", "copy.db"),
    "store backup": ("memory.db", "--to", "backups"),
    "store restore": ("backups/*.backup", "--store", "restored.db"),
    "remember": ("Ana lives in Lisbon.", "--store", "remembered.db"),
    "export": ("memory.jsonl",),
    "import": ("memory.jsonl", "--store", "taken.db"),
    "runtime write-procedural": (
        "Stop the pump.\nOpen the valve.",
        "--title",
        "Open the valve",
        "--store",
        "skills.db",
    ),
    "runtime export": ("--output", "snapshot.json", *_WHERE),
    "runtime import": ("--input", "snapshot.json", "--store", "hosted.db"),
    "replay record": ("fixture.json", *_WHERE),
    "replay run": ("--store", "replayed.db"),
    "replay compare": ("fixture.json", "--store", "compared.db"),
    "space export": ("space.jsonl",),
    "space import": ("space.jsonl", "--store", "imported.db"),
    "agent init": ("--provider", "scripted"),
    "agent run": ("My dog is called Rex", "--session", "monday"),
    "agent chat": (),
    "agent sessions delete": ("monday", "--yes"),
    "mcp install": ("claude-code", "--config", "client.json", "--store", "memory.db"),
}
# Runs until it is stopped: see the test of the service.
SERVING = {"serve"}
# Run other commands. `tests/cli/test_shell.py` tests the history file of the shell.
RUNNING = {"shell", "mcp doctor"}
# Commands that only read or change what is in a store, a session file or the package itself. If the file is missing
# they refuse; otherwise its write-ahead log takes its mode.
IN_EXISTING_FILES = {
    "recall", "history", "revert", "list", "get", "browse", "correct", "flush",
    "search", "explain", "forget", "doctor", "store migrate", "store rebuild", "store flush", "store repair",
    "costs prices set", "costs fee", "resource list", "resource delete", "user rotate", "user revoke", "user list",
    "credential rotate", "credential revoke", "credential list", "binding list", "binding show", "binding update",
    "binding enable", "binding disable", "binding delete", "binding default", "binding override", "binding resolve",
    "binding activity", "operations list", "operations show", "operations metrics", "jobs list", "jobs show",
    "jobs retry", "jobs cancel", "deliveries list", "deliveries show", "deliveries retry", "deliveries drop",
    "costs summary", "costs events", "costs fees", "costs prices list", "costs prices remove", "store check",
    "store stats", "store verify", "store jobs", "store events", "agent memory show", "agent sessions show",
    "agent sessions search", "transcript replay", "transcript export", "transcript lifecycle", "transcript repair",
    "provider list", "provider show", "provider check", "platform capability-snapshot", "platform profiles",
    "runtime capabilities", "runtime recall", "runtime project", "runtime inspect", "runtime replay", "runtime close",
    "runtime skill list", "runtime skill show", "runtime skill edit", "runtime skill enable", "runtime skill disable",
    "runtime skill delete", "runtime tool-registry list", "runtime tool-registry show", "runtime tool-registry delete",
    "evolution list", "evolution show", "evolution approve", "evolution reject",
    "mcp uninstall",
}  # fmt: skip


@contextmanager
def careless(umask: int = 0) -> Iterator[None]:
    before = os.umask(umask)
    try:
        yield
    finally:
        os.umask(before)


def wide(folder: Path) -> list[str]:
    """Every file that is not 0600 and every folder that is not 0700."""
    found = []
    for path in folder.rglob("*"):
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode != (0o700 if path.is_dir() else 0o600):
            found.append(f"{path.relative_to(folder)} {mode:04o}")
    return found


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def commands(group: Any, before: tuple[str, ...] = ()) -> Iterator[str]:
    for name in list(group.commands):
        command = group.commands[name]
        path = (*before, name)
        yield from commands(command, path) if hasattr(command, "commands") else [" ".join(path)]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith("HOLDFAST_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "fake")
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    # `demo` makes its folder there.
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def run(*arguments: str) -> int:
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(b"My cat is called Tom\n"))
    try:
        return main(arguments)
    finally:
        sys.stdin = before


def test_every_command_is_known_to_create_files_or_not() -> None:
    known = {*CREATING, *SERVING, *RUNNING, *IN_EXISTING_FILES}
    assert set(commands(get_command(app))) == known
    assert len(known) == len(CREATING) + len(SERVING) + len(RUNNING) + len(IN_EXISTING_FILES)


@contextmanager
def serving(folder: Path) -> Iterator[None]:
    """Run `holdfast serve` without any setting and any umask, from its start on until it is ready at the end."""
    program = [sys.executable, "-c", "from holdfast.cli import main; raise SystemExit(main())"]
    command = [*program, "serve", "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=folder, umask=0, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["store"] == "memory.db"
            assert (folder / "memory.db-wal").exists()
            assert not wide(folder)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)


def test_no_command_creates_a_file_for_others(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    served = workspace / "served"
    served.mkdir(0o700)
    (workspace / "backups").mkdir(0o700)
    (workspace / "note.txt").touch(0o600)
    (workspace / "note.txt").write_text("Sourdough needs twelve hours.")
    with serving(served), careless():
        for name, arguments in CREATING.items():
            found = [str(next(workspace.glob(each))) if "*" in each else each for each in arguments]
            assert run(*name.split(), *found) == 0, (name, capsys.readouterr())
            assert not wide(workspace), name
    assert not wide(workspace)
    assert {path.name for path in workspace.rglob("*")} >= {
        "init.db", "memory.db", "resources.db", "users.db", "credentials.db", "bindings.db", "copy.db", "imported.db",
        "restored.db", "space.jsonl", "config.json", ".gitignore", "sessions", "memories",
    }  # fmt: skip


def test_an_open_store_is_private_with_its_log_and_its_indexes(workspace: Path) -> None:
    store = workspace / "memory.db"
    with (
        careless(),
        holdfast.open(store, work=False, settings=Settings(embedder="fake", approximate_from=100)) as memory,
    ):
        memory.add([{"text": f"Message {number} about sourdough."} for number in range(150)], subject="ana")
        memory.drain()
        names = {path.suffix for path in workspace.rglob("*")}
        assert names >= {".db", ".db-wal", ".db-shm", ".usearch", ".numbers"}
        assert not wide(workspace)
        holdfast.copy(store, workspace / "copy.db")
        assert not wide(workspace)


def test_a_connection_does_not_create_a_removed_file_again(workspace: Path) -> None:
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        connect("memory.db", 1)
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize("before", [0o400, 0o600, 0o640, 0o666])
def test_a_replaced_file_is_never_wider_than_before(workspace: Path, before: int) -> None:
    export, target = workspace / "space.jsonl", workspace / "copy.db"
    with careless():
        assert run("add", "I moved to Lisbon.", *_WHERE) == 0
        for path, command in ((export, ("space", "export", "space.jsonl")), (target, _COPY)):
            assert run(*command) == 0
            path.chmod(before)
            assert run(*command) == (0 if before & 0o200 or os.geteuid() == 0 or path == export else 6)
    # An export is a new file. A copy fills the store that is there, which keeps its mode.
    assert (mode(export), mode(target)) == (before & 0o600, before)


def test_doctor_warns_of_wide_files_and_repair_makes_them_private(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, token, graphs = (workspace / name for name in ("memory.db", "memory.db.operator-token", "memory.db-nearest"))
    with holdfast.open(store, work=False, embedder="fake") as memory:
        memory.add("I moved to Lisbon.", subject="ana")
        token.write_text("a token")
        graphs.mkdir()
        (graphs / "1.numbers").write_bytes(b"")
        named = [store, Path(f"{store}-wal"), Path(f"{store}-shm"), graphs, graphs / "1.numbers"]
        for path in (*named, token):
            path.chmod(0o755 if path == graphs else 0o644)
        assert privacy(capsys) == ["warn"]
        assert run("store", "repair", "--json") == 1
        assert json.loads(capsys.readouterr().out)["mends"]["restrict_files"] == len(named)
        assert mode(store) == 0o644
        assert run("store", "repair", "--apply") == 0
        assert "5 files were made private" in capsys.readouterr().out
        assert privacy(capsys) == []
        # Others may know the token by now: a repair must not make `serve` trust it again.
        assert mode(token) == 0o644
        assert run("serve", "--port", "0") == 2
        assert "remove it, and the next start creates another token" in capsys.readouterr().err
        token.unlink()
        assert not wide(workspace)


def test_wide_files_of_another_user_are_reported_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can have files of two users")
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "memory.db"
        with holdfast.open(store, embedder="fake"):
            pass
        store.chmod(0o666)
        Path(folder).chmod(0o777)
        os.seteuid(65_534)
        try:
            assert privacy(capsys, "--store", str(store)) == ["warn"]
            assert run("store", "repair", "--apply", "--store", str(store), "--json", "--embedder", "fake") == 1
        finally:
            os.seteuid(0)
        found = json.loads(capsys.readouterr().out)
        assert (found["foreign_files"], found["sound"]) == ([f"{store} (mode 0666)"], False)
        assert mode(store) == 0o666


def privacy(capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    capsys.readouterr()
    run("doctor", "--json", "--embedder", "fake", *options)
    return [check["health"] for check in json.loads(capsys.readouterr().out)["checks"] if check["name"] == "privacy"]
