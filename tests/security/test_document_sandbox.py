"""Hostile code in the process that reads documents reaches nothing, whoever runs us and if a barrier is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.documents.kernel import Barrier, available_barriers, landlock_version

HERE = Path(__file__).parent
ORDINARY_USER = 65_533
Report = dict[str, Any]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the barriers are Linux's own")


@pytest.fixture(scope="module")
def attack() -> Callable[[str], Report]:
    """Attack from within, once for each user; not below pytest's own folder, which is closed to all other users."""
    missing = Barrier.ALL & ~available_barriers()
    if missing:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"this kernel lacks {missing}")
    made: dict[str, Report] = {}

    def attacking(user: str) -> Report:
        if user == "root" and os.geteuid() != 0:
            pytest.skip("only root can run this as root")
        if user not in made:
            with tempfile.TemporaryDirectory() as folder:
                made[user] = _attack(user, Path(folder))
        return made[user]

    return attacking


def _attack(user: str, folder: Path) -> Report:
    package, opened = folder / "packages" / "pypdf", folder / "open"
    package.mkdir(parents=True)
    opened.mkdir()
    shutil.copy(HERE / "hostile_reader.py", package / "__init__.py")
    for name in ("errors", "generic"):
        (package / f"{name}.py").write_text("from pypdf import *\n")
    (opened / "store.db").write_text("canary in a file")
    # Open to all, so that only the barriers protect them.
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    number = str(ORDINARY_USER) if user == "ordinary user" and os.geteuid() == 0 else "-"
    command = [sys.executable, str(HERE / "hostile_parent.py"), number, str(folder), "ALL,SECCOMP,LANDLOCK,NONE"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    report: Report = json.loads(done.stdout)
    report["files"] = {path.name: path.read_text() for path in opened.iterdir()}
    return report


def done_in(report: Report, barriers: str, *but: str) -> dict[str, Any]:
    """The attacks that succeeded, but for those of these groups."""
    return {name: made for name, made in report[barriers].items() if made[0] and name.partition(" ")[0] not in but}


USERS = pytest.mark.parametrize("user", ["root", "ordinary user"])


@USERS
def test_the_attacks_succeed_where_nothing_stops_them(attack: Callable[[str], Report], user: str) -> None:
    """Otherwise their failure behind a barrier would prove nothing."""
    made = attack(user)["unconfined"]
    harmless = ("file openat store", "file openat environment", "file openat2 memory", "file python users")
    reaching = ("signal kill 10", "signal python", "memory process_vm_readv", "memory ptrace", "memory pidfd")
    for name in (*harmless, *reaching, "socket 2 1", "socket 1 2", "socket pair", "socket python"):
        assert made[name][0], (name, made[name])


@USERS
@pytest.mark.parametrize("barriers", ["ALL", "SECCOMP"])
def test_behind_seccomp_no_attack_succeeds(attack: Callable[[str], Report], user: str, barriers: str) -> None:
    report = attack(user)
    assert len(report[barriers]) > 80
    assert done_in(report, barriers) == {}
    assert report[barriers]["other calls"][0] == report[barriers]["descriptors"][0] == 0


@USERS
def test_behind_landlock_alone_no_file_process_or_memory_is_reached(attack: Callable[[str], Report], user: str) -> None:
    """It knows no sockets but the use of TCP, no modes of files, and signals only in newer kernels."""
    unknown = ("socket", "mode", "call") if landlock_version() >= 6 else ("socket", "mode", "call", "signal")
    report = attack(user)
    assert len(report["LANDLOCK"]) > 80
    assert done_in(report, "LANDLOCK", *unknown) == {}


@USERS
def test_even_without_a_barrier_the_memory_and_environment_of_the_parent_are_hidden(
    attack: Callable[[str], Report], user: str
) -> None:
    report = attack(user)
    ours = ("environment", "memory", "maps", "descriptors")
    reached = [name for name in done_in(report, "NONE") if name.startswith("memory") or name.endswith(ours)]
    assert [name for name in reached if not name.endswith("own environment")] == []


@USERS
def test_nothing_was_changed_and_no_signal_arrived(attack: Callable[[str], Report], user: str) -> None:
    report = attack(user)
    assert report["files"] == {"store.db": "canary in a file"}
    assert report["intact"]
    assert report["signals"] == 0
