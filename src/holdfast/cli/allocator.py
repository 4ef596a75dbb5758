"""The C allocator of a process that serves for weeks: it returns memory to the system.

By default glibc gives every few threads an arena of their own, up to eight per core, and memory that one thread frees
stays in its arena. It also keeps freed arrays, in the hope of reusing them, because each one that is freed raises the
size from which arrays get pages of their own. Views are built in one thread and dropped in another, so the process
grows to several times of what it holds.
"""

from __future__ import annotations

import ctypes
import sys

# Parameters of mallopt(3).
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_ARENAS = 2  # one would make threads wait for each other
# A freed array of at least this size goes back to the system at once. Smaller ones are used for every search.
_LARGE_BYTES = 1024 * 1024
# The most unused memory at the end of the heap.
_SPARE_BYTES = 16 * 1024 * 1024


def keep_little_memory() -> None:
    """Limit what the allocator keeps. Before any thread starts; without glibc it changes nothing."""
    if not sys.platform.startswith("linux"):
        return
    try:
        change = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return
    change(_M_ARENA_MAX, _ARENAS)
    change(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    change(_M_TRIM_THRESHOLD, _SPARE_BYTES)
