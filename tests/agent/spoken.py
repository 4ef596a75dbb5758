"""A real HTTP server that streams scripted answers in pieces, as model servers do."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Answer:
    """`pieces` are sent one by one, in chunks. Then: `end` properly, `cut` the connection, or `hold` it open.

    With `mute`, nothing is sent at all.
    """

    status: int = 200
    pieces: Sequence[bytes] = ()
    media_type: str = "text/event-stream"
    then: str = "end"


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Spoken:
    url: str
    requests: list[Request] = field(default_factory=list)
    left: threading.Event = field(default_factory=threading.Event)
    """Set when a client hung up while its answer was held."""

    @property
    def bodies(self) -> list[Any]:
        return [request.body for request in self.requests]


def failing(status: int, body: bytes = b'{"error": {"message": "canary", "type": "x", "code": "y"}}') -> Answer:
    return Answer(status, [body], "application/json")


@contextmanager
def speaking(*answers: Answer) -> Iterator[Spoken]:
    """Serve these answers, one per request; repeat the last one after that."""
    listening = socket.create_server(("127.0.0.1", 0))
    spoken = Spoken(f"http://127.0.0.1:{listening.getsockname()[1]}")

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=_answer, args=(connection, spoken, answers), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield spoken
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(10)


def _answer(connection: socket.socket, spoken: Spoken, answers: Sequence[Answer]) -> None:
    with connection:
        connection.settimeout(30)
        try:
            spoken.requests.append(_request(connection))
            answer = answers[min(len(spoken.requests), len(answers)) - 1]
            if answer.then == "mute":
                connection.recv(1)
                return
            head = f"HTTP/1.1 {answer.status} X\r\nContent-Type: {answer.media_type}\r\nConnection: close\r\n"
            connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
            for piece in answer.pieces:
                connection.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            if answer.then == "end":
                connection.sendall(b"0\r\n\r\n")
            elif answer.then == "hold" and connection.recv(1) == b"":
                spoken.left.set()
        except OSError:
            spoken.left.set()


def _request(connection: socket.socket) -> Request:
    got = b""
    while b"\r\n\r\n" not in got:
        if not (more := connection.recv(65536)):
            raise ConnectionError
        got += more
    head, _, body = got.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65536)
    return Request(first.split(" ")[1], headers, json.loads(body))
