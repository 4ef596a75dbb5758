"""The state of one HTTP exchange (request and response), shared by all layers of the edge.

Each layer reads the exchange from the ASGI scope and stores there what other layers need, so that headers are parsed
once, and send and receive are wrapped once.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import MutableMapping
from typing import Any, Protocol

from starlette.exceptions import HTTPException

from holdfast.gateway.edge.problem_json import REQUEST_ID, Headers

EXCHANGE = "holdfast.exchange"
# Probes must work under overload and with any Host header. They reveal nothing.
PROBES = frozenset({"/healthz", "/readyz"})
UNMATCHED = "unmatched"
# Headers that proxies add. Clients on this machine send none of them.
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


class EdgeRefusal(HTTPException):
    """The edge refuses this request; `Exchange.refusal` says why. A response of the routes is not sent.

    A subclass of Starlette's HTTPException, so that the framework does not treat it as an internal error.
    """


class Refusal:
    """The error response to send."""

    __slots__ = ("code", "detail", "hang_up", "headers", "status")

    def __init__(self, status: int, code: str, detail: str, headers: Headers, hang_up: bool) -> None:
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers
        self.hang_up = hang_up


class Exchange:
    """`status` is 0 until a response has started. `error` is the class name of an uncaught exception."""

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
        self.given = _pick_headers(scope["headers"])
        self.id = _to_request_id(self.given.get(b"x-request-id"))
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
