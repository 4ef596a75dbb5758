"""DNS lookup of a server's name that blocks no other work.

The system's lookup can be neither bounded nor cancelled, and with a silent name server it takes half a minute. On an
event loop it would occupy one of the few threads that everything there shares, and delay the program's end. So a name
is first looked up in a thread of its own, one lookup at a time; a caller waits for it as long as its deadline allows.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
import time
from concurrent.futures import Future
from urllib.request import getproxies, proxy_bypass

import httpx2

# A successful lookup is cached for this long.
_KNOWN_SECONDS = 30.0


class HostResolver:
    """The host name of a server. An IP address, or a name that a proxy resolves, needs no lookup."""

    def __init__(self, url: str) -> None:
        self._host = _host(url)
        self._needless = self._host in ("", "localhost") or _is_address(self._host) or _by_proxy(self._host)
        self._lock = threading.Lock()
        self._looking: Future[bool] | None = None
        self._known_until = 0.0

    async def exists(self) -> bool:
        """Return whether the host exists."""
        if self._needless or time.monotonic() < self._known_until:
            return True
        # A caller may give up; the lookup is shared.
        return await asyncio.shield(asyncio.wrap_future(self._shared_lookup()))

    def _shared_lookup(self) -> Future[bool]:
        with self._lock:
            if self._looking is None:
                self._looking = Future()
                threading.Thread(target=self._lookup, args=(self._looking,), name="holdfast-name", daemon=True).start()
            return self._looking

    def _lookup(self, answer: Future[bool]) -> None:
        try:
            socket.getaddrinfo(self._host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            found = False
        else:
            found = True
            self._known_until = time.monotonic() + _KNOWN_SECONDS
        with self._lock:
            self._looking = None
        answer.set_result(found)


def _host(url: str) -> str:
    """Return the host as it is looked up; empty if it is invalid, which the connection then reports."""
    try:
        return httpx2.URL(url).raw_host.decode("ascii")
    except (httpx2.InvalidURL, UnicodeError):
        return ""


def _by_proxy(host: str) -> bool:
    """True if a proxy is configured, and this host is not exempt from it."""
    return any(kind in getproxies() for kind in ("http", "https", "all")) and not proxy_bypass(host)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
