"""Host allow-list: blocks DNS rebinding, where a web page points its own host name at this machine.

Where a request comes from gives no rights, so callers behind a proxy need the same credentials as all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.gateway.edge.exchange import PROBES, Exchange, exchange_of

_HOST = re.compile(rb"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")
_REMEMBERED = 1_000


class HostNames:
    """An allow-list of host names: exact names, `*.` and a name for all subdomains, or `*` for any."""

    def __init__(self, allowed: Iterable[str]) -> None:
        names = set(allowed)
        self.any = "*" in names
        self._exact = frozenset(name for name in names if not name.startswith("*"))
        self._below = tuple(name[1:] for name in names if name.startswith("*."))

    def allow(self, name: str) -> bool:
        return self.any or name in self._exact or name.endswith(self._below)


class HostAllowList:
    """Refuses requests whose Host header is not on the allow-list."""

    def __init__(self, app: ASGIApp, allowed: Iterable[str]) -> None:
        self._app = app
        self._names = HostNames(allowed)
        self._seen: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._check(exchange_of(scope))
        await self._app(scope, receive, send)

    def _check(self, exchange: Exchange) -> None:
        host = exchange.given.get(b"host", b"")
        if self._names.any or host in self._seen or exchange.path in PROBES:
            return
        name = parse_host(host)
        if name is None:
            raise exchange.refuse(
                400, "invalid_host", "a request needs exactly one Host header: a name and an optional port"
            )
        if not self._names.allow(name):
            raise exchange.refuse(
                421,
                "unknown_host",
                "the name in the Host header is not allowed here; the operator can add it with"
                " --allowed-host or HOLDFAST_ALLOWED_HOSTS",
            )
        if len(self._seen) < _REMEMBERED:
            self._seen.add(host)


def parse_host(host: bytes) -> str | None:
    """The host name in a Host header; None if the header is malformed."""
    match = _HOST.fullmatch(host)
    return match.group(1).decode("ascii").lower().rstrip(".") if match else None
