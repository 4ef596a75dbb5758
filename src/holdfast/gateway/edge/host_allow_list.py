"""Checks of the Host header, and of the Origin header of browsers.

The host allow-list blocks DNS rebinding, where a web page points its own host name at this machine. The origin check
blocks cross-site request forgery, where a page of another site makes the browser send a request that changes something.

Where a request comes from gives no rights, so callers behind a proxy need the same credentials as all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge.exchange import PROBES, Exchange, exchange_of

_HOST = re.compile(rb"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")
_REMEMBERED = 1_000
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
# The user's own doing, such as an address typed in, and pages of this very origin.
_OWN_SITES = (b"none", b"same-origin")


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
    """Refuses requests whose Host header is not on the allow-list, and changing requests of foreign pages."""

    def __init__(self, app: ASGIApp, config: GatewayConfig) -> None:
        self._app = app
        self._names = HostNames(config.hosts)
        self._origins = OriginCheck(config)
        self._seen: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            exchange = exchange_of(scope)
            self._check(exchange)
            if exchange.method not in _READING:
                self._origins.check(exchange)
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


class OriginCheck:
    """Refuses changing requests that a page of another origin makes a browser send.

    Browsers name the page's origin in `Origin`, its relation to this service in `Sec-Fetch-Site`, and let no page forge
    either. Other programs send neither header, and pass. The page's own origin is the name and port in the Host header,
    which is on the allow-list; a page on another port of this machine is another origin.
    """

    def __init__(self, config: GatewayConfig) -> None:
        self._configured = frozenset(origin.encode("ascii") for origin in config.origins)
        # If any host is allowed, a page can have any name, so that its own name proves nothing.
        self._trusts_host = "*" not in config.allowed_hosts

    def check(self, exchange: Exchange) -> None:
        origin = exchange.given.get(b"origin")
        if origin is None:
            if exchange.given.get(b"sec-fetch-site", b"none") in _OWN_SITES:
                return
        elif origin in self._configured or (self._trusts_host and origin.lower() == _own_origin(exchange)):
            return
        raise exchange.refuse(
            403,
            "foreign_origin",
            "a web page of another origin may change nothing here; the operator can allow its origin with"
            " HOLDFAST_ALLOWED_ORIGINS",
            hang_up=exchange.has_body,
        )


def _own_origin(exchange: Exchange) -> bytes:
    """The origin of a page that this service would send, as a browser writes it: without the scheme's own port."""
    scheme, host = str(exchange.scope.get("scheme", "http")), exchange.given.get(b"host", b"").lower()
    return scheme.encode("ascii") + b"://" + host.removesuffix(b":443" if scheme == "https" else b":80")


def parse_host(host: bytes) -> str | None:
    """The host name in a Host header; None if the header is malformed."""
    match = _HOST.fullmatch(host)
    return match.group(1).decode("ascii").lower().rstrip(".") if match else None
