"""Running other people's code so that none of it can hold up, break or betray anything else: the adapters of providers,
and those who subscribed to hooks.

Each of them, a guest, lives on an event loop in a thread of its own: it may block, hang, raise or exit, and nobody but
its own callers notices. They get an answer or a `ProviderError` in time, whatever it does. A thread that does not come
back is given up, and a new one is begun for the next call; a guest that has lost too many is refused at once until some
of them come back. No thread here keeps the process from ending.

What a guest raises may hold a key in its text, in its cause or in its frames. Of a foreign exception only the name
of its class is told; of our own, its text, which a service keeps to itself if the guest is not of our making.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from holdfast import errors
from holdfast.domain.bindings import Binding
from holdfast.errors import (
    CapabilityUnavailable,
    Conflict,
    HoldfastError,
    InvalidInput,
    NotFound,
    ProviderError,
    ProviderMalformed,
    ProviderTimeout,
    ProviderUnavailable,
    SecretUnavailable,
)
from holdfast.loops import running
from holdfast.ports.provider import Adapter, Providers

T = TypeVar("T")
G = TypeVar("G", bound="Guest")
log = logging.getLogger("holdfast")

MAX_LOST = 4  # threads of one guest that did not come back
MAX_UNDER_WAY = 64  # calls of one guest at once
MAX_DEAF = 8  # calls of one guest that would not be cancelled
MAX_OPEN = 128  # guests
CLOSE_SECONDS = 2.0
RETIRE_SECONDS = 60.0  # what is under way when a binding changes may still end
HEARS_WITHIN_SECONDS = 1.0  # on a busy machine a thread may wait its turn for long
# What a guest of its own accord may say to a caller, in our words.
_PASSED_ON = (ProviderError, SecretUnavailable, CapabilityUnavailable, NotFound, Conflict, InvalidInput)


@dataclass(frozen=True, slots=True)
class _Raised:
    """How a piece of work failed, without anything that it held."""

    error: HoldfastError


class Guest(Protocol):
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Invited(Generic[G]):
    """Who is to be asked. It is made where it lives, and anew if its `revision` is another; `named` is for errors."""

    key: tuple[str, str]
    revision: object
    named: str
    make: Callable[[], G]


class _Room:
    """One guest in its thread. Made there by the first call, since that may block too."""

    def __init__(self, invited: Invited[Any]) -> None:
        self.revision = invited.revision
        self.under_way = 0
        self._named = invited.named
        self._make = invited.make
        self._guest: Guest | None = None
        self._called: tuple[threading.Event, float] | None = None
        self._deaf: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._of_itself)
        self._thread = threading.Thread(target=self._live, name=f"holdfast-{invited.key[1]:.40}", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def lost(self) -> bool:
        """Whether it has been called and does not answer: something in it blocks the thread."""
        if self._called is None:
            return not self.alive
        heard, called = self._called
        return not self.alive or (not heard.is_set() and time.monotonic() - called > HEARS_WITHIN_SECONDS)

    @property
    def deaf(self) -> bool:
        """Whether too much in it goes on although it was told to stop."""
        return len(self._deaf) >= MAX_DEAF

    def _live(self) -> None:
        try:
            self._loop.run_forever()
        except BaseException as error:  # noqa: BLE001 - a guest that ends its thread ends nothing else
            log.warning("%s ended its own thread: %s", self._named, type(error).__name__)
        finally:
            # Whatever is still in it has nobody that waits for it.
            with contextlib.suppress(RuntimeError):
                self._loop.close()

    def _of_itself(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What a guest left behind on its loop failed. The usual message would tell all that it holds."""
        failed = type(context.get("exception")).__name__
        log.warning("something that %s left behind failed: %s", self._named, failed)

    def begin(self, work: Callable[[Any], Awaitable[Any]]) -> _Work:
        """Start it, and say how to wait for it."""
        begun = _Work()
        self._loop.call_soon_threadsafe(self._start, begun, work)
        return begun

    def _start(self, begun: _Work, work: Callable[[Any], Awaitable[Any]]) -> None:
        begun.task = self._loop.create_task(self._do(begun, work))
        begun.task.add_done_callback(self._deaf.discard)

    async def _do(self, begun: _Work, work: Callable[[Any], Awaitable[Any]]) -> None:
        """Nothing leaves here but by the future: what is raised on the loop itself would end the thread."""
        try:
            if self._guest is None:
                self._guest = self._make()
            waited = work(self._guest)
            if not inspect.isawaitable(waited):
                raise ProviderMalformed(
                    f"the provider's verb gave {type(waited).__name__:.60} at once; it must be async"
                )
            outcome: Any = await waited
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - told to whoever waits
            outcome = _Raised(_told(error))
        begun.answer(outcome)

    def give_up(self, begun: _Work) -> None:
        """Tell a piece of work to stop, and find out whether anything here still hears."""
        heard = threading.Event()
        self._called = heard, time.monotonic()

        def stop() -> None:
            heard.set()
            if begun.task is not None and not begun.task.done():
                self._deaf.add(begun.task)
                begun.task.cancel()

        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(stop)

    def retire(self, patience_seconds: float) -> concurrent.futures.Future[Any]:
        """Close the guest and end the thread, when what is under way is over or out of patience."""
        begun = _Work()

        async def close() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            try:
                if others and patience_seconds:
                    await asyncio.wait(others, timeout=patience_seconds)
                for other in others:
                    other.cancel()
                if self._guest is not None:
                    waited: Any = self._guest.close()
                    if inspect.isawaitable(waited):
                        await asyncio.wait_for(waited, CLOSE_SECONDS)
            except BaseException as error:  # noqa: BLE001 - nobody can do anything about it
                log.warning("%s did not close: %s", self._named, type(error).__name__)
            finally:
                begun.answer(None)
                self._loop.stop()

        try:
            self._loop.call_soon_threadsafe(lambda: self._loop.create_task(close()))
        except RuntimeError:  # the loop has ended
            begun.answer(None)
        return begun.future


