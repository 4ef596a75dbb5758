"""A real server on a free port, with the edge around a test app, and raw sockets as clients."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import uvloop

from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge import wrap_app
from holdfast.gateway.edge.observers import Metrics
from holdfast.gateway.server import Server, listen, logging_as_json
from serving import OPERATOR_KEY, Prompt

PATIENCE = 20.0  # timeout in seconds; only a failing test waits this long


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Line:
    """A raw client connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self._left = b""

    def send(self, data: bytes | str) -> Line:
        self.socket.sendall(data.encode() if isinstance(data, str) else data)
        return self

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        self.send(request(method, path, body, **headers))
        return self.answer()

    def answer(self) -> Answer:
        while b"\r\n\r\n" not in self._left:
            self._read()
        head, _, self._left = self._left.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", "0"))
        while len(self._left) < length:
            self._read()
        body, self._left = self._left[:length], self._left[length:]
        return Answer(int(first.split()[1]), headers, body)

    def is_closed(self) -> bool:
        """Wait until the peer closes the connection; data before that is dropped."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        return True

    def _read(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError(f"hung up after {self._left!r:.200}")
        self._left += data


def request(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    lines = {"host": "localhost", **({"content-length": str(len(body))} if body else {})}
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


class Obliging:
    """The app behind the edge. `/wait` responds when the test sets `go_on`; `seen` holds complete bodies."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.go_on = threading.Event()
        self.waiting = threading.Semaphore(0)
        self.disconnected = threading.Event()
        self.was_started = False
        self.was_stopped = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        acts = {"/early": self._early, "/fail": self._fail, "/wait": self._wait, "/cut": self._cut, "/big": self._big}
        await acts.get(scope["path"], self._echo)(receive, send)

    async def _lifespan(self, receive: Any, send: Any) -> None:
        await receive()
        self.was_started = True
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.was_stopped = True
        await send({"type": "lifespan.shutdown.complete"})

    async def _body(self, receive: Any) -> bytes:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.disconnected.set()
                raise ConnectionError("canary-disconnect")
            body += message.get("body", b"")
            more = message.get("more_body", False)
        self.seen.append(body)
        return body

    async def _echo(self, receive: Any, send: Any) -> None:
        body = await self._body(receive)
        await _say(send, 200, str(len(body)).encode())

    async def _early(self, receive: Any, send: Any) -> None:
        await _say(send, 401, b"no")

    async def _fail(self, receive: Any, send: Any) -> None:
        raise ValueError("canary-of-an-error " + (await self._body(receive)).decode())

    async def _wait(self, receive: Any, send: Any) -> None:
        await self._body(receive)
        self.waiting.release()
        await asyncio.to_thread(self.go_on.wait, PATIENCE)
        await _say(send, 200, b"waited")

    async def _cut(self, receive: Any, send: Any) -> None:
        await self._body(receive)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1000")]})
        await send({"type": "http.response.body", "body": b"some", "more_body": True})
        raise ValueError("canary-after-the-start")

    async def _big(self, receive: Any, send: Any) -> None:
        size = 64 * 1024 * 1024
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
        for _ in range(64):
            await send({"type": "http.response.body", "body": bytes(size // 64), "more_body": True})
        await send({"type": "http.response.body"})


async def _say(send: Any, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@dataclass
class Running:
    config: GatewayConfig
    server: Server
    metrics: Metrics
    log: io.StringIO
    app: Any
    _lines: list[Line] = field(default_factory=list)

    def line(self) -> Line:
        self._lines.append(Line(self.config.port))
        return self._lines[-1]

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        return self.line().ask(method, path, body, **headers)

    @property
    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]

    def count(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0

    def eventually(self, holds: Callable[[], bool]) -> bool:
        """Poll a condition: the server ends a request after its client has the response."""
        pause = threading.Event()
        return any(holds() or pause.wait(0.02) for _ in range(int(PATIENCE / 0.02)))

    def hang_up(self) -> None:
        for line in self._lines:
            line.socket.close()


class PromptServer(Prompt, Server):
    """The service's server, which stops as soon as a test is over."""


@contextlib.contextmanager
def running(app: Any = None, *, tracing: Any = None, guard: Any = None, **given: Any) -> Iterator[Running]:
    app = Obliging() if app is None else app
    config = GatewayConfig(**{"port": 0, "operator_token": OPERATOR_KEY, **given})
    metrics, log, up = Metrics(), io.StringIO(), threading.Event()
    sockets = listen(config)
    config = config.at(sockets[0].getsockname()[1])
    edge = wrap_app(app, config, metrics, guard=guard, tracing=tracing)
    server = PromptServer(edge, config, metrics, sockets, lambda _: up.set())
    with logging_as_json(log):
        thread = threading.Thread(target=lambda: uvloop.run(server.serve(sockets)))
        thread.start()
        try:
            assert up.wait(PATIENCE)
            started = Running(config, server, metrics, log, app)
            yield started
        finally:
            started.hang_up()
            if isinstance(app, Obliging):
                app.go_on.set()
            server.end()
            thread.join(PATIENCE)
            assert not thread.is_alive()
