"""Looking up a server's name where nobody has to wait for it.

The system's lookup can be neither bounded nor cancelled, and where a name server is silent it takes half a minute. On
an event loop it would hold one of the few threads that all else there shares, and the end of the program with it. So a
name is first looked up in a thread of its own, one at a time; whoever asks for a connection waits for that as long as
its deadline allows.
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

# As long as that, a name that was found will be found again.
_KNOWN_SECONDS = 30.0


class Name:
    """The name of a server. One that is an address, or that a proxy is to look up, needs none of this."""

    def __init__(self, url: str) -> None:
        self._host = _host(url)
        self._needless = self._host in ("", "localhost") or _is_address(self._host) or _by_proxy(self._host)
        self._lock = threading.Lock()
        self._looking: Future[bool] | None = None
        self._known_until = 0.0

    async def found(self) -> bool:
        """Whether there is such a host."""
        if self._needless or time.monotonic() < self._known_until:
            return True
        # Whoever waits may give up; the lookup is everybody's.
        return await asyncio.shield(asyncio.wrap_future(self._under_way()))

    def _under_way(self) -> Future[bool]:
        with self._lock:
            if self._looking is None:
                self._looking = Future()
                threading.Thread(target=self._look, args=(self._looking,), name="holdfast-name", daemon=True).start()
            return self._looking

    def _look(self, answer: Future[bool]) -> None:
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
    """As it is asked for; nothing if no host can have that name, which is for the connection to say."""
    try:
        return httpx2.URL(url).raw_host.decode("ascii")
    except (httpx2.InvalidURL, UnicodeError):
        return ""


def _by_proxy(host: str) -> bool:
    """Whether a proxy is there, and this host is none of those that are reached without it."""
    return any(kind in getproxies() for kind in ("http", "https", "all")) and not proxy_bypass(host)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
