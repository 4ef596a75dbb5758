"""A gateway with injected faults: a real server on a real socket, with one fault per operation.

An operation without a fault works. A fault applies to every request of its operation. `refused` and `unaccepted` apply
to the connection, from the moment the operation before it was answered.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from holdfast.agent.config import MemoryGatewayConfig
from holdfast.domain.secret import Secret
from serving import _request, http

KEY = "uk_canary-0815-never-to-be-seen"
OPERATIONS = ("search", "add", "flush")
REFUSED, UNACCEPTED = "refused", "unaccepted"
# A slow server continues for this long unless it is stopped: much longer than any deadline in these tests.
_FOR_EVER_SECONDS = 20.0

Misdeed = Callable[[socket.socket, threading.Event], None]


@dataclass
class Faulty:
    """The received requests in order, the faults, and the results that a search returns."""

    url: str
    faults: Mapping[str, str]
    results: list[Any]
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def operations(self) -> list[str]:
        return [operation for operation, _ in self.asked]

    def bodies(self, operation: str) -> list[dict[str, Any]]:
        return [body for name, body in self.asked if name == operation]

    def config(self, **changes: Any) -> MemoryGatewayConfig:
        given: dict[str, Any] = {"base_url": self.url, "user_id": "ana", "user_key": Secret(KEY), "timeout_seconds": 20}
        return MemoryGatewayConfig(**{**given, **changes})


@contextmanager
def faulty(results: list[Any] | None = None, *, host: str = "127.0.0.1", **faults: str) -> Iterator[Faulty]:
    """Serve; `faults` map an operation to its fault, such as `add="500"`."""
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://{host}:{listening.getsockname()[1]}"
    gateway = Faulty(url, faults, [] if results is None else results)
    over = threading.Event()
    threads: list[threading.Thread] = []

    def accept() -> None:
        while not over.is_set():
            if _shut(gateway) is not None:
                return
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            # One at a time: the fault of the next connection depends on the outcome of this one.
            _serve(connection, gateway, over, threads, listening)

    acceptor = threading.Thread(target=accept, daemon=True)
    if _shut(gateway) == REFUSED:
        _close(listening)
    acceptor.start()
    try:
        yield gateway
    finally:
        over.set()
        _close(listening)
        for thread in [acceptor, *threads]:
            thread.join(10)


def _shut(gateway: Faulty) -> str | None:
    """Return the fault that keeps the next operation from getting a connection, if any."""
    number = len(gateway.asked)
    fault = gateway.faults.get(OPERATIONS[number % len(OPERATIONS)])
    return fault if fault in (REFUSED, UNACCEPTED) else None


def _close(listening: socket.socket) -> None:
    with contextlib.suppress(OSError):
        listening.shutdown(socket.SHUT_RDWR)
    listening.close()


def _serve(
    connection: socket.socket,
    gateway: Faulty,
    over: threading.Event,
    threads: list[threading.Thread],
    listening: socket.socket,
) -> None:
    """Read one request, answer it, and close the connection."""
    try:
        request = _request(connection)
        head, _, body = request.partition(b"\r\n\r\n")
        if not head:
            connection.close()
            return
        operation = head.split(b" ")[1].decode().rpartition("/")[2]
        gateway.asked.append((operation, json.loads(body)))
        if _shut(gateway) == REFUSED:
            # Close before answering: a client may send its next request as soon as it has the answer.
            _close(listening)
        fault = gateway.faults.get(operation)
        if fault in MISDEEDS:
            threads.append(threading.Thread(target=_misdo, args=(MISDEEDS[fault], connection, over), daemon=True))
            threads[-1].start()
            return
        told = ANSWERS[fault](gateway.asked[-1][1]) if fault in ANSWERS else well(operation, gateway)
        _send(connection, told)
    except OSError:
        pass
    connection.close()


def _misdo(misdeed: Misdeed, connection: socket.socket, over: threading.Event) -> None:
    with contextlib.suppress(OSError):
        misdeed(connection, over)
    connection.close()


def _send(connection: socket.socket, told: bytes) -> None:
    connection.sendall(told.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))


def well(operation: str, gateway: Faulty) -> bytes:
    """The answer of a working gateway."""
    if operation == "search":
        return json_answer({"results": gateway.results})
    return json_answer({"session_id": "chat:s", "status": "accumulated", "message_count": 2})


def json_answer(told: Any, status: int = 200) -> bytes:
    return http(status, json.dumps(told).encode())


# --- invalid answers: each is given the request, and some echo it ----------------------------------------------------

TEN_MEGABYTES = 10_000_000


def _echo(asked: dict[str, Any]) -> bytes:
    return json.dumps({"detail": "no", "asked": asked, "results": "none"}).encode()


ANSWERS: dict[str | None, Callable[[dict[str, Any]], bytes]] = {
    "401": lambda asked: http(401, _echo(asked), "application/problem+json"),
    "403": lambda asked: http(403, _echo(asked)),
    "429": lambda asked: http(429, _echo(asked), more="Retry-After: 3600\r\n"),
    "500": lambda asked: http(500, _echo(asked)),
    "503": lambda asked: http(503, b"<html>busy</html>", "text/html"),
    "redirect": lambda asked: http(307, more="Location: http://127.0.0.1:1/\r\n"),
    "empty": lambda asked: http(200),
    "no content": lambda asked: b"HTTP/1.1 204 X\r\n\r\n",
    "not JSON": lambda asked: http(200, b"<html>" + _echo(asked) + b"</html>"),
    "not text": lambda asked: http(200, b"\xff\xfe\x00\x01"),
    "a list": lambda asked: json_answer([asked]),
    "a number": lambda asked: http(200, b"5"),
    "cut off": lambda asked: b"HTTP/1.1 200 X\r\nContent-Length: 900\r\n\r\n" + b'{"results": [',
    "broken chunks": lambda asked: b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    "not HTTP": lambda asked: b"220 mail.example.org ESMTP\r\n",
    "endless headers": lambda asked: b"HTTP/1.1 200 X\r\n" + b"X-Filler: " + b"x" * 500_000 + b"\r\n\r\n",
    "deep": lambda asked: http(200, b'{"results": ' + b"[" * 500_000),
    "a long number": lambda asked: http(200, b'{"results": [], "n": ' + b"9" * 500_000 + b"}"),
    "a million lists": lambda asked: http(200, b'{"results": [' + b"[]," * 600_000 + b"[]]}"),
    "10 MB": lambda asked: http(200, b'{"results": [{"text": "' + b"x" * TEN_MEGABYTES + b'"}]}'),
    "10 MB of spaces": lambda asked: http(200, b" " * TEN_MEGABYTES + b'{"results": []}'),
    "10 MB of failure": lambda asked: http(500, b"x" * TEN_MEGABYTES),
    "packed": lambda asked: http(
        200, gzip.compress(b" " * TEN_MEGABYTES + b'{"results": []}'), more="Content-Encoding: gzip\r\n"
    ),
    "results: none": lambda asked: json_answer({"answer": asked}),
    "results: null": lambda asked: json_answer({"results": None}),
    "results: an object": lambda asked: json_answer({"results": {"0": asked}}),
    "results: a text": lambda asked: json_answer({"results": "none"}),
    "results: of texts": lambda asked: json_answer({"results": ["Lisbon", "Porto"]}),
    "results: of null": lambda asked: json_answer({"results": [None]}),
}


# --- slow servers ---------------------------------------------------------------------------------------------------


def _drip(connection: socket.socket, over: threading.Event, what: bytes) -> None:
    """Send one byte at a time, so that no single read waits for long."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    until = time.monotonic() + _FOR_EVER_SECONDS
    for byte in what * 1_000:
        if over.wait(0.02) or time.monotonic() > until:
            return
        connection.sendall(bytes([byte]))


