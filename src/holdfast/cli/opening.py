"""From options to an open memory. Only what writes something new may create a store; a server looks after its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import holdfast
from holdfast.cli.advice import advised
from holdfast.cli.options import StoreOptions
from holdfast.cli.words import counted
from holdfast.domain.location import checked_url, is_served, refuse_mistyped, shown
from holdfast.domain.scope import EVERYWHERE
from holdfast.errors import StoreUnusable
from holdfast.settings import read_settings

if TYPE_CHECKING:
    from holdfast.domain.results import Examined
    from holdfast.inputs import Where

MEMORY = ":memory:"
# A large file on a slow line, and a server that reads it, take longer than any other call.
_UPLOAD_SECONDS = 600.0
log = logging.getLogger("holdfast.cli")


def location(chosen: StoreOptions) -> str:
    place = chosen.store or read_settings().store
    refuse_mistyped(place)
    return checked_url(place, "--store") if is_served(place) else place


def examined(chosen: StoreOptions) -> Examined | None:
    """What is there, before it is opened; None if nothing is."""
    if is_served(location(chosen)):
        raise StoreUnusable(
            f"{location(chosen)} is a server, which looks after its store itself; run this where the store is"
        )
    # The whole engine comes with it: whoever talks to a server does without.
    from holdfast.app import examine_store

    return examine_store(location(chosen), read_settings())


def own(chosen: StoreOptions, *, create: bool = False) -> str:
    """Where the store is that a command looks after itself. A server is refused: it looks after its own."""
    examined(chosen)
    path = location(chosen)
    _refuse_memory(path)
    if not create:
        _require(path, chosen)
    return path


def opened(
    chosen: StoreOptions, *, create: bool = False, sending: Callable[[int, int], None] | None = None
) -> holdfast.Memory:
    """The memory, to be used in `with`. Background work is left alone: a command that wants it done calls `drain`.

    Whoever uploads gives `sending`, which hears of the bytes on their way to a server; and has more time for it, unless
    a setting says how much.
    """
    path = location(chosen)
    _refuse_memory(path)
    if is_served(path):
        settings = read_settings()
        uploads = sending is not None and "timeout_seconds" not in settings.model_fields_set
        return holdfast.open(
            path,
            embedder=chosen.embedder,
            settings=settings,
            sending=sending,
            timeout_seconds=_UPLOAD_SECONDS if uploads else None,
        )
    if not create:
        _require(path, chosen)
    return holdfast.open(path, embedder=chosen.embedder, settings=read_settings(), work=False)


def _refuse_memory(path: str) -> None:
    if path == MEMORY:
        raise StoreUnusable(":memory: is gone when the command ends; give the path of a file with --store")


def _require(path: str, chosen: StoreOptions) -> None:
    if not is_there(path):
        init = advised(chosen, "store init")
        raise StoreUnusable(
            f"there is no store at {shown(path)}; name another with --store, or create it with `{init}`"
        )


def is_there(path: str) -> bool:
    if "://" not in path:
        return Path(path).exists()  # whatever it is: opening it tells
    from holdfast.app import examine_store

    found = examine_store(path, read_settings())
    return found is not None and bool(found.schema)


def whole(chosen: StoreOptions) -> Where:
    """All that there is to look at; of a server's store, what the key reaches."""
    return {} if is_served(location(chosen)) else {"space": EVERYWHERE}


def do_what_is_due(memory: holdfast.Memory, chosen: StoreOptions) -> None:
    """Background work waits for somebody to do it; a server does its own."""
    if not is_served(location(chosen)):
        memory.drain()


def warn_of_waiting(memory: holdfast.Memory, where: Where) -> None:
    """Search does not fail where vectors are missing; nobody should wonder why it finds less."""
    if waiting := memory.stats(**where).without_vectors:
        log.warning(
            "%s can be found by words only, for want of vectors by this embedder; `holdfast store flush` makes them",
            counted(waiting, "record"),
        )
