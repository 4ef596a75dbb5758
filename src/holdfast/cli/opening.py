"""From options to an open memory. Only what writes something new may create a store."""

from __future__ import annotations

import logging
from pathlib import Path

import holdfast
from holdfast.cli.options import StoreOptions
from holdfast.cli.words import counted
from holdfast.errors import StoreUnusable
from holdfast.inputs import Where
from holdfast.settings import read_settings

MEMORY = ":memory:"
log = logging.getLogger("holdfast.cli")


def location(chosen: StoreOptions) -> str:
    return chosen.store or read_settings().store


def opened(chosen: StoreOptions, *, create: bool = False) -> holdfast.Memory:
    """The memory, to be used in `with`. Background work is left alone: a command that wants it done calls `drain`."""
    path = location(chosen)
    if path == MEMORY:
        raise StoreUnusable(":memory: is gone when the command ends; give the path of a file with --store")
    if not create and "://" not in path and not Path(path).exists():
        raise StoreUnusable(
            f"there is no store at {path}; name another with --store, or create it with `holdfast store init`"
        )
    return holdfast.open(path, embedder=chosen.embedder, settings=read_settings(), work=False)


def warn_of_waiting(memory: holdfast.Memory, where: Where) -> None:
    """Search does not fail where vectors are missing; nobody should wonder why it finds less."""
    if waiting := memory.stats(**where).pending_vectors:
        log.warning(
            "%s can be found by words only, for want of vectors by this embedder; `holdfast store flush` makes them",
            counted(waiting, "record"),
        )
