"""The outermost middleware: assigns request ids, sends the edge's error responses, and notifies the observers.

Catches every error: one that the routes did not catch becomes a plain 500. Its text is neither sent nor logged, because
it may contain user content.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.gateway.edge.exchange import EdgeRefusal, Exchange, Observer
from holdfast.gateway.edge.problem_json import problem_body

# Closing a socket with unread data makes the client lose the response: read a little more first.
LINGER_SECONDS = 1.0
LINGER_BYTES = 8 * 1024 * 1024
_FRAMES = 12
log = logging.getLogger("holdfast.gateway")
_ALWAYS = {b"cache-control": b"no-store", b"x-content-type-options": b"nosniff"}


class RequestMiddleware:
    def __init__(self, app: ASGIApp, observers: Sequence[Observer]) -> None:
        self._app = app
        self._observers = tuple(observers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._pass_through(scope, receive, send)
            return
        exchange = Exchange(scope)
        for observer in self._observers:
            observer.on_start(exchange)
        try:
            await self._respond(exchange, scope, receive, send)
        finally:
            exchange.end()
            for observer in self._observers:
                observer.on_end(exchange)

    async def _respond(self, exchange: Exchange, scope: Scope, receive: Receive, send: Send) -> None:
        async def receiving() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect" and not exchange.complete:
                exchange.disconnected = True
            return message

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                if exchange.refusal is not None:
                    return
                exchange.status = message["status"]
                message["headers"] = _complete_headers(exchange, message.get("headers", ()))
            elif not exchange.status:
                return  # the body of a response that is not sent
            else:
                exchange.sent += len(message.get("body", b""))
                exchange.complete = not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, receiving, sending)
        except EdgeRefusal:
            pass  # the response is sent below
        except Exception as error:  # noqa: BLE001
            self._record_error(exchange, error)
        if exchange.refusal is not None and not exchange.status:
            await self._refuse(exchange, receive, send)
        elif exchange.error is not None and not exchange.status:
            exchange.refuse(500, "internal_error", f"internal error; the log has the details under {exchange.id}")
            await self._refuse(exchange, receive, send)
        # The server cuts off a response that was started but cannot be finished, so that it is not taken for complete.

    def _record_error(self, exchange: Exchange, error: Exception) -> None:
        if exchange.disconnected or exchange.refusal is not None:
            return  # reading an incomplete body fails; that is not an internal error
        exchange.error = type(error).__name__
        frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
        places = [f"{frame.filename.rpartition('site-packages/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
        log.error("a request failed", extra={"fields": {"id": exchange.id, "error": exchange.error, "frames": places}})

    async def _refuse(self, exchange: Exchange, receive: Receive, send: Send) -> None:
        refusal = exchange.refusal
        assert refusal is not None
        media_type, body = problem_body(exchange.scope, refusal.status, refusal.code, refusal.detail)
        headers = [
            (b"content-type", media_type),
            (b"content-length", str(len(body)).encode("ascii")),
            *refusal.headers,
        ]
        if refusal.hang_up:
            headers.append((b"connection", b"close"))
        exchange.status = refusal.status
        await send(
            {
                "type": "http.response.start",
                "status": refusal.status,
                "headers": _complete_headers(exchange, headers),
            }
        )
        if exchange.method == "HEAD":
            body = b""
        exchange.sent = len(body)
        if refusal.hang_up:
            await send({"type": "http.response.body", "body": body, "more_body": True})
            await _linger(receive)
            body = b""
        await send({"type": "http.response.body", "body": body})
        exchange.complete = True

    async def _pass_through(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})
        else:
            await self._app(scope, receive, send)


def _complete_headers(exchange: Exchange, headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    names = {name for name, _ in headers}
    return [
        *headers,
        *((name, value) for name, value in _ALWAYS.items() if name not in names),
        *exchange.rate_headers,
        (b"x-request-id", exchange.id.encode("ascii")),
    ]


async def _linger(receive: Receive) -> None:
    """Read and drop the rest of the body, within limits, until the client has read the response and stops."""
    dropped = 0
    try:
        async with asyncio.timeout(LINGER_SECONDS):
            while dropped < LINGER_BYTES:
                message = await receive()
                dropped += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
    except TimeoutError:
        return
