"""One HTTP exchange (request and response): its state, shared by all layers of the edge, and the outermost layer.

Each layer reads the exchange from the ASGI scope and stores there what other layers need, so that headers are parsed
once, and send and receive are wrapped once.

`RequestMiddleware`, the outermost layer, assigns request ids, sends the edge's error responses, and notifies the
observers. It catches every error: one that the routes did not catch becomes a plain 500. Its text is neither sent nor
logged, because it may contain user content.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
import traceback
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.gateway.edge.problem_json import REQUEST_ID, Headers, problem_response

EXCHANGE = "holdfast.exchange"
# Probes must work under overload and with any Host header. They reveal nothing.
PROBES = frozenset({"/healthz", "/readyz"})
UNMATCHED = "unmatched"
_SANE_ID = re.compile(rb"[A-Za-z0-9._~-]{1,100}")
_READ = frozenset(
    {
        b"authorization",
        b"content-encoding",
        b"content-length",
        b"content-type",
        b"host",
        b"origin",
        b"sec-fetch-site",
        b"traceparent",
        b"tracestate",
        b"transfer-encoding",
        b"x-request-id",
    }
)
# Closing a socket with unread data makes the client lose the response: read a little more first.
LINGER_SECONDS = 1.0
LINGER_BYTES = 8 * 1024 * 1024
# Refusals of one caller: so many at once, the rest evenly spaced. None waits longer than the maximum.
IMMEDIATE_REFUSALS = 10
REFUSALS_PER_SECOND = 100
MAX_PACE_SECONDS = 2.0
MOST_PACED = 10_000
# A refusal that leaves a large body unread counts as so many: receiving that body and dropping it is costly.
LARGE_WEIGHT = 10
_SMALL_DIGITS = 5  # of a Content-Length: up to 99,999 bytes
_FRAMES = 12
log = logging.getLogger("holdfast.gateway")
_ALWAYS = {b"cache-control": b"no-store", b"x-content-type-options": b"nosniff"}


class EdgeRefusal(HTTPException):
    """The edge refuses this request; `Exchange.refusal` says why. A response of the routes is not sent.

    A subclass of Starlette's HTTPException, so that the framework does not treat it as an internal error.
    """


class Refusal(NamedTuple):
    """The error response to send. `hang_up`: close the connection after it."""

    status: int
    code: str
    detail: str
    headers: Headers = ()
    hang_up: bool = False


@dataclass(slots=True, eq=False)
class Exchange:
    """`status` is 0 until a response has started. `error` is the class name of an uncaught exception.

    `caller` identifies who takes the request's share of the service: an IP address, or the SHA-256 of a verified key.
    """

    scope: MutableMapping[str, Any]
    started_at: float = field(default_factory=time.perf_counter)
    given: dict[bytes, bytes] = field(init=False)
    id: str = field(init=False)
    method: str = field(init=False)
    path: str = field(init=False)
    has_body: bool = field(init=False)
    caller: bytes = field(init=False)
    status: int = 0
    complete: bool = False
    disconnected: bool = False
    received: int = 0
    sent: int = 0
    seconds: float = 0.0
    refusal: Refusal | None = None
    error: str | None = None
    charged: bytes = b""
    charged_key: str | None = field(default=None, repr=False)
    rate_headers: tuple[tuple[bytes, bytes], ...] = ()
    span: Any = None

    def __post_init__(self) -> None:
        scope = self.scope
        self.given = _pick_headers(scope["headers"])
        self.id = _to_request_id(self.given.get(b"x-request-id"))
        self.method = scope["method"]
        self.path = scope["path"]
        self.has_body = self.given.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in self.given
        self.caller = _address(scope)
        scope[EXCHANGE] = self
        scope[REQUEST_ID] = self.id

    @property
    def has_large_body(self) -> bool:
        """True if a body was announced that may be large. Only the edge's refusals ask."""
        announced = self.given.get(b"content-length", b"")
        return self.has_body and not (announced.isdigit() and len(announced) <= _SMALL_DIGITS)

    @property
    def route(self) -> str:
        """The template of the matched route, never the path: a path may contain a user id."""
        return getattr(self.scope.get("route"), "path", UNMATCHED)

    def refuse(
        self, status: int, code: str, detail: str, headers: Headers = (), *, hang_up: bool = False
    ) -> EdgeRefusal:
        """Return the error to raise. `hang_up`: close the connection after the response."""
        self.refusal = Refusal(status, code, detail, headers, hang_up)
        return EdgeRefusal(status, code)

    def end(self) -> None:
        self.seconds = time.perf_counter() - self.started_at