class _Work:
    """One piece of work in a room, and how to wait for it."""

    def __init__(self) -> None:
        self.future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self.task: asyncio.Task[None] | None = None

    def answer(self, outcome: object) -> None:
        # Whoever waited may have gone.
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            self.future.set_result(outcome)


@dataclass(slots=True)
class _Place:
    """A guest's: where it lives, and the threads that it has lost."""

    room: _Room | None = None
    lost: list[_Room] = field(default_factory=list)


class Rooms:
    """Where guests live, each in one of its own."""

    def __init__(self) -> None:
        self._places: OrderedDict[tuple[str, str], _Place] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False

    async def ask(self, invited: Invited[G], work: Callable[[G], Awaitable[T]], timeout_seconds: float) -> T:
        """Have the guest do it. Whatever it does, an answer or a `ProviderError` is there in time."""
        room = self._room(invited)
        try:
            begun = room.begin(work)
        except RuntimeError:  # its loop ended in this very moment
            with self._lock:
                room.under_way -= 1
            raise ProviderUnavailable(f"{invited.named} is being closed; try again") from None
        try:
            outcome = await _waited(begun.future, timeout_seconds)
        except (TimeoutError, concurrent.futures.TimeoutError):
            outcome = _Raised(
                ProviderTimeout(
                    f"{invited.named} did not answer within {timeout_seconds:g} s; whether it did what was asked is"
                    " not known"
                )
            )
        finally:
            with self._lock:
                room.under_way -= 1
            if not begun.future.done() or begun.future.cancelled():
                room.give_up(begun)
        if isinstance(outcome, _Raised):
            # Not from within the handler: nothing of what was caught may hang on to it.
            raise outcome.error
        return outcome  # type: ignore[no-any-return]

    def _room(self, invited: Invited[G]) -> _Room:
        """The guest's, begun anew if it is another by now or its thread is lost."""
        key = invited.key
        with self._lock:
            if self._closed:
                raise ProviderUnavailable("the store is closed; open it again")
            place = self._places.setdefault(key, _Place())
            self._places.move_to_end(key)
            place.lost = [room for room in place.lost if room.alive]
            if place.room is not None and (place.room.lost or place.room.deaf):
                place.room.retire(0)
                place.lost.append(place.room)
                place.room = None
            elif place.room is not None and place.room.revision != invited.revision:
                place.room.retire(RETIRE_SECONDS)
                place.room = None
            if place.room is None:
                if len(place.lost) >= MAX_LOST:
                    raise ProviderUnavailable(
                        f"{invited.named} has stopped answering {len(place.lost)} times, and is not asked again until"
                        " it does; see to it"
                    )
                place.room = _Room(invited)
                self._make_place(key)
            if place.room.under_way >= MAX_UNDER_WAY:
                raise ProviderUnavailable(f"{invited.named} has {MAX_UNDER_WAY} calls under way; try again later")
            place.room.under_way += 1
            return place.room

    def _make_place(self, beside: tuple[str, str]) -> None:
        """Close what nobody asked for the longest time, if too many are open."""
        idle = [
            key
            for key, place in self._places.items()
            if key != beside and not place.lost and (place.room is None or not place.room.under_way)
        ]
        for key in idle[: max(0, len(self._places) - MAX_OPEN)]:
            place = self._places.pop(key)
            if place.room is not None:
                place.room.retire(0)

    async def close(self) -> None:
        """End every guest; one that does not end is left behind, and does not keep the process from ending."""
        with self._lock:
            self._closed = True
            rooms = [place.room for place in self._places.values() if place.room is not None]
            self._places.clear()
        ends = [room.retire(0) for room in rooms]
        if not ends:
            return
        if running() is None:
            concurrent.futures.wait(ends, CLOSE_SECONDS)
        else:
            await asyncio.wait([asyncio.wrap_future(end) for end in ends], timeout=CLOSE_SECONDS)


