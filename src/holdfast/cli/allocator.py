"""The C allocator of a process that serves for weeks: it returns memory to the system.

By default glibc gives every few threads an arena of their own, up to eight per core, and memory that is freed stays in
its arena. Views are built in one thread and dropped in another, so the process grows to a multiple of what it holds.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time

# Parameters of mallopt(3).
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_ARENAS = 2  # one would make threads wait for each other
# An array of at least this size has pages of its own, and goes back to the system when it is freed. By default the
# limit rises with each array that is freed. Smaller ones are used for every search.
_LARGE_BYTES = 1024 * 1024
# The most unused memory at the end of the heap.
_SPARE_BYTES = 16 * 1024 * 1024
# How often unused pages between used ones are returned; that takes milliseconds.
_TRIM_SECONDS = 20.0


def return_unused_memory() -> None:
    """Limit what the allocator keeps, from now on. Call it before threads start. Without glibc it changes nothing."""
    if not sys.platform.startswith("linux"):
        return
    try:
        library = ctypes.CDLL(None)
        change, trim = library.mallopt, library.malloc_trim
    except (OSError, AttributeError):  # another C library
        return
    change(_M_ARENA_MAX, _ARENAS)
    change(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    change(_M_TRIM_THRESHOLD, _SPARE_BYTES)

    def trim_for_ever() -> None:
        while True:
            time.sleep(_TRIM_SECONDS)
            trim(0)  # without the interpreter's lock

    threading.Thread(target=trim_for_ever, name="holdfast-trim", daemon=True).start()
