"""The registry of hooks: others than a company's own memory can be told of what happens, each by a delivery of its own.

Subscribers are code, installed beside us: a function in the entry points `holdfast.hooks`, which is given the registry
when hooks are first needed, or a call of `subscribe` in a host program. Whoever installs one lets it see the hooks of
every company of the store. Deliveries are made by workers: what subscribes must be installed where they run.

Like a provider, none of them can hold up anything else (`outside`): it is called in threads of its own, for a bounded
time, and one that does not come back is left behind.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points

from holdfast.control.outside import MAX_LOST, Invited, Rooms
from holdfast.domain.bindings import checked_key
from holdfast.domain.contract import HookKind
from holdfast.domain.hooks import ANSWERED, CAPTURED, HookEvent
from holdfast.errors import HoldfastError, InvalidInput, ProviderMisconfigured, ProviderUnavailable
from holdfast.ports.hooks import HookHandler

GROUP = "holdfast.hooks"
TOLD_WITHIN_SECONDS = 30.0
log = logging.getLogger("holdfast")

_Outcome = tuple[Awaitable[None] | None, str | None]


class _Listener:
    """Somebody who subscribed: called on a loop of its own if it is asynchronous, else in a thread for each event.

    Several events may be told at once, so that one that takes its time does not use up that of the others.
    """

    def __init__(self, name: str, kinds: frozenset[HookKind], handler: HookHandler) -> None:
        self.kinds = kinds
        self.handler = handler
        self.invited = Invited(("", name), self, f"the subscriber {name!r}", lambda: self)
        self._name = name
        self._lost: list[threading.Thread] = []

    async def hear(self, event: HookEvent) -> None:
        """What it raises is told by its kind alone: its text may hold anything."""
        self._check_back()
        try:
            at_once = inspect.iscoroutinefunction(self.handler)
            answer, failed = (self.handler(event), None) if at_once else await self._aside(event)
            if inspect.isawaitable(answer):
                await answer
        except (GeneratorExit, asyncio.CancelledError):
            raise
        except BaseException as error:  # noqa: BLE001 - somebody else's code
            failed = type(error).__name__
        if failed is not None:
            raise ProviderUnavailable(f"the subscriber {self._name!r} failed: {failed:.80}")

    def _check_back(self) -> None:
        self._lost = [thread for thread in self._lost if thread.is_alive()]
        if len(self._lost) >= MAX_LOST:
            raise ProviderUnavailable(
                f"the subscriber {self._name!r} has not come back {len(self._lost)} times, and is told nothing until it"
                " does; see to it"
            )

    async def _aside(self, event: HookEvent) -> _Outcome:
        """What it gave, or the name of what it raised."""
        answered: concurrent.futures.Future[_Outcome] = concurrent.futures.Future()

        def call() -> None:
            try:
                outcome: _Outcome = self.handler(event), None
            except BaseException as error:  # noqa: BLE001 - somebody else's code
                outcome = None, type(error).__name__
            with contextlib.suppress(concurrent.futures.InvalidStateError):  # nobody waits for it any more
                answered.set_result(outcome)

        # A daemon, and of no pool: one that never comes back must not keep the process from ending.
        thread = threading.Thread(target=call, name=f"holdfast-{self._name:.40}-event", daemon=True)
        thread.start()
        try:
            return await asyncio.wrap_future(answered)
        except asyncio.CancelledError:
            self._lost.append(thread)
            raise

    async def close(self) -> None:
        """It is not ours to close."""


class HookRegistry:
    """Implements `ports.Subscribers`."""

    def __init__(self, found: Callable[[], Iterable[EntryPoint]] | None = None) -> None:
        self._found = found or (lambda: entry_points(group=GROUP))
        self._lock = threading.RLock()
        self._loaded = False
        self._subscribed: dict[str, _Listener] = {}
        self._rooms = Rooms()

    def subscribe(self, name: str, kinds: Iterable[HookKind], handler: HookHandler) -> None:
        """From now on, `handler` is told of hooks of these kinds, at least once each. A name can be taken once."""
        checked_key(name, "name")
        wanted = frozenset(kinds)
        for kind in wanted:
            if not isinstance(kind, HookKind):
                raise InvalidInput("kinds", f"must be some of {', '.join(sorted(CAPTURED))}")
        if not wanted or wanted & ANSWERED:
            raise InvalidInput("kinds", f"give some of {', '.join(sorted(CAPTURED))}; the others carry nothing")
        if not callable(handler):
            raise InvalidInput("handler", f"expected a function, got {type(handler).__name__}")
        with self._lock:
            if name in self._subscribed:
                raise InvalidInput("name", f"{name!r} has subscribed already; take another name")
            self._subscribed[name] = _Listener(name, wanted, handler)

    def unsubscribe(self, name: str) -> bool:
        """Whether there was one. What is on its way to it fails until it subscribes again."""
        with self._lock:
            return self._subscribed.pop(name, None) is not None

    def of(self, kind: HookKind) -> Sequence[str]:
        self._load()
        with self._lock:
            return sorted(name for name, listener in self._subscribed.items() if kind in listener.kinds)

    def handler(self, name: str) -> HookHandler | None:
        self._load()
        found = self._subscribed.get(name)
        return None if found is None else found.handler

    async def tell(self, name: str, event: HookEvent) -> None:
        self._load()
        found = self._subscribed.get(name)
        if found is None:
            raise ProviderMisconfigured(f"nobody subscribed as {name!r} where this worker runs; install it there")
        await self._rooms.ask(found.invited, lambda listener: listener.hear(event), TOLD_WITHIN_SECONDS)

    async def close(self) -> None:
        """Whoever has not come back by then is left behind."""
        await self._rooms.close()

    def _load(self) -> None:
        """What cannot be loaded is told in the log, and keeps nobody else from working."""
        with self._lock:
            if self._loaded:
                return
            self._loaded = True
            for point in sorted(self._found(), key=lambda each: each.name):
                try:
                    point.load()(self)
                except HoldfastError as error:
                    log.warning("the hooks of %s (%s) cannot be used: %s", point.name, point.value, error)
                except Exception as error:  # noqa: BLE001 - somebody else's code, of which only the kind is told
                    log.warning("the hooks of %s (%s) failed: %s", point.name, point.value, type(error).__name__)
