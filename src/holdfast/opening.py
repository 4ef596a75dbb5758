"""`holdfast.open`, `open_async` and `copy`: open a memory by its path or URL, and copy stores."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any, TypedDict, Unpack

from holdfast.domain.access import LOCAL_OPERATOR, Actor, ActorKind
from holdfast.domain.checks import checked_seconds
from holdfast.domain.location import checked_url, is_server_url, refuse_mistyped_server
from holdfast.domain.ranking import Weights
from holdfast.domain.results import Copied
from holdfast.domain.scope import Scope
from holdfast.domain.secret import Secret
from holdfast.domain.tokens import Tokenizer, is_tokenizer
from holdfast.errors import InvalidInput
from holdfast.library import AsyncMemory
from holdfast.ports import Clock, Embedder, IdGenerator, Service
from holdfast.settings import Settings, read_settings
from holdfast.sync import Memory


class Options(TypedDict, total=False):
    """The options of opening a memory. Omitted ones come from the settings."""

    embedder: str | Embedder | None
    weights: Weights | None
    space: str | None
    actor: Actor
    clock: Clock | None
    new_ids: IdGenerator | None
    tokenizer: Tokenizer | None
    settings: Settings | None
    work: bool
    key: str | None
    timeout_seconds: float | None
    sending: Callable[[int, int], None] | None


class Opening:
    """The result of `open_async`: await it for the memory, or use it in `async with`."""

    def __init__(self, location: str | os.PathLike[str], options: Options) -> None:
        # Removed from the options first, so that no later error can show it.
        self._key = _take_key(options)
        self._location = validate_location(location)
        self._options = options
        _check_options(options)
        _check_fit(options, self._location, keyed=self._key is not None)
        self._memory: AsyncMemory | None = None

    async def open_memory(self) -> AsyncMemory:
        service, actor, space = await self.open_service()
        # A user of a server acts for one subject alone.
        remote_user = is_server_url(self._location) and actor.kind in (ActorKind.USER, ActorKind.DEVICE)
        return AsyncMemory(service, actor=actor, space=space, subject=actor.id if remote_user else None)

    async def open_service(self) -> tuple[Service, Actor, str]:
        """Open the store or the server; return its service, the actor and the space."""
        settings = self._options.get("settings") or read_settings()
        return await (self._open_remote(settings) if is_server_url(self._location) else self._open_store(settings))

    async def _open_remote(self, settings: Settings) -> tuple[Service, Actor, str]:
        """Connect to a server. The key identifies the caller."""
        from holdfast.client.remote import RemoteService

        key = self._key
        if key is None and settings.key is not None:
            key = Secret(settings.key.get_secret_value(), "HOLDFAST_KEY")
        seconds = self._options.get("timeout_seconds")
        patience = settings.timeout_seconds if seconds is None else seconds
        service = RemoteService(self._location, key, patience, self._options.get("sending"))
        try:
            caller = (await service.fetch_greeting()).actor
        except BaseException:
            await service.close()
            raise
        return service, caller, self._options.get("space") or caller.space or settings.space

    async def _open_store(self, settings: Settings) -> tuple[Service, Actor, str]:
        # Imported here because it loads the whole engine, which a client of a server does not need.
        from holdfast.app import open_engine

        options = self._options
        engine = await open_engine(
            self._location,
            settings,
            embedder=options.get("embedder"),
            weights=options.get("weights"),
            clock=options.get("clock"),
            new_ids=options.get("new_ids"),
            tokenizer=options.get("tokenizer"),
            work=options.get("work", True),
        )
        return engine, options.get("actor", LOCAL_OPERATOR), options.get("space") or settings.space

    def __await__(self) -> Generator[Any, None, AsyncMemory]:
        return self.open_memory().__await__()

    async def __aenter__(self) -> AsyncMemory:
        self._memory = await self.open_memory()
        return self._memory

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._memory is not None:
            await self._memory.close()


def _take_key(options: Options) -> Secret | None:
    key = options.pop("key", None)
    return None if key is None else Secret(key)


def validate_location(location: object) -> str:
    if not isinstance(location, str | os.PathLike):
        raise InvalidInput("location", f"expected a path, a URL or :memory:, got {type(location).__name__}")
    path = os.fspath(location)
    try:
        usable = isinstance(path, str) and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        usable = False
    if not isinstance(path, str) or not usable:
        raise InvalidInput("location", "holds characters that are not allowed in a path; remove them")
    refuse_mistyped_server(path)
    if is_server_url(path):
        return checked_url(path, "location")
    # Made absolute now: readers open the file later, and the working directory may change.
    return path if path == MEMORY or "://" in path else os.path.abspath(os.path.expanduser(path))


MEMORY = ":memory:"
_EMBEDDER = ("fingerprint", "dimensions", "local", "embed", "close")
# The expected type of each option, and its check.
_EXPECTED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "embedder": ("a name or an Embedder", lambda given: isinstance(given, str) or _has_attributes(given, _EMBEDDER)),
    "weights": ("Weights", lambda given: isinstance(given, Weights)),
    "space": ("a name", lambda given: isinstance(given, str)),
    "actor": ("an Actor", lambda given: isinstance(given, Actor)),
    "clock": ("a Clock", lambda given: _has_attributes(given, ("now",))),
    "new_ids": ("an IdGenerator", lambda given: _has_attributes(given, ("new",))),
    "tokenizer": ("a function of a text, or an object with encode", is_tokenizer),
    "settings": ("Settings", lambda given: isinstance(given, Settings)),
    "work": ("True or False", lambda given: isinstance(given, bool)),
    "timeout_seconds": ("a number of seconds", lambda given: checked_seconds(given, "timeout_seconds") > 0),
    "sending": ("a function of two numbers", callable),
}
# Client-only options; store-only options.
_OF_CLIENTS = ("key", "timeout_seconds", "sending")
_OF_STORES = ("embedder", "weights", "clock", "new_ids", "tokenizer", "work", "actor")
_NEVER_NONE = frozenset({"actor", "work"})


def _check_options(options: Options) -> None:
    for name, value in options.items():
        if name not in _EXPECTED:
            raise InvalidInput(name, f"is not an option of open; use one of {', '.join((*_EXPECTED, 'key'))}")
        expected, fits = _EXPECTED[name]
        if value is None and name not in _NEVER_NONE:
            continue
        if not fits(value):
            raise InvalidInput(name, f"expected {expected}, got {type(value).__name__}")
    if (space := options.get("space")) is not None:
        Scope(space=space)


def _check_fit(options: Options, location: str, *, keyed: bool) -> None:
    """Refuse store-only options for a server and client-only options for a store, rather than ignore them."""
    names = {name for name, value in options.items() if value is not None} | ({"key"} if keyed else set())
    if is_server_url(location):
        for name in _OF_STORES:
            if name in names:
                raise InvalidInput(name, "is decided by the server; leave it out when you open an http:// address")
        return
    for name in _OF_CLIENTS:
        if name in names:
            raise InvalidInput(name, "is only for a server's memory, such as http://127.0.0.1:8010; leave it out")


def _has_attributes(value: object, names: tuple[str, ...]) -> bool:
    return all(hasattr(value, name) for name in names)


def open_async(location: str | os.PathLike[str] = "memory.db", **options: Unpack[Options]) -> Opening:
    """Open or create a memory; return an `AsyncMemory` when awaited or used in `async with`.

    `location` is a path, ":memory:", or a "postgresql://" URL. `embedder` is "static" (the default: no key, no
    network), "onnx:<directory>", "openai:<model>", or an `Embedder` of your own. `weights` tune the ranking. `space` is
    the tenant that calls work in, `actor` the caller. `tokenizer` counts the tokens of `recall`'s budget: a function of
    a text, or an object with `encode`; without one, the embedder's own counts. `work=False` leaves background work to
    other processes.

    For a server, `location` is its "http://" address and `key` a user's key or the operator's token. `timeout_seconds`
    limits each call. `sending(sent, total)` reports the bytes of a request as they are sent, from the sending thread.
    Options that the server decides, such as the embedder, are refused.
    """
    return Opening(location, options)


def open(  # noqa: A001 - like codecs.open: always called as holdfast.open
    location: str | os.PathLike[str] = "memory.db", **options: Unpack[Options]
) -> Memory:
    """Open or create a memory; return a blocking `Memory`.

    `location` is a path, ":memory:", a "postgresql://" URL, or the "http://" address of a server. The options are those
    of `open_async`. Close the memory with `close`, or use it in `with`.
    """
    return Memory(Opening(location, options).open_memory)


def copy(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    replace: bool = False,
    tell: Callable[[int, int], None] | None = None,
    settings: Settings | None = None,
) -> Copied:
    """Copy a whole store into another, SQLite or PostgreSQL, and verify the copy.

    An interrupted copy resumes if the source has not changed. A target that is not empty is refused, unless `replace`
    is true, which removes its contents. `tell(done, total)` reports progress in rows.
    """
    from holdfast.app import copy_store

    return copy_store(
        validate_location(source),
        validate_location(target),
        settings or read_settings(),
        replace=replace,
        tell=tell or (lambda done, total: None),
    )
