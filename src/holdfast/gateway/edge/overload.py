"""At most so many requests at once. What is more waits for a short while, in order, or is told at once to come back.

A place is taken when the whole body is there, not before: whoever sends slowly keeps nobody out.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.gateway.edge.exchange import PROBES, Exchange, exchange_of

# Whoever looks after an overloaded gateway needs these.
_ALWAYS = PROBES | {"/metrics"}


class Overload:
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
            raise self._refused(exchange)
        entered = False

        async def receiving() -> Message:
            nonlocal entered
            message = await receive()
            if not entered and not message.get("more_body", False):
                await self._enter(exchange)
                entered = True
            return message

        if not exchange.has_body:
            await self._enter(exchange)
            entered = True
        try:
            await self._app(scope, receive if entered else receiving, send)
        finally:
            if entered:
                self._leave()

    async def _enter(self, exchange: Exchange) -> None:
        if self._running < self._most and not self._waiting:
            self._running += 1
            return
        if len(self._waiting) >= self._most_waiting:
            raise self._refused(exchange)
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(self._wait_seconds):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self._leave()  # it came just as we gave up
            else:
                with contextlib.suppress(ValueError):  # somebody who left has passed it over already
                    self._waiting.remove(turn)
            if isinstance(error, TimeoutError):
                raise self._refused(exchange) from None
            raise

    def _leave(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)  # the place goes over to it
                return
        self._running -= 1

    def _refused(self, exchange: Exchange) -> Exception:
        return exchange.refuse(
            503, "overloaded", "too many requests are being worked on; try again shortly", [(b"retry-after", b"1")]
        )