class Observer(Protocol):
    """Notified at the start and at the end of each exchange."""

    def on_start(self, exchange: Exchange) -> None: ...

    def on_end(self, exchange: Exchange) -> None: ...


def exchange_of(scope: MutableMapping[str, Any]) -> Exchange:
    found = scope[EXCHANGE]
    assert isinstance(found, Exchange)
    return found


def _address(scope: MutableMapping[str, Any]) -> bytes:
    """The caller's IP address. The prefix keeps it apart from digests: a proxy may send any text as an address."""
    client = scope.get("client")
    return b"address:" + (str(client[0]).encode("utf-8", "surrogatepass") if client else b"")


def _pick_headers(headers: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Pick the headers that the edge reads. Repeated ones are joined with a comma, so they match no valid value."""
    picked: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _READ:
            picked[name] = value if name not in picked else picked[name] + b"," + value
    return picked


def _to_request_id(value: bytes | None) -> str:
    if value is not None and _SANE_ID.fullmatch(value):
        return value.decode("ascii")
    return os.urandom(16).hex()


class RefusalPace:
    """Spaces out the refusals of each caller: repeating a refused request at once would cost more than serving it.

    The first ones are immediate. Each further one follows the one before it by an even interval.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # The time of each caller's last refusal. The least recently refused caller is dropped if there are too many.
        self._last: dict[bytes, float] = {}

    def delay(self, caller: bytes, weight: int = 1) -> float:
        """The seconds until the next refusal of this caller is due. `weight`: it costs as much as so many others."""
        now, interval = self._clock(), weight / REFUSALS_PER_SECOND
        idle = now - IMMEDIATE_REFUSALS * interval
        due = min(max(self._last.pop(caller, idle), idle) + interval, now + MAX_PACE_SECONDS)
        if len(self._last) >= MOST_PACED:
            del self._last[next(iter(self._last))]
        self._last[caller] = due
        return max(0.0, due - now)


class RequestMiddleware:
    def __init__(self, app: ASGIApp, observers: Sequence[Observer]) -> None:
        self._app = app
        self._observers = tuple(observers)
        self._pace = RefusalPace()

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

        async def completing(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                message["headers"] = _complete_headers(exchange, message.get("headers", ()))
            else:
                exchange.sent += len(message.get("body", b""))
                exchange.complete = not message.get("more_body", False)
            await send(message)

        async def sending(message: Message) -> None:
            # After a refusal, no other response is started; a body is sent only if its start was.
            starts = message["type"] == "http.response.start"
            if (starts and exchange.refusal is None) or (not starts and exchange.status):
                await completing(message)

        try:
            await self._app(scope, receiving, sending)
        except EdgeRefusal:
            pass  # the response is sent below
        except Exception as error:  # noqa: BLE001
            self._record_error(exchange, error)
        if exchange.error is not None and not exchange.status:
            exchange.refuse(500, "internal_error", f"internal error; the log has the details under {exchange.id}")
        if exchange.refusal is not None and not exchange.status:
            await self._refuse(exchange, exchange.refusal, receive, completing)
        # The server cuts off a response that was started but cannot be finished, so that it is not taken for complete.

    def _record_error(self, exchange: Exchange, error: Exception) -> None:
        if exchange.disconnected or exchange.refusal is not None:
            return  # reading an incomplete body fails; that is not an internal error
        exchange.error = type(error).__name__
        frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
        places = [f"{frame.filename.rpartition('site-packages/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
        log.error("a request failed", extra={"fields": {"id": exchange.id, "error": exchange.error, "frames": places}})

    async def _refuse(self, exchange: Exchange, refusal: Refusal, receive: Receive, send: Send) -> None:
        async def lingering(message: Message) -> None:
            if message["type"] == "http.response.body":
                await send({**message, "more_body": True})
                await _linger(receive)
                message["body"] = b""
            await send(message)

        weight = LARGE_WEIGHT if exchange.has_large_body else 1
        delay = self._pace.delay(exchange.charged or exchange.caller, weight)
        if delay:
            await asyncio.sleep(delay)
        status, code, detail, headers, hang_up = refusal
        if hang_up:
            headers = (*headers, (b"connection", b"close"))
        await problem_response(
            exchange.scope, lingering if hang_up and delay < MAX_PACE_SECONDS else send, status, code, detail, headers
        )

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
