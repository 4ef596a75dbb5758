"""Size and time limits of request bodies. A Content-Length that is too large is refused before anything is read.

Bytes are counted as they arrive. A body is refused when it is too large, too slow, or when all bodies together exceed
the memory limit (backpressure: 503 with Retry-After).
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge.exchange import Exchange, exchange_of

# Size factors: a raw file, and one as base64 in JSON.
UPLOADS = {"/resources": 1.0, "/verbs/add_resource": 4 / 3}
UPLOAD_FACTOR = 10  # how many times longer an upload may take
FRAMING_BYTES = 64 * 1024  # overhead of multipart
# More digits are no valid length, and slow to parse.
_LENGTH_DIGITS = 18


class BodyLimits:
    def __init__(self, app: ASGIApp, config: GatewayConfig) -> None:
        self._app = app
        self._most = config.max_body_bytes
        self._most_of_uploads = {
            path: int(config.max_upload_bytes * factor) + FRAMING_BYTES for path, factor in UPLOADS.items()
        }
        self._most_of_all = config.max_bodies_bytes
        self._seconds = config.body_seconds
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = exchange_of(scope) if scope["type"] == "http" else None
        if exchange is None or not exchange.has_body:
            await self._app(scope, receive, send)
            return
        upload = exchange.path in UPLOADS
        most = self._most_of_uploads[exchange.path] if upload else self._most
        _check_announced(exchange, most)
        deadline = asyncio.get_running_loop().time() + self._seconds * (UPLOAD_FACTOR if upload else 1)
        arriving = True

        async def receiving() -> Message:
            nonlocal arriving
            if not arriving:
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise exchange.refuse(
                    408, "body_too_slow", "the body did not arrive in time; send it faster", hang_up=True
                ) from None
            arriving = self._count_bytes(exchange, message, most)
            return message

        try:
            await self._app(scope, receiving, send)
        finally:
            self._held -= exchange.received

    def _count_bytes(self, exchange: Exchange, message: Message, most: int) -> bool:
        """Count the received bytes. Return whether more will come."""
        if message["type"] != "http.request":
            return False
        size = len(message.get("body", b""))
        exchange.received += size
        self._held += size
        if exchange.received > most:
            raise _too_large(exchange, most)
        if self._held > self._most_of_all:
            raise exchange.refuse(
                503,
                "overloaded",
                "too much data is being received; try again shortly",
                [(b"retry-after", b"1")],
                hang_up=True,
            )
        return bool(message.get("more_body", False))


def _check_announced(exchange: Exchange, most: int) -> None:
    encoding = exchange.given.get(b"content-encoding", b"identity").strip().lower()
    if encoding != b"identity":
        raise exchange.refuse(
            415,
            "unsupported_encoding",
            "Content-Encoding: send the body uncompressed",
            [(b"accept-encoding", b"identity")],
            hang_up=True,
        )
    announced = exchange.given.get(b"content-length")
    if announced is None:
        return
    if not announced.isdigit() or len(announced) > _LENGTH_DIGITS:
        raise exchange.refuse(400, "invalid_length", "Content-Length: not a number of bytes", hang_up=True)
    if int(announced) > most:
        raise _too_large(exchange, most)


def _too_large(exchange: Exchange, most: int) -> Exception:
    return exchange.refuse(
        413, "body_too_large", f"the body may have at most {most:,} bytes; send less at once", hang_up=True
    )
