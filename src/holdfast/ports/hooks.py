"""Subscribers to hooks, besides the memory of a space."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from holdfast.domain.contract import HookKind
from holdfast.domain.hooks import HookEvent

# Asynchronous or blocking; either runs in its own threads.
HookHandler = Callable[[HookEvent], Awaitable[None] | None]


class Subscribers(Protocol):
    def subscribe(self, name: str, kinds: Iterable[HookKind], handler: HookHandler) -> None:
        """Deliver hooks of these kinds to `handler`, at least once each. Names are unique."""

    def unsubscribe(self, name: str) -> bool:
        """Remove a subscriber; True if there was one."""

    def names_for(self, kind: HookKind) -> Sequence[str]:
        """Return the names of subscribers to this kind of hook, in order."""

    def handler(self, name: str) -> HookHandler | None:
        """Return the handler; None if there is no subscriber of that name in this process."""

    async def deliver(self, name: str, event: HookEvent) -> None:
        """Deliver an event within a bounded time; raises `ProviderError` if the subscriber fails or is too slow."""

    async def close(self) -> None: ...
