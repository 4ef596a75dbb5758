"""Limits on requests: a rate per caller, the size and time of bodies, and the number at once, all shared fairly.

A caller is identified by its IP address until its key is verified and `charge_to` is called. From then on the key, as
its SHA-256, has its own share of everything. So invented keys, or one key written in many ways, gain nothing. No key is
stored here, and the number of callers that are remembered is bounded.

`RateLimiter`: a token bucket per caller, reported in the `RateLimit` and `RateLimit-Policy` headers.

`BodyLimits`: a Content-Length that is too large is refused before anything is read. Bytes are counted as they arrive. A
body is refused when it is too large, too slow, or when all bodies together exceed the memory limit (backpressure: 503
with Retry-After). One caller may fill half of that memory.

`ConcurrencyLimit`: at most so many requests at once, and few of each caller, with a queue per caller, served in turn.
Sheds load: beyond the queue, 503 with Retry-After. A request takes a slot only when its whole body has arrived, so that
slow senders block no one.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import math
import time
from collections import deque
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge.exchange import PROBES, Exchange, exchange_of

LIMITER = "holdfast.rates"
MOST_BUCKETS = 50_000
# Size factors: a raw file, and one as base64 in JSON.
UPLOADS = {"/resources": 1.0, "/verbs/add_resource": 4 / 3}
UPLOAD_FACTOR = 10  # how many times longer an upload may take
FRAMING_BYTES = 64 * 1024  # overhead of multipart
# A request that runs longer no longer counts for its caller's share.
SLOW_SECONDS = 0.25
# More digits are no valid length, and slow to parse.
_LENGTH_DIGITS = 18
# Operators need these under overload.
_ALWAYS = PROBES | {"/metrics"}


@dataclass(slots=True)
class TokenBucket:
    """A token bucket: the tokens that were left at the time `at`."""

    tokens: float
    at: float


def burst_of(per_minute: int) -> int:
    """The requests that may come at once: a tenth of a minute's, but at least 10, and at most half of a minute's."""
    return max(1, min(max(10, per_minute // 10), per_minute // 2))


class RateLimiter:
    """Rate limiter: one token bucket per caller, with continuous refill."""

    def __init__(self, app: ASGIApp, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._per_minute = per_minute
        self._most = float(burst_of(per_minute))
        self._per_second = per_minute / 60
        self._clock = clock
        # Least recently used first: that one is dropped when there are too many.
        self._buckets: dict[bytes, TokenBucket] = {}
        window = math.ceil(self._most / self._per_second)
        self._policy = (b"ratelimit-policy", b'"requests";q=%d;w=%d' % (self._most, window))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            exchange = exchange_of(scope)
            if exchange.path not in PROBES:
                scope[LIMITER] = self
                self._charge(exchange)
        await self._app(scope, receive, send)

    def recharge(self, exchange: Exchange, caller: bytes) -> None:
        """Charge the request to this verified caller instead: return the token to the bucket charged before."""
        if exchange.charged == caller:
            return
        before = self._buckets.get(exchange.charged)
        if before is not None:
            before.tokens = min(self._most, before.tokens + 1)
        self._take(exchange, caller)

    def _charge(self, exchange: Exchange) -> None:
        authorization = exchange.given.get(b"authorization", b"")
        caller = _digest(authorization.partition(b" ")[2].strip())
        self._take(exchange, caller if caller in self._buckets else exchange.caller)

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
                f"more than {self._per_minute} requests a minute, or {self._most:.0f} at once; try again in {wait} s",
                [(b"retry-after", str(wait).encode("ascii"))],
            )


def charge_to(scope: MutableMapping[str, Any], key: str) -> None:
    """Count the request for a verified key. Raises an error that becomes a 429 if its bucket is empty."""
    exchange = exchange_of(scope)
    if exchange.charged_key == key:
        return
    exchange.charged_key = key
    exchange.caller = _digest(key.encode("utf-8", "surrogatepass"))
    limiter = scope.get(LIMITER)
    if isinstance(limiter, RateLimiter):
        limiter.recharge(exchange, exchange.caller)


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


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
        self._held_of: dict[bytes, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = exchange_of(scope) if scope["type"] == "http" else None
        if exchange is None or not exchange.has_body:
            await self._app(scope, receive, send)
            return
        upload = exchange.path in UPLOADS
        most = self._most_of_uploads[exchange.path] if upload else self._most
        _check_announced(exchange, most)
        deadline = asyncio.get_running_loop().time() + self._seconds * (UPLOAD_FACTOR if upload else 1)
        arriving, holder = True, exchange.caller

        async def receiving() -> Message:
            nonlocal arriving, holder
            if not arriving:
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise exchange.refuse(
                    408, "body_too_slow", "the body did not arrive in time; send it faster", hang_up=True
                ) from None
            if holder != exchange.caller:  # the key has been verified
                self._hold(holder, -exchange.received)
                holder = exchange.caller
                self._hold(holder, exchange.received)
            arriving = self._count_bytes(exchange, message, most)
            return message

        try:
            await self._app(scope, receiving, send)
        finally:
            self._hold(holder, -exchange.received)

    def _hold(self, caller: bytes, size: int) -> int:
        """Count the bytes that are held for a caller; return their new number."""
        self._held += size
        held = self._held_of.pop(caller, 0) + size
        if held:
            self._held_of[caller] = held
        return held

    def _count_bytes(self, exchange: Exchange, message: Message, most: int) -> bool:
        """Count the received bytes. Return whether more will come."""
        if message["type"] != "http.request":
            return False
        size = len(message.get("body", b""))
        exchange.received += size
        held = self._hold(exchange.caller, size)
        if exchange.received > most:
            raise _too_large(exchange, most)
        # One body may be larger than a caller's share, if it is the only one.
        if self._held > self._most_of_all or held > max(self._most_of_all // 2, exchange.received):
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


@dataclass(slots=True, eq=False)
class _Share:
    """One caller's requests: the number that run, of which some are slow, and the queue of those that wait."""

    running: int = 0
    slow: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


