"""`holdfast.open`, `copy`, `backup` and `restore`: open a memory by its path or URL, and copy whole stores."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import update_wrapper
from inspect import Parameter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypedDict, TypeVar, Unpack

from holdfast.domain.access import LOCAL_OPERATOR, Actor, ActorKind
from holdfast.domain.backups import BackupResult, RestoreResult, Retention
from holdfast.domain.call_errors import call_again, explain_arguments, hint_for
from holdfast.domain.checks import checked_seconds
from holdfast.domain.custom_embedder import check_embedder
from holdfast.domain.location import checked_url, is_server_url, refuse_mistyped_server
from holdfast.domain.ranking import Weights
from holdfast.domain.results import Copied
from holdfast.domain.scope import Scope
from holdfast.domain.secret import Secret
from holdfast.domain.tokens import Tokenizer, is_tokenizer
from holdfast.errors import InvalidCall, InvalidInput, MissingAwait, StoreUnusable
from holdfast.library import AsyncMemory
from holdfast.ports import Clock, EmbedderLike, IdGenerator, Service
from holdfast.settings import Settings, read_settings
from holdfast.sync import Memory

P = ParamSpec("P")
T = TypeVar("T")


class Options(TypedDict, total=False):
    """The types of the options of opening a memory; `OPTIONS` says what they mean. Others come from the settings."""

    embedder: EmbedderLike | None
    weights: Weights | None
    space: str | None
    actor: Actor
    clock: Clock | None
    new_ids: IdGenerator | None
    tokenizer: Tokenizer | None
    settings: Settings | None
    work: bool
    key: str | Secret | None
    timeout_seconds: float | None
    sending: Callable[[int, int], None] | None


_NOT_OPEN = (
    "was not awaited; write: memory = await holdfast.open_async(...), or: async with holdfast.open_async(...) as memory"
)


class Opening:
    """The result of `open_async`: await it for the memory, or use it in `async with`."""

    if not TYPE_CHECKING:  # uses of somebody who forgot to await

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__} has no {name!r}")
            raise MissingAwait("open_async", _NOT_OPEN)

        def __enter__(self) -> NoReturn:
            raise MissingAwait("open_async", _NOT_OPEN)

        def __exit__(self, *error: object) -> None:
            """Do nothing: it was never entered."""

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
    return key if key is None or isinstance(key, Secret) else Secret(key)


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


class Place(Enum):
    """The places that an option is for. At others it is refused, rather than ignored."""

    STORE = "a store"
    SERVER = "a server"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Option:
    """An option of opening a memory: its values and its meaning. Unless `required`, None is as omitted."""

    place: Place
    expected: str
    fits: Callable[[Any], bool]
    help: str
    default: Any = None
    required: bool = False


OPTIONS: Mapping[str, Option] = {
    "embedder": Option(
        Place.STORE,
        "an embedder",
        check_embedder,
        "Makes vectors: static (the default: no key, no network), onnx:<directory>, openai:<model>, or one of your own:"
        " a function that returns a vector for each of a list of texts, an object with embed or encode, embeddings of"
        " LangChain, or an Embedder.",
    ),
    "weights": Option(
        Place.STORE, "Weights", lambda value: isinstance(value, Weights), "The weights of the parts of a score."
    ),
    "space": Option(Place.BOTH, "a name", lambda value: isinstance(value, str), "The space that calls work in."),
    "actor": Option(
        Place.STORE,
        "an Actor",
        lambda value: isinstance(value, Actor),
        "The caller, by default the operator of this machine.",
        LOCAL_OPERATOR,
        required=True,
    ),
    "clock": Option(Place.STORE, "a Clock", lambda value: _has_attributes(value, ("now",)), "The clock, for tests."),
    "new_ids": Option(
        Place.STORE, "an IdGenerator", lambda value: _has_attributes(value, ("new",)), "The id generator, for tests."
    ),
    "tokenizer": Option(
        Place.STORE,
        "a function of a text, or an object with encode",
        is_tokenizer,
        "Counts the tokens of recall's budget; without one, the embedder's own counts.",
    ),
    "settings": Option(
        Place.BOTH, "Settings", lambda value: isinstance(value, Settings), "Settings to use instead of the environment."
    ),
    "work": Option(
        Place.STORE,
        "True or False",
        lambda value: isinstance(value, bool),
        "False leaves background work to other processes.",
        default=True,
        required=True,
    ),
    "key": Option(Place.SERVER, "a key", lambda value: True, "A user's key, or the operator's token."),
    "timeout_seconds": Option(
        Place.SERVER,
        "a number of seconds",
        lambda value: checked_seconds(value, "timeout_seconds") > 0,
        "The timeout of a whole call.",
    ),
    "sending": Option(
        Place.SERVER,
        "a function of two numbers",
        callable,
        "sending(done, total) reports the bytes of a request as they are sent, from the sending thread.",
    ),
}


def _check_options(options: Options) -> None:
    for name, value in options.items():
        if (option := OPTIONS.get(name)) is None:
            raise InvalidCall(name, f"is not an option of open; {hint_for(name, ['location', *OPTIONS])}")
        if value is None and not option.required:
            continue
        if not option.fits(value):
            raise InvalidInput(name, f"expected {option.expected}, got {type(value).__name__}")
    if (space := options.get("space")) is not None:
        Scope(space=space)


def _check_fit(options: Options, location: str, *, keyed: bool) -> None:
    """Refuse store-only options for a server and server-only options for a store, rather than ignore them."""
    names = [*(name for name, value in options.items() if value is not None), *(["key"] if keyed else [])]
    remote = is_server_url(location)
    for name in names:
        if remote and OPTIONS[name].place is Place.STORE:
            raise InvalidInput(name, "is decided by the server; leave it out when you open an http:// address")
        if not remote and OPTIONS[name].place is Place.SERVER:
            raise InvalidInput(name, "is only for a server's memory, such as http://127.0.0.1:8010; leave it out")


def _has_attributes(value: object, names: tuple[str, ...]) -> bool:
    return all(hasattr(value, name) for name in names)


def opening_call(function: Callable[P, T]) -> Callable[P, T]:
    """Show `**options` as parameters, with their meaning; explain wrong ones; hide the key from every later error."""

    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if isinstance(kwargs.get("key"), str):
            kwargs["key"] = Secret(str(kwargs["key"]))
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            return call_again(call, args, kwargs, error)

    update_wrapper(call, function)
    signature = inspect.signature(function)
    shown = [each for each in signature.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
    shown += [
        Parameter(name, Parameter.KEYWORD_ONLY, default=option.default, annotation=_type_of(name))
        for name, option in OPTIONS.items()
    ]
    call.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    call.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n{_options_help()}"
    return call


def _options_help() -> str:
    lines = []
    for place, title in ((Place.BOTH, "Options:"), (Place.STORE, "Of a store:"), (Place.SERVER, "Of a server:")):
        lines += [title, *(f"    {name}: {each.help}" for name, each in OPTIONS.items() if each.place is place)]
    return "\n".join(lines)


def _type_of(name: str) -> str:
    # As written, like the annotations of every other function of ours.
    return str(Options.__annotations__[name].__forward_arg__)


@opening_call
def open_async(location: str | os.PathLike[str] = "memory.db", **options: Unpack[Options]) -> Opening:
    """Open or create a memory; return an `AsyncMemory` when awaited or used in `async with`.

    `location` is a path, ":memory:", a "postgresql://" URL, or the "http://" address of a server. An option that the
    other kind of place decides is refused: a server has its own embedder.
    """
    return Opening(location, options)


@opening_call
def open(  # noqa: A001 - like codecs.open: always called as holdfast.open
    location: str | os.PathLike[str] = "memory.db", **options: Unpack[Options]
) -> Memory:
    """Open or create a memory; return a blocking `Memory`. Close it with `close`, or use it in `with`.

    `location` is a path, ":memory:", a "postgresql://" URL, or the "http://" address of a server. An option that the
    other kind of place decides is refused: a server has its own embedder.
    """
    return Memory(Opening(location, options).open_memory)


@explain_arguments
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
        tell=tell or _say_nothing,
    )


@explain_arguments
def backup(
    store: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    keep: int | None = None,
    keep_days: int | None = None,
    tell: Callable[[int, int], None] | None = None,
    settings: Settings | None = None,
) -> BackupResult:
    """Back up a whole store, SQLite or PostgreSQL, into a new file in a folder, and verify the file.

    Others may write meanwhile: the backup is the store at one moment. `keep` is how many backups of this store stay in
    the folder, `keep_days` for how many days; older ones are removed, never the newest, and no other file.
    `tell(done, total)` reports progress in rows.
    """
    from holdfast.app import backup_store

    retention = Retention(keep, keep_days)
    place = Path(validate_location(folder))
    return backup_store(_local_place(store), place, settings or read_settings(), retention, tell or _say_nothing)


@explain_arguments
def restore(
    backup: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    replace: bool = False,
    tell: Callable[[int, int], None] | None = None,
    settings: Settings | None = None,
) -> RestoreResult:
    """Restore a backup into a store, SQLite or PostgreSQL. The backup is verified first.

    A target that is not empty is refused, unless `replace` is true. A file holds either its old contents or all of the
    backup at any time. A PostgreSQL store cannot be opened until it is complete; an interrupted restore resumes.
    """
    from holdfast.app import restore_store

    place = _local_place(target)
    return restore_store(
        validate_location(backup), place, settings or read_settings(), replace=replace, tell=tell or _say_nothing
    )


def _local_place(location: str | os.PathLike[str]) -> str:
    place = validate_location(location)
    if is_server_url(place):
        raise StoreUnusable(
            f"{place} is a server, which manages its own store; back up and restore on the machine of the store,"
            " with its path or its postgresql:// URL"
        )
    return place


def _say_nothing(done: int, total: int) -> None:
    """Ignore the progress."""
