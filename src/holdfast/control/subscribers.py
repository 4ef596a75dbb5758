"""The registry of hooks: others than a company's own memory can be told of what happens, each by a delivery of its own.

Subscribers are code, installed beside us: a function in the entry points `holdfast.hooks`, which is given the registry
when hooks are first needed, or a call of `subscribe` in a host program. Whoever installs one lets it see the hooks of
every company of the store. Deliveries are made by workers: what subscribes must be installed where they run.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points

from holdfast.domain.bindings import checked_key
from holdfast.domain.contract import HookKind
from holdfast.domain.hooks import ANSWERED, CAPTURED, HookEvent
from holdfast.errors import HoldfastError, InvalidInput, ProviderTimeout, ProviderUnavailable
from holdfast.ports.hooks import HookHandler

GROUP = "holdfast.hooks"
TOLD_WITHIN_SECONDS = 30.0
log = logging.getLogger("holdfast")


class HookRegistry:
    """Implements `ports.Subscribers`."""

    def __init__(self, found: Callable[[], Iterable[EntryPoint]] | None = None) -> None:
        self._found = found or (lambda: entry_points(group=GROUP))
        self._lock = threading.RLock()
        self._loaded = False
        self._subscribed: dict[str, tuple[frozenset[HookKind], HookHandler]] = {}

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
            self._subscribed[name] = (wanted, handler)

    def unsubscribe(self, name: str) -> bool:
        """Whether there was one. What is on its way to it fails until it subscribes again."""
        with self._lock:
            return self._subscribed.pop(name, None) is not None

    def of(self, kind: HookKind) -> Sequence[str]:
        self._load()
        with self._lock:
            return sorted(name for name, (kinds, _) in self._subscribed.items() if kind in kinds)

    def handler(self, name: str) -> HookHandler | None:
        self._load()
        found = self._subscribed.get(name)
        return None if found is None else found[1]

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


async def tell(name: str, handler: HookHandler, event: HookEvent) -> None:
    """Give a subscriber an event, for a bounded time. What it raises is told by its kind alone."""
    try:
        async with asyncio.timeout(TOLD_WITHIN_SECONDS):
            if inspect.iscoroutinefunction(handler):
                await handler(event)
            else:
                answer = await asyncio.to_thread(handler, event)
                if inspect.isawaitable(answer):
                    await answer
        return
    except TimeoutError:
        problem: HoldfastError = ProviderTimeout(f"the subscriber {name!r} took more than {TOLD_WITHIN_SECONDS:.0f} s")
    except Exception as error:  # noqa: BLE001 - somebody else's code: its text may hold anything
        problem = ProviderUnavailable(f"the subscriber {name!r} failed: {type(error).__name__}")
    raise problem