@dataclass(slots=True, eq=False)
class _RequestSlot:
    """The slot of one request."""

    caller: bytes
    share: _Share
    timer: asyncio.TimerHandle | None = None
    is_slow: bool = False


class ConcurrencyLimit:
    """Runs at most `most` requests at once, and at most `most_of_one` of one caller; slow ones do not count for that.

    A slow request waits for something, such as a document or a provider, rather than computes. With them, a caller may
    run a quarter of all. The others wait, each for at most `wait_seconds`. Callers take turns: a free slot goes to the
    caller whose last turn is longest ago. Each may have as many requests waiting as run at most.
    """

    def __init__(self, app: ASGIApp, most: int, most_of_one: int, wait_seconds: float) -> None:
        self._app = app
        self._most = most
        self._most_of_one = min(most_of_one, most)
        self._most_with_slow = max(self._most_of_one, most // 4)
        self._wait_seconds = wait_seconds
        self._running = 0
        self._shares: dict[bytes, _Share] = {}
        # Callers with a queue that may run more, in the order of their turns.
        self._turns: dict[bytes, None] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = exchange_of(scope) if scope["type"] == "http" else None
        if exchange is None or exchange.path in _ALWAYS:
            await self._app(scope, receive, send)
            return
        slot: _RequestSlot | None = None

        async def receiving() -> Message:
            nonlocal slot
            message = await receive()
            if slot is None and not message.get("more_body", False):
                slot = await self._acquire_slot(exchange)
            return message

        if not exchange.has_body:
            slot = await self._acquire_slot(exchange)
        try:
            await self._app(scope, receive if slot is not None else receiving, send)
        finally:
            if slot is not None:
                self._release_slot(slot)

    async def _acquire_slot(self, exchange: Exchange) -> _RequestSlot:
        share = self._shares.get(exchange.caller)
        if share is None:
            share = self._shares[exchange.caller] = _Share()
        slot = _RequestSlot(exchange.caller, share)
        if self._running < self._most and not share.waiting and self._may_run(share):
            self._count_started(share)
        else:
            await self._wait_for_turn(exchange, slot)
        slot.timer = asyncio.get_running_loop().call_later(SLOW_SECONDS, self._mark_slow, slot)
        return slot

    async def _wait_for_turn(self, exchange: Exchange, slot: _RequestSlot) -> None:
        share = slot.share
        if len(share.waiting) >= self._most:
            raise self._overloaded_error(exchange)
        turn = asyncio.get_running_loop().create_future()
        share.waiting.append(turn)
        self._queue(slot.caller, share)
        try:
            async with asyncio.timeout(self._wait_seconds):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self._release_slot(slot)  # the slot was granted just as the wait ended
            else:
                with contextlib.suppress(ValueError):  # already removed by a grant
                    share.waiting.remove(turn)
                self._queue(slot.caller, share)
            if isinstance(error, TimeoutError):
                raise self._overloaded_error(exchange) from None
            raise

    def _may_run(self, share: _Share) -> bool:
        return share.running - share.slow < self._most_of_one and share.running < self._most_with_slow

    def _count_started(self, share: _Share) -> None:
        share.running += 1
        self._running += 1

    def _mark_slow(self, slot: _RequestSlot) -> None:
        slot.is_slow = True
        slot.share.slow += 1
        self._queue(slot.caller, slot.share)
        self._grant_slots()

    def _release_slot(self, slot: _RequestSlot) -> None:
        share = slot.share
        share.running -= 1
        self._running -= 1
        share.slow -= slot.is_slow
        if slot.timer is not None:
            slot.timer.cancel()
        self._queue(slot.caller, share)
        self._grant_slots()

    def _queue(self, caller: bytes, share: _Share) -> None:
        """Give the caller a turn if it waits for one and may run more. Forget a caller without requests."""
        if self._shares.get(caller) is not share:
            return  # forgotten already
        if share.waiting:
            if self._may_run(share):
                self._turns.setdefault(caller)
            return
        self._turns.pop(caller, None)
        if not share.running:
            del self._shares[caller]

    def _grant_slots(self) -> None:
        while self._turns and self._running < self._most:
            caller = next(iter(self._turns))
            del self._turns[caller]
            share = self._shares[caller]
            turn = share.waiting.popleft()
            if not turn.done():  # a caller that has just given up removes the rest of its traces itself
                turn.set_result(None)
                self._count_started(share)
            self._queue(caller, share)

    def _overloaded_error(self, exchange: Exchange) -> Exception:
        return exchange.refuse(
            503, "overloaded", "too many requests are in progress; try again shortly", [(b"retry-after", b"1")]
        )
