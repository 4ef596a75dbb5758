"""The registry of hook subscribers: code that receives hooks besides a space's own memory, a delivery each.

A subscriber is installed beside Holdfast: a function in the entry point group `holdfast.hooks`, which gets the registry
when hooks are first needed, or a call of `subscribe` in a host program. It sees the hooks of every space of the
store. Workers make the deliveries, so subscribers must be installed where workers run.

Like a provider, a subscriber is isolated by the bulkhead (`outside`): it runs in its own threads with a timeout, and a
hung thread is abandoned.
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

from holdfast.control.bulkhead import MAX_LOST, Bulkhead, PluginSpec
from holdfast.domain.bindings import checked_key
from holdfast.domain.contract import HookKind
from holdfast.domain.hooks import ANSWERED, CAPTURED, HookEvent
from holdfast.errors import HoldfastError, InvalidInput, ProviderMisconfigured, ProviderUnavailable
from holdfast.ports.hooks import HookHandler

GROUP = "holdfast.hooks"
TOLD_WITHIN_SECONDS = 30.0
log = logging.getLogger("holdfast")

_Outcome = tuple[Awaitable[None] | None, str | None]


class _Subscriber:
    """One subscriber. An async handler runs on its own event loop, any other in a thread per event.

    Events are delivered concurrently, so that a slow one does not use up the timeout of the others.
    """

    def __init__(self, name: str, kinds: frozenset[HookKind], handler: HookHandler) -> None:
        self.kinds = kinds
        self.handler = handler
        self.invited = PluginSpec(("", name), self, f"the subscriber {name!r}", lambda: self)
        self._name = name
        self._lost: list[threading.Thread] = []

    async def handle_event(self, event: HookEvent) -> None:
        """Call the handler. Of an exception only the class name is reported: its message may hold anything."""
        self._check_hung_threads()
        try:
            is_async = inspect.iscoroutinefunction(self.handler)
            result, failed = (self.handler(event), None) if is_async else await self._call_in_thread(event)
            if inspect.isawaitable(result):
                await result
        except (GeneratorExit, asyncio.CancelledError):
            raise
        except BaseException as error:  # noqa: BLE001 - third-party code
            failed = type(error).__name__
        if failed is not None:
            raise ProviderUnavailable(f"the subscriber {self._name!r} failed: {failed:.80}")

    def _check_hung_threads(self) -> None:
        self._lost = [thread for thread in self._lost if thread.is_alive()]
        if len(self._lost) >= MAX_LOST:
            raise ProviderUnavailable(
                f"the subscriber {self._name!r} has {len(self._lost)} calls that hang, and gets no events until some of"
                " them return; check the subscriber"
            )

    async def _call_in_thread(self, event: HookEvent) -> _Outcome:
        """Call the handler in a new thread; return its result, or the class name of its exception."""
        future: concurrent.futures.Future[_Outcome] = concurrent.futures.Future()

        def call() -> None:
            try:
                outcome: _Outcome = self.handler(event), None
            except BaseException as error:  # noqa: BLE001 - third-party code
                outcome = None, type(error).__name__
            with contextlib.suppress(concurrent.futures.InvalidStateError):  # the caller has timed out
                future.set_result(outcome)

        # A daemon thread outside any pool: a hung one must not keep the process from ending.
        thread = threading.Thread(target=call, name=f"holdfast-{self._name:.40}-event", daemon=True)
        thread.start()
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self._lost.append(thread)
            raise

    async def close(self) -> None:
        """Do nothing: the handler belongs to its owner."""


class HookRegistry:
    """Implements `ports.Subscribers`."""

    def __init__(self, found: Callable[[], Iterable[EntryPoint]] | None = None) -> None:
        self._found = found or (lambda: entry_points(group=GROUP))
        self._lock = threading.RLock()
        self._loaded = False
        self._subscribed: dict[str, _Subscriber] = {}
        self._rooms = Bulkhead()

    def subscribe(self, name: str, kinds: Iterable[HookKind], handler: HookHandler) -> None:
        """Deliver hooks of these kinds to `handler`, at least once each. Names are unique."""
        checked_key(name, "name")
        wanted = frozenset(kinds)
        for kind in wanted:
            if not isinstance(kind, HookKind):
                raise InvalidInput("kinds", f"must be some of {', '.join(sorted(CAPTURED))}")
        if not wanted or wanted & ANSWERED:
            raise InvalidInput("kinds", f"give some of {', '.join(sorted(CAPTURED))}; other hooks carry no payload")
        if not callable(handler):
            raise InvalidInput("handler", f"expected a function, got {type(handler).__name__}")
        with self._lock:
            if name in self._subscribed:
                raise InvalidInput("name", f"{name!r} is already subscribed; use another name")
            self._subscribed[name] = _Subscriber(name, wanted, handler)

    def unsubscribe(self, name: str) -> bool:
        """Remove a subscriber; True if there was one. Its pending deliveries fail until it subscribes again."""
        with self._lock:
            return self._subscribed.pop(name, None) is not None

    def names_for(self, kind: HookKind) -> Sequence[str]:
        self._load()
        with self._lock:
            return sorted(name for name, listener in self._subscribed.items() if kind in listener.kinds)

    def handler(self, name: str) -> HookHandler | None:
        self._load()
        found = self._subscribed.get(name)
        return None if found is None else found.handler

    async def deliver(self, name: str, event: HookEvent) -> None:
        self._load()
        found = self._subscribed.get(name)
        if found is None:
            raise ProviderMisconfigured(f"no subscriber {name!r} is installed where this worker runs; install it there")
        await self._rooms.ask(found.invited, lambda listener: listener.handle_event(event), TOLD_WITHIN_SECONDS)

    async def close(self) -> None:
        """Close all subscribers; abandon those that hang."""
        await self._rooms.close()

    def _load(self) -> None:
        """Load the entry points once. One that fails is logged and does not affect the others."""
        with self._lock:
            if self._loaded:
                return
            self._loaded = True
            for point in sorted(self._found(), key=lambda each: each.name):
                try:
                    point.load()(self)
                except HoldfastError as error:
                    log.warning("the hooks of %s (%s) cannot be used: %s", point.name, point.value, error)
                except Exception as error:  # noqa: BLE001 - third-party code: log only the class name
                    log.warning("the hooks of %s (%s) failed: %s", point.name, point.value, type(error).__name__)
