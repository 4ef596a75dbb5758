"""Opens the memory that the options name. Only commands that add data create a store; a server manages its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

import holdfast
from holdfast.cli.formatting import format_count
from holdfast.cli.options import StoreOptions
from holdfast.cli.suggestions import suggest_command
from holdfast.domain.location import checked_url, is_server_url, redact_location, refuse_mistyped_server
from holdfast.domain.scope import EVERYWHERE
from holdfast.errors import StoreUnusable
from holdfast.settings import Settings, read_settings

if TYPE_CHECKING:
    from holdfast.domain.results import StoreExamination
    from holdfast.inputs import ScopeKwargs

MEMORY = ":memory:"
# Sending a large file over a slow connection, and parsing it, takes longer than any other call.
_UPLOAD_SECONDS = 600.0
log = logging.getLogger("holdfast.cli")


class OpenMemory:
    """One memory that stays open between the commands of a shell."""

    def __init__(self) -> None:
        self._key: object = None
        self._memory: holdfast.Memory | None = None

    def get(self, path: str, chosen: StoreOptions) -> holdfast.Memory:
        """Return the memory if it is this one and its file is still the same; else close it and open this one."""
        if self._memory is None or self._key != (path, chosen.embedder, _file_identity(path)):
            self.close()
            self._memory = _open_memory(path, chosen)
            self._key = (path, chosen.embedder, _file_identity(path))
        return self._memory

    def close(self) -> None:
        memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()


_stays_open: ContextVar[OpenMemory | None] = ContextVar("stays_open", default=None)


@contextmanager
def keep_memory_open() -> Iterator[None]:
    """Let the commands in this block share one open memory."""
    kept = OpenMemory()
    before = _stays_open.set(kept)
    try:
        yield
    finally:
        _stays_open.reset(before)
        kept.close()


def memory_stays_open() -> bool:
    return _stays_open.get() is not None


def close_kept_memory() -> None:
    """Close the memory that stays open, before its store is replaced."""
    if kept := _stays_open.get():
        kept.close()


def location(chosen: StoreOptions) -> str:
    place = chosen.store or read_settings().store
    refuse_mistyped_server(place)
    return checked_url(place, "--store") if is_server_url(place) else place


def examine_location(chosen: StoreOptions) -> StoreExamination | None:
    """Inspect the store's location without opening it; None if nothing is there."""
    if is_server_url(location(chosen)):
        raise StoreUnusable(f"{location(chosen)} is a server, which manages its own store; run this where the store is")
    # Imports the whole engine, which a client of a server does not need.
    from holdfast.app import examine_store

    return examine_store(location(chosen), read_settings())


def require_local_store(chosen: StoreOptions, *, create: bool = False) -> str:
    """The location of a store that a command opens directly. A server is refused: it manages its own."""
    examine_location(chosen)
    path = location(chosen)
    _refuse_memory(path)
    if not create:
        _require_store(path, chosen)
    return path


def open_memory(
    chosen: StoreOptions, *, create: bool = False, sending: Callable[[int, int], None] | None = None
) -> AbstractContextManager[holdfast.Memory]:
    """Open the memory for use in `with`. Background jobs do not run: a command that needs them calls `drain`.

    Commands that upload pass `sending`, a callback for the bytes sent to a server. They get a longer timeout, unless
    a setting fixes it.
    """
    path = location(chosen)
    _refuse_memory(path)
    if not (create or is_server_url(path)):
        _require_store(path, chosen)
    kept = _stays_open.get()
    if kept is None or sending is not None:
        return _open_memory(path, chosen, sending)
    return nullcontext(kept.get(path, chosen))


def _file_identity(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:  # a server, or a database
        return None
    return found.st_dev, found.st_ino


def _open_memory(path: str, chosen: StoreOptions, sending: Callable[[int, int], None] | None = None) -> holdfast.Memory:
    if not is_server_url(path):
        return holdfast.open(path, embedder=chosen.embedder, settings=read_settings(), work=False)
    settings = server_settings(path)
    uploads = sending is not None and "timeout_seconds" not in settings.model_fields_set
    return holdfast.open(
        path,
        embedder=chosen.embedder,
        settings=settings,
        sending=sending,
        timeout_seconds=_UPLOAD_SECONDS if uploads else None,
    )


def server_settings(url: str) -> Settings:
    """Return the settings for calls to a server. Without a configured key, a server on this machine that runs as this
    account gets the operator token."""
    settings = read_settings()
    if settings.key is not None:
        return settings
    from holdfast.gateway.operator_token import find_local_token

    token = find_local_token(url, settings)
    return settings if token is None else settings.model_copy(update={"key": token})


def _refuse_memory(path: str) -> None:
    if path == MEMORY:
        raise StoreUnusable(":memory: is gone when the command ends; give the path of a file with --store")


def _require_store(path: str, chosen: StoreOptions) -> None:
    if not store_exists(path):
        init = suggest_command(chosen, "store init")
        raise StoreUnusable(
            f"there is no store at {redact_location(path)}; name another with --store, or create it with `{init}`"
        )


def store_exists(path: str) -> bool:
    if "://" not in path:
        return Path(path).exists()  # if it is no store, opening it fails
    from holdfast.app import examine_store

    found = examine_store(path, read_settings())
    return found is not None and bool(found.schema)


def widest_scope(chosen: StoreOptions) -> ScopeKwargs:
    """The widest scope: the whole store, or on a server everything the key can reach."""
    return {} if is_server_url(location(chosen)) else {"space": EVERYWHERE}


def run_due_jobs(memory: holdfast.Memory, chosen: StoreOptions) -> None:
    """Run the due background jobs; a server runs its own."""
    if not is_server_url(location(chosen)):
        memory.drain()


def warn_missing_vectors(memory: holdfast.Memory, where: ScopeKwargs) -> None:
    """Warn about missing vectors: search does not fail without them, but finds less."""
    if waiting := memory.stats(**where).without_vectors:
        log.warning(
            "%s can be found by words only: vectors by this embedder are missing; `holdfast flush` makes them",
            format_count(waiting, "record"),
        )
