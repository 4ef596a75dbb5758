"""The files of a store in a SQLite file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.stores.sqlite.connection import MEMORY

# Not the operator token: once others could read it, a narrower mode does not make it secret again.
_BESIDE = ("-wal", "-shm", "-journal")


def store_files(location: str) -> Iterator[Path]:
    """Yield the paths of the files that a store may have: the store first, then what takes its mode from it."""
    if location == MEMORY:
        return
    real = os.path.realpath(location)  # SQLite puts its files beside the file that a link names
    yield Path(location)
    yield from (Path(f"{real}{suffix}") for suffix in _BESIDE)
    graphs = Path(f"{location}-nearest")
    yield graphs
    yield from sorted(graphs.glob("*"))
