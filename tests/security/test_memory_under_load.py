"""A real service under mixed load stays under the bound of memory that its guide states, and shows its cache."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from bench.gateway import soak

SECONDS = float(os.environ.get("HOLDFAST_LOAD_SECONDS", "0.5"))
# Four times as many arenas as the allocator may have would be used without the limit.
_THREADS = """
import ctypes, sys, threading
from holdfast.cli.allocator import return_unused_memory

return_unused_memory()
together = threading.Barrier(8)

def allocate():
    together.wait()
    kept = [bytearray(10_000) for _ in range(500)]
    together.wait()

threads = [threading.Thread(target=allocate) for _ in range(8)]
[each.start() for each in threads]
[each.join() for each in threads]
library = ctypes.CDLL(None)
library.fdopen.restype = ctypes.c_void_p
out = ctypes.c_void_p(library.fdopen(1, b"w"))
library.malloc_info(0, out)
library.fflush(out)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_stays_under_its_bound_and_the_cache_under_its_limit() -> None:
    arguments = f"--seconds {SECONDS} --rate 60 --users 5 --records 400 --cache-mib 0.5 --every 0.5".split()
    outcome = soak.run(soak.parser().parse_args(arguments))
    assert not outcome.load.tally.unexpected
    assert outcome.held, f"{outcome.peak:.0f} MiB are more than {outcome.bound:.0f}"
    last = outcome.samples[-1]
    assert last.evicted > 0
    assert 0 < max(each.cache for each in outcome.samples) <= 0.5
    assert last.files < 100


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="an allocator of Linux")
def test_threads_share_two_arenas_of_the_allocator() -> None:
    ran = subprocess.run([sys.executable, "-c", _THREADS], capture_output=True, text=True, check=True, timeout=60)
    assert 1 <= ran.stdout.count("<heap nr=") <= 2
