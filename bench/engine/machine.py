"""The machine: memory, disk, cold caches, and a description for the record."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from datetime import UTC, datetime
from pathlib import Path


def resident_bytes() -> int:
    """The current resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def disk_bytes(directory: Path) -> int:
    """The size of all files below, logs included."""
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())


def forget_pages(directory: Path) -> None:
    """Write dirty pages, then ask the system to drop its cache of the files below."""
    for file in directory.rglob("*"):
        if file.is_file():
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


def described() -> dict[str, str]:
    return {
        "date": f"{datetime.now(UTC):%d %B %Y}",
        "commit": _commit(),
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GB",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        # Processes that wanted a core when the run began: the run should be the only one.
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    return done.stdout.strip() or "unknown"
