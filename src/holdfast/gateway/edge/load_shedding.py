"""Concurrency limit with a bounded FIFO queue. Sheds load: beyond the queue, 503 with Retry-After (backpressure).

A request takes a slot only when its whole body has arrived, so that slow senders block no one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.gateway.edge.exchange import PROBES, Exchange, exchange_of

# Operators need these under overload.
_ALWAYS = PROBES | {"/metrics"}


class ConcurrencyLimit:
    """Runs at most `most` requests at once. As many more wait, each for at most `wait_seconds`."""

    def __init__(self, app: ASGIApp, most: int, wait_seconds: float) -> None:
        self._app = app
        self._most = most
        self._most_waiting = most
        self._wait_seconds = wait_seconds
        self._running = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = exchange_of(scope) if scope["type"] == "http" else None
        if exchange is None or exchange.path in _ALWAYS:
            await self._app(scope, receive, send)
            return
        if len(self._waiting) >= self._most_waiting:
            raise self._overloaded_error(exchange)
        entered = False

        async def receiving() -> Message:
            nonlocal entered
            message = await receive()
            if not entered and not message.get("more_body", False):
                await self._acquire_slot(exchange)
                entered = True
            return message

        if not exchange.has_body:
            await self._acquire_slot(exchange)
            entered = True
        try:
            await self._app(scope, receive if entered else receiving, send)
        finally:
            if entered:
                self._release_slot()

    async def _acquire_slot(self, exchange: Exchange) -> None:
        if self._running < self._most and not self._waiting:
            self._running += 1
            return
        if len(self._waiting) >= self._most_waiting:
            raise self._overloaded_error(exchange)
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(self._wait_seconds):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self._release_slot()  # the slot was granted just as the wait ended
            else:
                with contextlib.suppress(ValueError):  # already removed by a release
                    self._waiting.remove(turn)
            if isinstance(error, TimeoutError):
                raise self._overloaded_error(exchange) from None
            raise

    def _release_slot(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)  # hand the slot over
                return
        self._running -= 1

    def _overloaded_error(self, exchange: Exchange) -> Exception:
        return exchange.refuse(
            503, "overloaded", "too many requests are in progress; try again shortly", [(b"retry-after", b"1")]
        )
