"""HTTP transport: pooled connections, one total deadline per call, and no retries.

If no response comes, the error says whether the request may have reached the server: that decides if a retry is safe.
Each event loop has its own connections, and so has a process after a fork; none are shared.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import urlsplit

import httpx2

from holdfast.client.dns import HostResolver
from holdfast.domain.secret import Secret
from holdfast.errors import StoreClosed

_MOST_CONNECTIONS = 100
# Shorter than a server's keep-alive: a call on a connection that is just being closed would be lost.
_IDLE_SECONDS = 4.0
_PIECE_BYTES = 64 * 1024

# Progress callback: the bytes of a request's body sent so far, and their total.
Sending = Callable[[int, int], None]


class NoResponse(Exception):
    """No response came. `sent` is true if the request may have reached the server."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent = sent


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An HTTP response, from the server or from a proxy."""

    status: int
    media_type: str
    body: bytes
    retry_after: str | None = None


class Body:
    """A request body that holds a key: neither its representation nor a traceback's frames show the content."""

    __slots__ = ("_content",)

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __len__(self) -> int:
        return len(self._content)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._content


class _Bearer(httpx2.Auth):
    """Adds the key to the header at the last moment, so that nothing else ever holds it."""

    def __init__(self, key: Secret) -> None:
        self._key = key

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        request.headers["Authorization"] = f"Bearer {self._key.revealed()}"
        yield request


