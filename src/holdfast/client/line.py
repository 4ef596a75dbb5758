"""The line to a server: pooled connections, one total deadline per call, no call ever made twice.

Whoever gets no answer learns whether the request may have reached the server: that decides if trying again is safe.
An event loop has connections of its own, and so has a process after a fork; nothing of one is used in another.
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

from holdfast.client.names import Name
from holdfast.domain.secret import Secret
from holdfast.errors import StoreClosed

_MOST_CONNECTIONS = 100
# Less than servers keep an idle connection for: one that is just being closed would lose a call.
_IDLE_SECONDS = 4.0
_PIECE_BYTES = 64 * 1024

# Hears of a request's body how many bytes are out, and of how many.
Sending = Callable[[int, int], None]


class Lost(Exception):
    """No answer came. `sent` says whether the request may have reached the server."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent = sent


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, whoever wrote it."""

    status: int
    media_type: str
    body: bytes
    retry_after: str | None = None


class Body:
    """What is sent where a key is in it: no representation shows it, nor does a traceback with what its frames hold."""

    __slots__ = ("_content",)

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __len__(self) -> int:
        return len(self._content)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._content


class _Bearer(httpx2.Auth):
    """Puts the key into the header at the last moment, so that nothing else ever holds it."""

    def __init__(self, key: Secret) -> None:
        self._key = key

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        request.headers["Authorization"] = f"Bearer {self._key.revealed()}"
        yield request


class _Pool:
    """The connections of one event loop, and how many calls are under way on them."""

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
        """After what is under way; each of those calls has its deadline."""
        await self._quiet.wait()
        await self.client.aclose()


class Line:
    def __init__(
        self,
        url: str,
        key: Secret | None,
        timeout_seconds: float,
        sending: Sending | None = None,
        *,
        max_answer_bytes: int | None = None,
    ) -> None:
        """An answer larger than `max_answer_bytes` is not read to its end; what came of it is a `Reply` without it."""
        self.url = url
        self.timeout_seconds = timeout_seconds
        self._sending = sending
        self._max_answer_bytes = max_answer_bytes
        self._name = Name(url)
        self._auth = None if key is None else _Bearer(key)
        self._lock = threading.Lock()
        self._pools: dict[asyncio.AbstractEventLoop, _Pool] = {}
        self._process = os.getpid()
        self._closed = False

    def __repr__(self) -> str:
        return f"Line({self.url!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a line to a server holds connections and a key; open it again at the other end")

    async def call(
        self,
        method: str,
        path: str,
        body: bytes | Body | None = None,
        *,
        timeout_seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """The answer, or `Lost`. What went wrong is told anew: what was caught may hold the request, key and all."""
        seconds = timeout_seconds or self.timeout_seconds
        # From here on: the first call to a server opens a pool, and with TLS that takes a while.
        until = asyncio.get_running_loop().time() + seconds
        sent = _Sent()
        async with self._pool().call() as client:
            try:
                async with asyncio.timeout_at(until):
                    return await self._answered(client, method, path, body, sent, headers)
            except TimeoutError:
                reason = f"did not answer within {seconds:g} s"
            except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, UnicodeError, OSError) as error:
                reason = _reason(error, reached=sent.begun)
        raise Lost(reason, sent=sent.begun)

    async def _answered(
        self,
        client: httpx2.AsyncClient,
        method: str,
        path: str,
        body: bytes | Body | None,
        sent: _Sent,
        headers: Mapping[str, str] | None,
    ) -> Reply:
        if not await self._name.found():
            raise httpx2.ConnectError("there is no host of this name")
        asked = client.stream(
            method,
            self.url + path,
            content=_pieces(body, self._sending) if isinstance(body, bytes) and self._sending else body,
            headers={**_of_body(body), **(headers or {})},
            auth=self._auth,
            extensions={"trace": sent.note},
        )
        async with asked as response:
            answered = response.headers
            media_type = answered.get("content-type", "").partition(";")[0].strip().lower()
            found = await _read(response, self._max_answer_bytes)
            return Reply(response.status_code, media_type, found, answered.get("retry-after"))

    def _pool(self) -> _Pool:
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._closed:
                raise StoreClosed("this memory was closed; open it again")
            if os.getpid() != self._process:
                # The connections are the other process's too: what is sent on them would be mixed up.
                self._pools, self._process = {}, os.getpid()
                self._name = Name(self.url)
            if loop not in self._pools:
                for ended in [known for known in self._pools if known.is_closed()]:
                    del self._pools[ended]
                self._pools[loop] = _Pool(_client(self.url))
            return self._pools[loop]

    async def close(self) -> None:
        """Let nobody in any more, and wait for those who are in. Closing twice is closing once."""
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


def _of_body(body: bytes | Body | None) -> dict[str, str]:
    return {} if body is None else {"Content-Type": "application/json", "Content-Length": str(len(body))}


async def _read(response: httpx2.Response, most: int | None) -> bytes:
    """The answer's body, or nothing if it is larger than `most`; the rest of it is then never read.

    Bounded, it is taken as it came: unpacked, a small one could be of any size. We ask for none that is packed.
    """
    if most is None:
        return await response.aread()
    found = bytearray()
    async for piece in response.aiter_raw():
        found += piece
        if len(found) > most:
            return b""
    return bytes(found)


async def _pieces(body: bytes, sending: Sending) -> AsyncIterator[bytes]:
    """The body bit by bit; whoever asks for the next has sent the one before."""
    for start in range(0, len(body), _PIECE_BYTES):
        yield body[start : start + _PIECE_BYTES]
        sending(min(start + _PIECE_BYTES, len(body)), len(body))


class _Sent:
    """Notes when the request goes out. Before that, nothing can have come of it."""

    def __init__(self) -> None:
        self.begun = False

    async def note(self, name: str, info: dict[str, Any]) -> None:
        if name.endswith("send_request_headers.started"):
            self.begun = True


def _client(url: str) -> httpx2.AsyncClient:
    host = urlsplit(url).hostname or ""
    own = host == "localhost" or host == "::1" or host.startswith("127.")
    # Reading the certificates takes long, and without TLS nobody asks for them.
    context: ssl.SSLContext | bool = url.startswith("https://")
    return httpx2.AsyncClient(
        timeout=None,  # the one deadline is around the whole call
        verify=context,
        limits=httpx2.Limits(max_connections=_MOST_CONNECTIONS, keepalive_expiry=_IDLE_SECONDS),
        headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "holdfast"},
        # No proxy knows this machine as itself.
        mounts={"http://": None, "https://": None, "all://": None} if own else None,
    )


_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (httpx2.ConnectError, "cannot be reached"),
    (httpx2.InvalidURL, "cannot be reached: no host can have that name"),
    (UnicodeError, "cannot be reached: no host can have that name"),
    (httpx2.ProxyError, "cannot be reached by way of the proxy"),
    (httpx2.RemoteProtocolError, "hung up, or answered something that is not HTTP"),
    (httpx2.TransportError, "was lost before it answered"),
)


def _reason(error: Exception, *, reached: bool) -> str:
    """In our own words: those of a driver may quote what was sent."""
    if _caused_by(error, lambda cause: isinstance(cause, ssl.SSLCertVerificationError)):
        return "shows a certificate that is not trusted"
    if _caused_by(error, lambda cause: isinstance(cause, ssl.SSLError)) and not reached:
        return "does not speak TLS as it should"
    return next((reason for kind, reason in _REASONS if isinstance(error, kind)), f"failed ({type(error).__name__})")


def _caused_by(error: BaseException | None, is_it: Callable[[BaseException], bool]) -> bool:
    while error is not None:
        if is_it(error):
            return True
        error = error.__cause__ or error.__context__
    return False
