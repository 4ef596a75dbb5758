"""Fault injection for disks and networks: a shim that fails the k-th call on files below a folder or on connections,
and a disk of a given size.

The shim (`shim.c`) is compiled on first use and loaded into a process by `Shim.environment`. Code arms and disarms it,
in the process itself or in its parent: both map the same page of memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path

from faults.needs import missing

_PATH_MAX = 4096
_MODES = {"off": 0, "count": 1, "fail": 2}


class Call(IntFlag):
    """The kinds of calls that can fail. The numbers are the shim's."""

    WRITE = 1
    SYNC = 2
    TRUNCATE = 4
    OPEN = 8
    REMOVE = 16
    RENAME = 32
    READ = 64
    ANY = 127  # any call on a disk
    NETWORK = 128  # on a server connection, wherever files are; the connection is dead afterwards


@dataclass(frozen=True)
class Fault:
    """The way a call fails; if `sticky`, later calls fail too, until the shim is disarmed."""

    calls: Call
    error: int = 0  # an errno; 0: half of the data is written
    sticky: bool = False
    later: int = 0  # the errno of later failures; `error` if 0


FAULTS = {
    "EIO once": Fault(Call.ANY, errno.EIO),
    "EIO from then on": Fault(Call.ANY & ~Call.READ, errno.EIO, sticky=True),
    "ENOSPC from then on": Fault(Call.WRITE | Call.TRUNCATE | Call.OPEN, errno.ENOSPC, sticky=True),
    "a short write": Fault(Call.WRITE),
    "a short write, then ENOSPC": Fault(Call.WRITE, sticky=True, later=errno.ENOSPC),
}


CUT = Fault(Call.NETWORK, errno.ECONNRESET)


class _Control(ctypes.Structure):
    _fields_ = [
        ("mode", ctypes.c_uint32),
        ("kinds", ctypes.c_uint32),
        ("at", ctypes.c_uint32),
        ("sticky", ctypes.c_uint32),
        ("error", ctypes.c_int32),
        ("later", ctypes.c_int32),
        ("calls", ctypes.c_uint32),
        ("failed", ctypes.c_uint32),
        ("folder", ctypes.c_char * _PATH_MAX),
        ("shadow", ctypes.c_char * _PATH_MAX),
    ]


class Shim:
    """The shared page. Create it once with `made`; open it by path in each process that loads the shim."""

    def __init__(self, control: Path) -> None:
        self._path = control
        with control.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), ctypes.sizeof(_Control))
        self._control = _Control.from_buffer(self._page)

    @classmethod
    def made(cls, folder: Path) -> Shim:
        (folder / "control").write_bytes(bytes(ctypes.sizeof(_Control)))
        _compiled(folder)
        return cls(folder / "control")

    @property
    def path(self) -> str:
        return str(self._path)

    @property
    def environment(self) -> dict[str, str]:
        """Variables that load the shim into a process."""
        return {"LD_PRELOAD": str(self._path.parent / "shim.so"), "FAULTS_CONTROL": self.path}

    def count(self, folder: str, calls: Call) -> None:
        """From now on, count these calls on files below the folder."""
        self._arm("count", folder, Fault(calls), 0)

    def fail(self, folder: str, fault: Fault, at: int) -> None:
        """From now on, count these calls, and fail call number `at`."""
        self._arm("fail", folder, fault, at)

    def _arm(self, mode: str, folder: str, fault: Fault, at: int) -> None:
        control = self._control
        control.mode = _MODES["off"]
        control.folder = os.path.realpath(folder).encode()
        control.kinds, control.at, control.sticky = int(fault.calls), at, fault.sticky
        control.error, control.later = fault.error, fault.later or fault.error
        control.calls = control.failed = 0
        control.mode = _MODES[mode]

    def keep(self, folder: str, shadow: str) -> None:
        """From now on, keep a copy of each file of the folder as it was last synced."""
        self._control.folder = os.path.realpath(folder).encode()
        self._control.shadow = os.path.realpath(shadow).encode()

    def disarm(self) -> tuple[int, int]:
        """Stop; return the number of calls and of failures."""
        self._control.mode = _MODES["off"]
        return self._control.calls, self._control.failed


def _compiled(folder: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        missing("a C compiler, to build the shim that fails calls")
    source = Path(__file__).with_name("shim.c")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(folder / "shim.so"), str(source), "-ldl"],
        check=True,
        timeout=60,
    )


def cut_power(folder: Path, shadow: Path) -> None:
    """Reduce each file to its synced content and remove files that were never synced. No process may use them."""
    for path in folder.iterdir():
        path.unlink()
    for path in shadow.iterdir():
        # A partial copy: its sync had not returned yet.
        if not path.name.endswith(".part"):
            shutil.copy(path, folder / path.name)


@contextlib.contextmanager
def of_size(mebibytes: int) -> Iterator[Path]:
    """A disk of that size, mounted on a new folder that any user may use."""
    # Not below pytest's folders: a server that runs as another user cannot reach them.
    folder = Path(tempfile.mkdtemp(prefix="holdfast-disk-"))
    folder.chmod(0o755)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode=777", "tmpfs", str(folder)]
    try:
        ended = subprocess.run(mount, capture_output=True, timeout=60, check=False)
        if ended.returncode:
            missing(f"the right to mount a small disk ({ended.stderr.decode().strip()})")
        try:
            yield folder
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=True, timeout=60)
    finally:
        folder.rmdir()
