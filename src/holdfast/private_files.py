"""Creation of files and folders that only their owner may read, whatever the umask.

Every file that holds memory, a key or a token is created here.
"""

from __future__ import annotations

import os
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file; a new one is private. The `opener` of `open(path, "wb", opener=open_private)`."""
    return os.open(path, flags | getattr(os, "O_CLOEXEC", 0), FILE_MODE)


def make_private_folder(folder: Path) -> None:
    """Create a private folder if there is none. Missing parents are private too."""
    folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
