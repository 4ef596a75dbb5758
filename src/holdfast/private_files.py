"""Creation of files and folders that only their owner may read, whatever the umask.

Every file that holds memory, a key or a token is created here; `tests/test_architecture.py` holds all modules to it.
Also finds existing files with wider modes, and restricts them. Modes mean little on Windows: there, nothing is found.
"""

from __future__ import annotations

import os
import stat
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700
_OTHERS = 0o077
_creation = threading.Lock()


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file; a new one is private. The `opener` of `open(path, "wb", opener=open_private)`."""
    return os.open(path, flags | getattr(os, "O_CLOEXEC", 0), FILE_MODE)


def create_private_file(path: str | os.PathLike[str]) -> bool:
    """Create an empty private file; return False if the path exists, and do not touch it."""
    # Closing any descriptor of a file releases the locks that SQLite holds on it in this process. So no thread may see
    # the file before it is closed here.
    with _creation:
        try:
            os.close(open_private(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
    return True


def make_private_folder(folder: Path) -> None:
    """Create a private folder if there is none. Missing parents are private too."""
    if not folder.is_dir():
        make_private_folder(folder.parent)
        folder.mkdir(FOLDER_MODE, exist_ok=True)


def open_beside(target: Path) -> tuple[int, Path]:
    """Create a private temporary file that will replace the target. Its mode is never wider than the target's."""
    handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name:.100}.")
    if os.name == "posix" and target.exists():
        os.fchmod(handle, FILE_MODE & target.stat().st_mode)
    return handle, Path(beside)


@dataclass(frozen=True, slots=True)
class WideFile:
    """A file or folder that others than its owner may use. `own` if this process may change that."""

    path: Path
    mode: int
    own: bool

    def __str__(self) -> str:
        return f"{self.path} (mode {self.mode:04o})"


def find_wide_files(paths: Iterable[Path]) -> list[WideFile]:
    """Find those of the paths that exist and are not private."""
    if os.name != "posix":
        return []
    found = []
    user = os.geteuid()
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        mode = stat.S_IMODE(status.st_mode)
        if mode & _OTHERS and (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            found.append(WideFile(path, mode, user in (0, status.st_uid)))
    return found


def restrict(file: WideFile) -> bool:
    """Take all rights from everybody but the owner; return False if this process may not."""
    try:
        file.path.chmod(file.mode & ~_OTHERS)
    except OSError:
        return False
    return True


def is_missing(path: Path) -> bool:
    """True if the folder of the file can be looked into, and the file is not there."""
    try:
        path.lstat()
    except FileNotFoundError:
        return path.parent.is_dir()
    except OSError:
        pass
    return False


def sync_folder(folder: Path) -> None:
    """Make new and changed names in a folder durable."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
