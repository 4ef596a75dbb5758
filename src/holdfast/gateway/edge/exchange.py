"""One request and its answer, as the parts of the edge see it: what came with it, how far it is, how it ended.

Each part reads the exchange from the scope and leaves there what the others need; so the headers are walked once, and
sending and receiving are wrapped once.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import MutableMapping
from typing import Any, Protocol

from starlette.exceptions import HTTPException

from holdfast.gateway.edge.refusals import REQUEST_ID, Headers

EXCHANGE = "holdfast.exchange"
# These must answer however busy the gateway is, and whatever name a prober calls it by. They tell nothing.
PROBES = frozenset({"/healthz", "/readyz"})
UNMATCHED = "unmatched"
# What a proxy adds, each in its way. Nobody who is on this machine sends any of them.
OF_PROXIES = (
    b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip",
)  # fmt: skip
_SANE_ID = re.compile(rb"[A-Za-z0-9._~-]{1,100}")
_READ = frozenset(
    {
        b"authorization",
        b"content-encoding",
        b"content-length",
        b"host",
        b"traceparent",
        b"tracestate",
        b"transfer-encoding",
        b"x-request-id",
        *OF_PROXIES,
    }
)


class Refused(HTTPException):
    """The edge will not go on with this request; its exchange says why. Whatever the routes make of it is not sent.

    It is one of Starlette's own, so that a framework on the way does not take it for a fault.
    """


class Refusal:
    """What to answer instead."""

    __slots__ = ("code", "detail", "hang_up", "headers", "status")

    def __init__(self, status: int, code: str, detail: str, headers: Headers, hang_up: bool) -> None:
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers
        self.hang_up = hang_up


class Exchange:
    """`status` is 0 until an answer has begun. `error` is the name of what the routes did not catch."""

    __slots__ = (
        "charged",
        "complete",
        "disconnected",
        "error",
        "given",
        "has_body",
        "id",
        "method",
        "path",
        "rate_headers",
        "received",
        "refusal",
        "scope",
        "seconds",
        "sent",
        "span",
        "started_at",
        "status",
    )

    def __init__(self, scope: MutableMapping[str, Any]) -> None:
        self.started_at = time.perf_counter()
        self.scope = scope
        self.given = _picked(scope["headers"])
        self.id = _sane(self.given.get(b"x-request-id"))
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.has_body = self.given.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in self.given
        self.status = 0
        self.complete = False
        self.disconnected = False
        self.received = 0
        self.sent = 0
        self.seconds = 0.0
        self.refusal: Refusal | None = None
        self.error: str | None = None
        self.charged = b""
        self.rate_headers: tuple[tuple[bytes, bytes], ...] = ()
        self.span: Any = None
        scope[EXCHANGE] = self
        scope[REQUEST_ID] = self.id

    @property
    def route(self) -> str:
        """The template of the route that took it, never the path: a path may name a user."""
        return getattr(self.scope.get("route"), "path", UNMATCHED)

    def refuse(self, status: int, code: str, detail: str, headers: Headers = (), *, hang_up: bool = False) -> Refused:
        """To be raised. `hang_up`: nothing more is read from this connection."""
        self.refusal = Refusal(status, code, detail, headers, hang_up)
        return Refused(status, code)

    def end(self) -> None:
        self.seconds = time.perf_counter() - self.started_at


class Observer(Protocol):
    """Told of each exchange, twice."""

    def began(self, exchange: Exchange) -> None: ...

    def ended(self, exchange: Exchange) -> None: ...


def exchange_of(scope: MutableMapping[str, Any]) -> Exchange:
    found = scope[EXCHANGE]
    assert isinstance(found, Exchange)
    return found


def _picked(headers: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Those that the edge reads. One that was sent twice is joined, as the standard says; no single value looks so."""
    picked: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _READ:
            picked[name] = value if name not in picked else picked[name] + b"," + value
    return picked


def _sane(given: bytes | None) -> str:
    if given is not None and _SANE_ID.fullmatch(given):
        return given.decode("ascii")
    return os.urandom(16).hex()
