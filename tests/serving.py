"""A real server for tests: uvicorn in a thread, the gateway, an engine on a store of the test's own.

Who is calling is told by a token of the tests, or by the key of a user of the store. `answering` answers
as proxies and worse do.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

from holdfast.app import Engine, open_engine
from holdfast.domain.access import Actor, ActorKind
from holdfast.gateway.app import create_app
from holdfast.gateway.config import GatewayConfig
from holdfast.ports import Embedder
from holdfast.settings import Settings

OPERATOR_KEY = "operator-token-of-the-tests"
USER_KEY = "uk_of-ana-in-the-tests"
ANA = Actor(ActorKind.USER, "ana", "default")  # whose key that is
ACTORS = {USER_KEY: ANA, "uk_of-ben-in-the-tests": Actor(ActorKind.USER, "ben", "tenant")}


@dataclass(frozen=True, slots=True)
class Served:
    url: str
    engine: Engine


class _KnowsTheTests:
    """The users of a store, and those of the tests beside them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def actor_of(self, key: str) -> Actor | None:
        return ACTORS.get(key) or await self._engine.actor_of(key)


def gateway(engine: Engine) -> Any:
    """The whole service in front of an engine, as `holdfast serve` puts it together."""
    config = GatewayConfig(operator_token=OPERATOR_KEY, rate_per_minute=0, request_logs=False)
    return create_app(engine, _KnowsTheTests(engine), config)


class _Server(uvicorn.Server):
    """Tells when it listens; leaves signals alone."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an ASGI app."""
    # Named as TCP: asyncio sends small answers at once only on sockets that say so.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    server = _Server(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=10))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])), daemon=True)
    thread.start()
    assert server.up.wait(30), "the server did not start"
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()


@contextmanager
def served(location: str, embedder: str | Embedder = "fake") -> Iterator[Served]:
    """A memory at `location`, behind a server that does no background work of its own."""
    loop = asyncio.new_event_loop()
    engine = loop.run_until_complete(open_engine(location, Settings(), embedder=embedder, work=False, routed=True))
    try:
        with serving(gateway(engine)) as url:
            yield Served(url, engine)
    finally:
        loop.run_until_complete(engine.close())
        loop.close()


# --- servers that are none ------------------------------------------------------------------------------------------


def http(status: int, body: bytes = b"", media_type: str = "application/json", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


HANG = b"hang"
HANG_UP = b""


@contextmanager
def answering(*replies: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that gives these answers, one a request, each on a connection of its own; then the last for ever."""
    listening = socket.create_server(("127.0.0.1", 0))
    asked: list[bytes] = []
    held: list[socket.socket] = []

    def answer() -> None:
        for number in range(10_000):
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            try:
                asked.append(_request(connection))
                reply = replies[min(number, len(replies) - 1)]
                if reply == HANG:
                    held.append(connection)
                    continue
                connection.sendall(reply.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
            except OSError:
                pass
            connection.close()

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", asked
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        for connection in held:
            connection.close()
        thread.join(10)


def _request(connection: socket.socket) -> bytes:
    connection.settimeout(10)
    got = b""
    while b"\r\n\r\n" not in got:
        if not (more := connection.recv(65536)):
            return got
        got += more
    head, _, body = got.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length and (more := connection.recv(65536)):
        body += more
    return head + b"\r\n\r\n" + body


def whole_chain(error: BaseException | None) -> str:
    """All that a program might print of it: the chain, hidden parts of it too, and what our own frames hold."""
    found = ""
    while error is not None:
        found += f"{error} {error!r} {error.args} {vars(error)}"
        for frame in traceback.TracebackException.from_exception(error, capture_locals=True).stack:
            found += f"{frame.filename} {frame.locals}" if "/holdfast/" in frame.filename else ""
        error = error.__cause__ or error.__context__
    assert "/holdfast/" in found
    return found
