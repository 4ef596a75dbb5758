"""`holdfast.open`: from a path or an address to a memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any, TypedDict, Unpack

from holdfast.domain.access import LOCAL_OPERATOR, Actor, ActorKind
from holdfast.domain.location import checked_url, is_served, refuse_mistyped
from holdfast.domain.numbers import checked_seconds
from holdfast.domain.ranking import Weights
from holdfast.domain.results import Copied
from holdfast.domain.scope import Scope
from holdfast.domain.secret import Secret
from holdfast.errors import InvalidInput
from holdfast.library import AsyncMemory
from holdfast.ports import Clock, Embedder, Ids, Service
from holdfast.settings import Settings, read_settings
from holdfast.sync import Memory


class Options(TypedDict, total=False):
    """How to open a memory. Whatever is left out comes from the settings."""

    embedder: str | Embedder | None
    weights: Weights | None
    space: str | None
    actor: Actor
    clock: Clock | None
    new_ids: Ids | None
    settings: Settings | None
    work: bool
    key: str | None
    timeout_seconds: float | None
    sending: Callable[[int, int], None] | None


class Opening:
    """What `open_async` gives: await it for the memory, or use it in `async with`."""

    def __init__(self, location: str | os.PathLike[str], options: Options) -> None:
        # Taken out first: nothing that goes wrong later can show it.
        self._key = _key(options)
        self._location = checked_location(location)
        self._options = options
        _check_options(options)
        _check_fit(options, self._location, keyed=self._key is not None)
        self._memory: AsyncMemory | None = None

    async def opened(self) -> AsyncMemory:
        settings = self._options.get("settings") or read_settings()
        return await (self._remote(settings) if is_served(self._location) else self._embedded(settings))

    async def _remote(self, settings: Settings) -> AsyncMemory:
        """A memory behind a server. The key says who is calling; a user's calls are about that user by themselves."""
        from holdfast.client.remote import RemoteService

        key = self._key
        if key is None and settings.key is not None:
            key = Secret(settings.key.get_secret_value(), "HOLDFAST_KEY")
        seconds = self._options.get("timeout_seconds")
        patience = settings.timeout_seconds if seconds is None else seconds
        service = RemoteService(self._location, key, patience, self._options.get("sending"))
        try:
            caller = (await service.greeted()).actor
        except BaseException:
            await service.close()
            raise
        space = self._options.get("space") or caller.space or settings.space
        subject = caller.id if caller.kind in (ActorKind.USER, ActorKind.DEVICE) else None
        return AsyncMemory(service, actor=caller, space=space, subject=subject)

    async def _embedded(self, settings: Settings) -> AsyncMemory:
        service, actor, space = await self.store(settings)
        return AsyncMemory(service, actor=actor, space=space)

    async def store(self, settings: Settings | None = None) -> tuple[Service, Actor, str]:
        """The store itself, who is calling, and in which space: for whoever makes something else of it."""
        # The whole engine comes with it: whoever opens a memory behind a server does without.
        from holdfast.app import open_engine

        settings = settings or self._options.get("settings") or read_settings()
        options = self._options
        engine = await open_engine(
            self._location,
            settings,
            embedder=options.get("embedder"),
            weights=options.get("weights"),
            clock=options.get("clock"),
            new_ids=options.get("new_ids"),
            work=options.get("work", True),
        )
        return engine, options.get("actor", LOCAL_OPERATOR), options.get("space") or settings.space

    def __await__(self) -> Generator[Any, None, AsyncMemory]:
        return self.opened().__await__()

    async def __aenter__(self) -> AsyncMemory:
        self._memory = await self.opened()
        return self._memory

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._memory is not None:
            await self._memory.close()


def _key(options: Options) -> Secret | None:
    return None if options.get("key") is None else Secret(options.pop("key"))


def checked_location(location: object) -> str:
    if not isinstance(location, str | os.PathLike):
        raise InvalidInput("location", f"expected a path, a URL or :memory:, got {type(location).__name__}")
    path = os.fspath(location)
    try:
        usable = isinstance(path, str) and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        usable = False
    if not isinstance(path, str) or not usable:
        raise InvalidInput("location", "holds characters that no path can hold; remove them")
    refuse_mistyped(path)
    if is_served(path):
        return checked_url(path, "location")
    # Made absolute once: readers open the file later, and the process may have moved by then.
    return path if path == MEMORY or "://" in path else os.path.abspath(os.path.expanduser(path))


