"""A real server for tests: uvicorn in a thread, the gateway, and an engine on a store of the test.

Callers authenticate with a token of the tests or with the key of a user of the store. `answering` serves raw bytes,
such as the answers of proxies and broken servers.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

import holdfast
from holdfast.app import Engine, open_engine
from holdfast.domain.access import Action, Actor, ActorKind
from holdfast.gateway.app import create_route_app
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge import wrap_app
from holdfast.gateway.edge.observers import Metrics
from holdfast.ports import Embedder, Verb
from holdfast.settings import Settings

OPERATOR_KEY = "operator-token-of-the-tests"
USER_KEY = "uk_of-ana-in-the-tests"
ANA = Actor(ActorKind.USER, "ana", "default")  # the owner of USER_KEY
ACTORS = {USER_KEY: ANA, "uk_of-ben-in-the-tests": Actor(ActorKind.USER, "ben", "tenant")}


@dataclass(frozen=True, slots=True)
class Served:
    url: str
    engine: Engine


class _Routes:
    """The service's routes in front of a replaceable engine. Creating them takes longer than most tests, and they keep
    no state, so they are created once and used by one engine after the other.

    Accepts the store's users and those of the tests.
    """

    def __init__(self) -> None:
        self.config = GatewayConfig(operator_token=OPERATOR_KEY, rate_per_minute=0, request_logs=False)
        self.metrics = Metrics()
        self.engine: Engine | None = None
        self.app = create_route_app(self, self, self.config, self.metrics)

    @property
    def sync_safe(self) -> bool:
        return self._behind.sync_safe

    @property
    def _behind(self) -> Engine:
        assert self.engine is not None, "nobody is served any more"
        return self.engine

    async def perform(self, actor: Actor, action: Action, make: Callable[[], Verb[Any]], *, space: str) -> Any:
        return await self._behind.perform(actor, action, make, space=space)

    async def close(self) -> None:
        await self._behind.close()

    async def actor_of(self, key: str) -> Actor | None:
        return ACTORS.get(key) or await self._behind.actor_of(key)


_idle: list[_Routes] = []


@contextmanager
def gateway(engine: Engine) -> Iterator[Any]:
    """The whole service in front of an engine, composed as by `holdfast serve`; its edge is new each time."""
    routes = _idle.pop() if _idle else _Routes()
    routes.engine = engine
    try:
        yield wrap_app(routes.app, routes.config, routes.metrics, guard=routes.app.state.guard)
    finally:
        routes.engine = None
        _idle.append(routes)


class Prompt(uvicorn.Server):
    """Reports when it listens, installs no signal handlers, and ends at once when told. uvicorn's own server polls ten
    times a second for its end and sleeps as long again before it ends.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop, self._told = asyncio.get_running_loop(), asyncio.Event()
        await super().startup(sockets)
        self.up.set()

    def end(self) -> None:
        """Stop the server; callable from any thread."""
        self.should_exit = True
        with suppress(AttributeError, RuntimeError):  # not begun, or already ended
            self._loop.call_soon_threadsafe(self._told.set)

    async def main_loop(self) -> None:
        ticks = 0
        while not await self.on_tick(ticks):
            ticks += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    await self._told.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for each in (*self.servers, *(sockets or ())):
            each.close()
        state = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                while state.connections or state.tasks:  # noqa: ASYNC110 - uvicorn does not signal their end
                    await asyncio.sleep(0.002)
        except TimeoutError:
            for task in state.tasks:
                task.cancel()
        await self.lifespan.shutdown()


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an ASGI app."""
    # With the protocol TCP: asyncio disables Nagle's algorithm only on sockets that name it.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    server = Prompt(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=10))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])), daemon=True)
    thread.start()
    assert server.up.wait(30), "the server did not start"
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.end()
        thread.join(30)
        listening.close()


@contextmanager
def served(location: str, embedder: str | Embedder = "fake") -> Iterator[Served]:
    """A memory at `location` behind a server without background work."""
    loop = asyncio.new_event_loop()
    engine = loop.run_until_complete(open_engine(location, Settings(), embedder=embedder, work=False, routed=True))
    try:
        with gateway(engine) as app, serving(app) as url:
            yield Served(url, engine)
    finally:
        loop.run_until_complete(engine.close())
        loop.close()


# --- fake servers ---------------------------------------------------------------------------------------------------


def http(status: int, body: bytes = b"", media_type: str = "application/json", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


HANG = b"hang"
HANG_UP = b""


@contextmanager
def answering(*replies: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that sends one reply per request, each on a new connection, and repeats the last one."""
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


_TLS_HANDSHAKE = b"\x16"


def _request(connection: socket.socket) -> bytes:
    connection.settimeout(10)
    got = b""
    # A TLS client sends nothing more until it is answered.
    while b"\r\n\r\n" not in got and not got.startswith(_TLS_HANDSHAKE):
        if not (more := connection.recv(65536)):
            return got
        got += more
    head, _, body = got.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length and (more := connection.recv(65536)):
        body += more
    return head + b"\r\n\r\n" + body


PACKAGE = Path(holdfast.__file__).parent


def is_our_frame(filename: str) -> bool:
    """True if the file is part of the package; a clone, with its environment, may be in a folder called `holdfast`."""
    return Path(filename).is_relative_to(PACKAGE)


def whole_chain(error: BaseException | None) -> str:
    """Everything a program might print of an error: the chain with its hidden parts, and the locals of our frames."""
    parts: list[str] = []
    our_frames = 0
    while error is not None:
        parts.append(f"{error} {error!r} {error.args} {vars(error)}")
        for frame in traceback.TracebackException.from_exception(error, capture_locals=True).stack:
            if is_our_frame(frame.filename):
                our_frames += 1
                parts.append(f"{frame.filename} {frame.locals}")
        error = error.__cause__ or error.__context__
    assert our_frames
    return "".join(parts)
