"""`holdfast.open`: from a path to a memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any, TypedDict, Unpack

from holdfast.app import copy_store, open_engine
from holdfast.domain.access import LOCAL_OPERATOR, Actor
from holdfast.domain.location import refuse_mistyped
from holdfast.domain.ranking import Weights
from holdfast.domain.results import Copied
from holdfast.domain.scope import Scope
from holdfast.errors import InvalidInput
from holdfast.library import AsyncMemory
from holdfast.ports import Clock, Embedder, Ids
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


class Opening:
    """What `open_async` gives: await it for the memory, or use it in `async with`."""

    def __init__(self, location: str | os.PathLike[str], options: Options) -> None:
        self._location = _checked_location(location)
        self._options = options
        _check_options(options)
        self._memory: AsyncMemory | None = None

    async def opened(self) -> AsyncMemory:
        options = self._options
        settings = options.get("settings") or read_settings()
        engine = await open_engine(
            self._location,
            settings,
            embedder=options.get("embedder"),
            weights=options.get("weights"),
            clock=options.get("clock"),
            new_ids=options.get("new_ids"),
            work=options.get("work", True),
        )
        space = options.get("space") or settings.space
        return AsyncMemory(engine, actor=options.get("actor", LOCAL_OPERATOR), space=space)

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


def _checked_location(location: object) -> str:
    if not isinstance(location, str | os.PathLike):
        raise InvalidInput(
            "location", f"expected a path, a postgresql:// URL or :memory:, got {type(location).__name__}"
        )
    path = os.fspath(location)
    try:
        usable = isinstance(path, str) and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        usable = False
    if not isinstance(path, str) or not usable:
        raise InvalidInput("location", "holds characters that no path can hold; remove them")
    refuse_mistyped(path)
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
}
_NEVER_NONE = frozenset({"actor", "work"})


def _check_options(options: Options) -> None:
    for name, given in options.items():
        if name not in _EXPECTED:
            raise InvalidInput(name, f"is no option of open; there are {', '.join(_EXPECTED)}")
        expected, fits = _EXPECTED[name]
        if not fits(given) and (given is not None or name in _NEVER_NONE):
            raise InvalidInput(name, f"expected {expected}, got {type(given).__name__}")
    if (space := options.get("space")) is not None:
        Scope(space=space)


def _has(given: object, names: tuple[str, ...]) -> bool:
    return all(hasattr(given, name) for name in names)


def open_async(location: str | os.PathLike[str] = "memory.db", **options: Unpack[Options]) -> Opening:
    """Open or create a memory.

    `location` is a path, ":memory:", or a "postgresql://" URL. `embedder` is "static" (the default: no key, no
    network), "onnx:<directory>", "openai:<model>", or one of your own. `weights` tune the ranking. `space` is the
    tenant that calls work in, `actor` who is calling. `work=False` leaves background work to other processes.
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
    return copy_store(
        _checked_location(source),
        _checked_location(target),
        settings or read_settings(),
        replace=replace,
        tell=tell or (lambda done, total: None),
    )
