"""Who else is told of hooks, besides the memory that serves a company."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from holdfast.domain.contract import HookKind
from holdfast.domain.hooks import HookEvent

# It may be asynchronous, or block: either is run in threads of its own.
HookHandler = Callable[[HookEvent], Awaitable[None] | None]


class Subscribers(Protocol):
    def of(self, kind: HookKind) -> Sequence[str]:
        """The names of those who want to hear of hooks of this kind, in order."""

    def handler(self, name: str) -> HookHandler | None:
        """None if nobody of that name subscribed in this process."""

    async def tell(self, name: str, event: HookEvent) -> None:
        """Give it an event, for a bounded time. Whatever it does, it took it by then or there is a `ProviderError`."""

    async def close(self) -> None: ...