def _slow_headers(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 X\r\nX-Slow: ")
    _drip(connection, over, b"x")


def _slow_body(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
    _drip(connection, over, b" ")


def _endless(connection: socket.socket, over: threading.Event) -> None:
    """Send a body without end, as fast as the client reads it."""
    connection.sendall(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n")
    until = time.monotonic() + _FOR_EVER_SECONDS
    while not over.is_set() and time.monotonic() < until:
        connection.sendall(b"10000\r\n" + b" " * 0x10000 + b"\r\n")


def _half_open(connection: socket.socket, over: threading.Event) -> None:
    """Keep the connection open and send nothing."""
    over.wait(_FOR_EVER_SECONDS)


def _half_closed(connection: socket.socket, over: threading.Event) -> None:
    connection.shutdown(socket.SHUT_WR)
    over.wait(_FOR_EVER_SECONDS)


def _reset(connection: socket.socket, over: threading.Event) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")


def _hang_up(connection: socket.socket, over: threading.Event) -> None:
    pass


MISDEEDS: dict[str | None, Misdeed] = {
    "slow headers": _slow_headers,
    "slow body": _slow_body,
    "endless": _endless,
    "half-open": _half_open,
    "half-closed": _half_closed,
    "reset": _reset,
    "hung up": _hang_up,
}