class OutsideRunner:
    """Implements `ports.provider.Outsiders`."""

    def __init__(self, providers: Providers) -> None:
        self._providers = providers
        self._rooms = Rooms()

    async def ask(self, binding: Binding, work: Callable[[Adapter], Awaitable[T]], timeout_seconds: float) -> T:
        invited = Invited(
            key=(binding.space, binding.key),
            revision=(binding.id, binding.revision),
            named=f"the binding {binding.key!r} ({binding.provider:.80})",
            make=lambda: self._providers.adapter(binding),
        )
        return await self._rooms.ask(invited, work, timeout_seconds)

    async def close(self) -> None:
        await self._rooms.close()


async def _waited(future: concurrent.futures.Future[Any], seconds: float) -> Any:
    if running() is None:
        return future.result(seconds)
    return await asyncio.wait_for(asyncio.wrap_future(future), seconds)


def named(error: ProviderError | SecretUnavailable, binding: Binding) -> HoldfastError:
    """The same, saying whose it is and what to do next: what an adapter says knows of no binding."""
    whose = f"the binding {binding.key!r} ({binding.provider:.80})"
    what_next = ""
    if not isinstance(error, SecretUnavailable):  # which says by itself what to do
        tries = f"`holdfast provider check {binding.provider:.80} --config … --connect` tries it"
        what_next = f"; see to the provider, or to the binding's configuration: {tries}"
    said = str(error)
    prefix = "" if said.startswith(whose) else f"{whose} cannot be used: "  # whoever runs it has said so
    found = type(error)(f"{prefix}{said}{what_next}")
    found.public = f"{prefix}{error.public or said}{what_next}"
    return found


def _told(error: BaseException) -> HoldfastError:
    """The same for a caller: one of ours as it is, bare of what it came from; of another only what kind it was."""
    if isinstance(error, _PASSED_ON) and type(error).__module__ == errors.__name__:
        if isinstance(error, InvalidInput):
            return type(error)(error.field, error.problem)
        found = type(error)(str(error))
        if not _is_ours(error.__traceback__):
            # Somebody else's words: nobody knows what they quote.
            found.public = (type(error).__doc__ or "").strip().rstrip(".")
        return found
    if isinstance(error, asyncio.CancelledError):
        return ProviderTimeout("the provider was told to stop")
    return ProviderError(f"the provider failed ({type(error).__name__:.80}); what it said is not repeated here")


def _is_ours(raised: TracebackType | None) -> bool:
    """Whether it was raised by code of ours, whoever called that."""
    while raised is not None and raised.tb_next is not None:
        raised = raised.tb_next
    return raised is not None and str(raised.tb_frame.f_globals.get("__name__")).startswith("holdfast.")