MEMORY = ":memory:"
_EMBEDDER = ("fingerprint", "dimensions", "local", "embed", "close")
# What each option must have or be.
_EXPECTED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "embedder": ("a name or an Embedder", lambda given: isinstance(given, str) or _has(given, _EMBEDDER)),
    "weights": ("Weights", lambda given: isinstance(given, Weights)),
    "space": ("a name", lambda given: isinstance(given, str)),
    "actor": ("an Actor", lambda given: isinstance(given, Actor)),
    "clock": ("a Clock", lambda given: _has(given, ("now",))),
    "new_ids": ("Ids", lambda given: _has(given, ("new",))),
    "settings": ("Settings", lambda given: isinstance(given, Settings)),
    "work": ("True or False", lambda given: isinstance(given, bool)),
    "timeout_seconds": ("a number of seconds", lambda given: checked_seconds(given, "timeout_seconds") > 0),
    "sending": ("a function of two numbers", callable),
}
# Where there is no server, nobody asks for these; and a server has its own of those.
_OF_CLIENTS = ("key", "timeout_seconds", "sending")
_OF_STORES = ("embedder", "weights", "clock", "new_ids", "work", "actor")
_NEVER_NONE = frozenset({"actor", "work"})


def _check_options(options: Options) -> None:
    for name, given in options.items():
        if name not in _EXPECTED:
            raise InvalidInput(name, f"is no option of open; there are {', '.join((*_EXPECTED, 'key'))}")
        expected, fits = _EXPECTED[name]
        if given is None and name not in _NEVER_NONE:
            continue
        if not fits(given):
            raise InvalidInput(name, f"expected {expected}, got {type(given).__name__}")
    if (space := options.get("space")) is not None:
        Scope(space=space)


def _check_fit(options: Options, location: str, *, keyed: bool) -> None:
    """What makes no sense for a server, or only there, is refused by name: nobody should believe that it counts."""
    given = {name for name, value in options.items() if value is not None} | ({"key"} if keyed else set())
    if is_served(location):
        for name in _OF_STORES:
            if name in given:
                raise InvalidInput(name, "is the server's to decide; leave it out when you open an http:// address")
        return
    for name in _OF_CLIENTS:
        if name in given:
            raise InvalidInput(name, "is for a memory behind a server, such as http://127.0.0.1:8010; leave it out")


def _has(given: object, names: tuple[str, ...]) -> bool:
    return all(hasattr(given, name) for name in names)


def open_async(location: str | os.PathLike[str] = "memory.db", **options: Unpack[Options]) -> Opening:
    """Open or create a memory.

    `location` is a path, ":memory:", or a "postgresql://" URL. `embedder` is "static" (the default: no key, no
    network), "onnx:<directory>", "openai:<model>", or one of your own. `weights` tune the ranking. `space` is the
    tenant that calls work in, `actor` who is calling. `work=False` leaves background work to other processes.

    Or it is the "http://" address of a server, and `key` a user's key or the operator's token. `timeout_seconds`
    bounds each call. `sending` hears, as a request goes out, how many bytes are sent, and of how many; it is called
    from the thread that sends. What the server decides itself, such as the embedder, is refused.
    """
    return Opening(location, options)


def open(  # noqa: A001 - like codecs.open: always called as holdfast.open
    location: str | os.PathLike[str] = "memory.db", **options: Unpack[Options]
) -> Memory:
    """`open_async` for code that is not asynchronous."""
    return Memory(Opening(location, options).opened)


def copy(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    replace: bool = False,
    tell: Callable[[int, int], None] | None = None,
    settings: Settings | None = None,
) -> Copied:
    """Copy a whole store into another, of either engine, and prove that it arrived.

    A copy that was stopped goes on where it was, as long as the source has not changed. A target that holds something
    is refused, unless `replace` says that it is to be removed. `tell` hears of rows done, and of all.
    """
    from holdfast.app import copy_store

    return copy_store(
        checked_location(source),
        checked_location(target),
        settings or read_settings(),
        replace=replace,
        tell=tell or (lambda done, total: None),
    )