class _Pool:
    """The connections of one event loop, and the number of calls in progress on them."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client
        self._under_way = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    @asynccontextmanager
    async def call(self) -> AsyncIterator[httpx2.AsyncClient]:
        self._under_way += 1
        self._quiet.clear()
        try:
            yield self.client
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._quiet.set()

    async def close(self) -> None:
        """Close after the calls in progress; each of them has a deadline."""
        await self._quiet.wait()
        await self.client.aclose()


class HttpTransport:
    def __init__(
        self,
        url: str,
        key: Secret | None,
        timeout_seconds: float,
        sending: Sending | None = None,
        *,
        max_answer_bytes: int | None = None,
    ) -> None:
        """A response larger than `max_answer_bytes` is not read to its end, and is returned without its body."""
        self.url = url
        self.timeout_seconds = timeout_seconds
        self._sending = sending
        self._max_answer_bytes = max_answer_bytes
        self._name = HostResolver(url)
        self._auth = None if key is None else _Bearer(key)
        self._lock = threading.Lock()
        self._pools: dict[asyncio.AbstractEventLoop, _Pool] = {}
        self._process = os.getpid()
        self._closed = False

    def __repr__(self) -> str:
        return f"Line({self.url!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a transport holds connections and a key; do not pickle it, open it again in the other process")

    async def call(
        self,
        method: str,
        path: str,
        body: bytes | Body | None = None,
        *,
        timeout_seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> HttpReply:
        """Send a request. An error is raised without its cause, which may hold the request and its key."""
        seconds = timeout_seconds or self.timeout_seconds
        # The deadline includes opening the pool, which takes a while with TLS.
        until = asyncio.get_running_loop().time() + seconds
        sent = _SendTracker()
        async with self._pool().call() as client:
            try:
                async with asyncio.timeout_at(until):
                    return await self._request(client, method, path, body, sent, headers)
            except TimeoutError:
                reason = f"did not answer within {seconds:g} s"
            except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, UnicodeError, OSError) as error:
                reason = _reason(error, reached=sent.begun)
        raise NoResponse(reason, sent=sent.begun)

    async def _request(
        self,
        client: httpx2.AsyncClient,
        method: str,
        path: str,
        body: bytes | Body | None,
        sent: _SendTracker,
        headers: Mapping[str, str] | None,
    ) -> HttpReply:
        if not await self._name.exists():
            raise httpx2.ConnectError("there is no host of this name")
        request = client.stream(
            method,
            self.url + path,
            content=_pieces(body, self._sending) if isinstance(body, bytes) and self._sending else body,
            headers={**_body_headers(body), **(headers or {})},
            auth=self._auth,
            extensions={"trace": sent.note},
        )
        async with request as response:
            response_headers = response.headers
            media_type = response_headers.get("content-type", "").partition(";")[0].strip().lower()
            found = await _read(response, self._max_answer_bytes)
            return HttpReply(response.status_code, media_type, found, response_headers.get("retry-after"))

    def _pool(self) -> _Pool:
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._closed:
                raise StoreClosed("this memory was closed; open it again")
            if os.getpid() != self._process:
                # After a fork, both processes have these connections: their requests would be mixed up.
                self._pools, self._process = {}, os.getpid()
                self._name = HostResolver(self.url)
            if loop not in self._pools:
                for ended in [known for known in self._pools if known.is_closed()]:
                    del self._pools[ended]
                self._pools[loop] = _Pool(_client(self.url))
            return self._pools[loop]

    async def close(self) -> None:
        """Refuse new calls, and wait for those in progress. Idempotent."""
        with self._lock:
            self._closed = True
            pools = self._pools if os.getpid() == self._process else {}
            self._pools = {}
        here = asyncio.get_running_loop()
        for loop, pool in pools.items():
            if loop is here:
                await pool.close()
            elif loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(pool.close(), loop))


def _body_headers(body: bytes | Body | None) -> dict[str, str]:
    return {} if body is None else {"Content-Type": "application/json", "Content-Length": str(len(body))}


async def _read(response: httpx2.Response, most: int | None) -> bytes:
    """Return the body, or nothing if it is larger than `most`; the rest of it is then never read.

    A bounded body is not decompressed: a small one could unpack to any size. We request no compression.
    """
    if most is None:
        return await response.aread()
    content = bytearray()
    async for piece in response.aiter_raw():
        content += piece
        if len(content) > most:
            return b""
    return bytes(content)


async def _pieces(body: bytes, sending: Sending) -> AsyncIterator[bytes]:
    """Yield the body in pieces. A request for the next piece means that the one before was sent."""
    for start in range(0, len(body), _PIECE_BYTES):
        yield body[start : start + _PIECE_BYTES]
        sending(min(start + _PIECE_BYTES, len(body)), len(body))


class _SendTracker:
    """Records when the request goes out. Before that, it can have had no effect."""

    def __init__(self) -> None:
        self.begun = False

    async def note(self, name: str, info: dict[str, Any]) -> None:
        if name.endswith("send_request_headers.started"):
            self.begun = True


def _client(url: str) -> httpx2.AsyncClient:
    host = urlsplit(url).hostname or ""
    own = host == "localhost" or host == "::1" or host.startswith("127.")
    # Loading the certificates is slow, and only TLS needs them.
    context: ssl.SSLContext | bool = url.startswith("https://")
    return httpx2.AsyncClient(
        timeout=None,  # one deadline covers the whole call
        verify=context,
        limits=httpx2.Limits(max_connections=_MOST_CONNECTIONS, keepalive_expiry=_IDLE_SECONDS),
        headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "holdfast"},
        # A proxy cannot reach this machine's loopback addresses.
        mounts={"http://": None, "https://": None, "all://": None} if own else None,
    )


_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (httpx2.ConnectError, "cannot be reached"),
    (httpx2.InvalidURL, "cannot be reached: the host name is invalid"),
    (UnicodeError, "cannot be reached: the host name is invalid"),
    (httpx2.ProxyError, "cannot be reached through the proxy"),
    (httpx2.RemoteProtocolError, "hung up, or answered something that is not HTTP"),
    (httpx2.TransportError, "lost the connection before it answered"),
)


def _reason(error: Exception, *, reached: bool) -> str:
    """Describe the error in our own words: a driver's may quote what was sent."""
    if _caused_by(error, lambda cause: isinstance(cause, ssl.SSLCertVerificationError)):
        return "has a certificate that is not trusted"
    if _caused_by(error, lambda cause: isinstance(cause, ssl.SSLError)) and not reached:
        return "failed the TLS handshake"
    return next((reason for kind, reason in _REASONS if isinstance(error, kind)), f"failed ({type(error).__name__})")


def _caused_by(error: BaseException | None, is_it: Callable[[BaseException], bool]) -> bool:
    while error is not None:
        if is_it(error):
            return True
        error = error.__cause__ or error.__context__
    return False
