"""Limits on requests: a rate per caller, the size and time of bodies, and the number at once.

`RateLimiter`: a token bucket per caller, reported in the `RateLimit` and `RateLimit-Policy` headers. A caller is
identified by its IP address until the routes have verified its key and call `charge_to`. From then on the key has its
own bucket, identified by its SHA-256. So invented keys, or one key written in many ways, gain nothing. No key is stored
here, and the number of buckets is bounded.

`BodyLimits`: a Content-Length that is too large is refused before anything is read. Bytes are counted as they arrive. A
body is refused when it is too large, too slow, or when all bodies together exceed the memory limit (backpressure: 503
with Retry-After).

`ConcurrencyLimit`: at most so many requests at once, with a bounded FIFO queue. Sheds load: beyond the queue, 503 with
Retry-After. A request takes a slot only when its whole body has arrived, so that slow senders block no one.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import math
import time
from collections import deque
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge.exchange import PROBES, Exchange, exchange_of

LIMITER = "holdfast.rates"
MOST_BUCKETS = 50_000
WINDOW_SECONDS = 60
# Size factors: a raw file, and one as base64 in JSON.
UPLOADS = {"/resources": 1.0, "/verbs/add_resource": 4 / 3}
UPLOAD_FACTOR = 10  # how many times longer an upload may take
FRAMING_BYTES = 64 * 1024  # overhead of multipart
# More digits are no valid length, and slow to parse.
_LENGTH_DIGITS = 18
# Operators need these under overload.
_ALWAYS = PROBES | {"/metrics"}


@dataclass(slots=True)
class TokenBucket:
    """A token bucket: the tokens that were left at the time `at`."""

    tokens: float
    at: float


class RateLimiter:
    """Rate limiter: one token bucket per caller, with a minute's worth of tokens and continuous refill."""

    def __init__(self, app: ASGIApp, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._most = float(per_minute)
        self._per_second = per_minute / WINDOW_SECONDS
        self._clock = clock
        # Least recently used first: that one is dropped when there are too many.
        self._buckets: dict[bytes, TokenBucket] = {}
        self._policy = (b"ratelimit-policy", b'"requests";q=%d;w=%d' % (per_minute, WINDOW_SECONDS))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            exchange = exchange_of(scope)
            if exchange.path not in PROBES:
                scope[LIMITER] = self
                self._charge(exchange)
        await self._app(scope, receive, send)

    def recharge(self, exchange: Exchange, key: str) -> None:
        """Charge the request to this verified key instead: return the token to the bucket charged before."""
        caller = _digest(key.encode("utf-8", "surrogatepass"))
        if exchange.charged == caller:
            return
        before = self._buckets.get(exchange.charged)
        if before is not None:
            before.tokens = min(self._most, before.tokens + 1)
        self._take(exchange, caller)

    def _charge(self, exchange: Exchange) -> None:
        authorization = exchange.given.get(b"authorization", b"")
        caller = _digest(authorization.partition(b" ")[2].strip())
        self._take(exchange, caller if caller in self._buckets else _address(exchange.scope))

    def _take(self, exchange: Exchange, caller: bytes) -> None:
        exchange.charged = caller
        now = self._clock()
        bucket = self._buckets.pop(caller, None)
        if bucket is None:
            bucket = TokenBucket(self._most, now)
            if len(self._buckets) >= MOST_BUCKETS:
                del self._buckets[next(iter(self._buckets))]
        else:
            bucket.tokens = min(self._most, bucket.tokens + (now - bucket.at) * self._per_second)
            bucket.at = now
        self._buckets[caller] = bucket
        is_empty = bucket.tokens < 1
        if not is_empty:
            bucket.tokens -= 1
        full_in = math.ceil((self._most - bucket.tokens) / self._per_second)
        left = (b"ratelimit", b'"requests";r=%d;t=%d' % (bucket.tokens, full_in))
        exchange.rate_headers = (self._policy, left)
        if is_empty:
            wait = max(1, math.ceil((1 - bucket.tokens) / self._per_second))
            raise exchange.refuse(
                429,
                "rate_limited",
                f"more than {self._most:.0f} requests a minute; try again in {wait} s",
                [(b"retry-after", str(wait).encode("ascii"))],
            )


def charge_to(scope: MutableMapping[str, Any], key: str) -> None:
    """Charge the request to a verified key. Raises an error that becomes a 429 if its bucket is empty."""
    limiter = scope.get(LIMITER)
    if isinstance(limiter, RateLimiter):
        limiter.recharge(exchange_of(scope), key)


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


def _address(scope: MutableMapping[str, Any]) -> bytes:
    client = scope.get("client")
    return str(client[0]).encode("utf-8", "surrogatepass") if client else b""


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
