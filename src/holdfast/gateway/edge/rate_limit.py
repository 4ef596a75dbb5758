"""Per-key token-bucket rate limit, reported in the `RateLimit` and `RateLimit-Policy` headers.

A caller is identified by its IP address until the routes have verified its key and call `charge_to`. From then on the
key has its own token bucket, identified by its SHA-256. So invented keys, or one key written in many ways, gain
nothing. No key is stored here, and the number of buckets is bounded.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, MutableMapping
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.gateway.edge.exchange import PROBES, Exchange, exchange_of

LIMITER = "holdfast.rates"
MOST_BUCKETS = 50_000
WINDOW_SECONDS = 60


class TokenBucket:
    """A token bucket: the tokens that were left at the time `at`."""

    __slots__ = ("at", "tokens")

    def __init__(self, tokens: float, at: float) -> None:
        self.tokens = tokens
        self.at = at


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
