"""What uvicorn leaves to a proxy and a gateway on its own cannot: connections that never come to a point.

uvicorn closes an idle connection after an answer, and nothing else: a client may take for ever to send its first line,
send headers without end, send a body that nobody wants any more, or never read its answer. Each has a bound here. None
costs an ordinary request a timer: they are set only when a request's headers come in pieces, or a client does not read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge.metrics import Metrics

MAX_HEADER_BYTES = 64 * 1024
MAX_PIPELINED = 64
# How long an answer may wait for a client that does not read, and a request that is answered for its end.
STALLED_SECONDS = 30.0


def guarded(config: GatewayConfig, metrics: Metrics) -> type[asyncio.Protocol]:
    """The protocol class for a server with these limits."""

    class Guarded(GuardedConnection):
        limits = config
        counts = metrics

    return Guarded


class GuardedConnection(HttpToolsProtocol):
    limits: GatewayConfig
    counts: Metrics

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        # Whether the headers of the request that comes next are not all there, and how much of them is.
        self._in_headers = True
        self._header_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.limits.max_connections:
            self._refuse(503, "Service Unavailable", "too_many_connections", "too many connections; try again shortly")
            return
        self._reading = self._after(self.limits.header_seconds, self._headers_too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_reading()
        self._forget_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_headers:
            # One read may hold the end of a request and the beginning of the next: counting it whole is near enough.
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES:
                self._refuse(431, "Request Header Fields Too Large", "headers_too_large", "the headers are too large")
            elif self._reading is None:
                self._reading = self._after(self.limits.header_seconds, self._headers_too_slow)
        elif self.cycle.response_complete and self._reading is None and self.timeout_keep_alive_task is None:
            # Between requests something came that begins none, and uvicorn has stopped its clock.
            self._reading = self._after(self.limits.idle_seconds, self._headers_too_slow)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_headers = True

    def on_headers_complete(self) -> None:
        self._in_headers = False
        self._header_bytes = 0
        self._forget_reading()
        super().on_headers_complete()
        if len(self.pipeline) > MAX_PIPELINED:
            self.counts.rejected("too_many_pipelined")
            self.transport.abort()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if self.cycle is not None and self.cycle.response_complete:
            self._forget_reading()

    def on_response_complete(self) -> None:
        unread = self.cycle is not None and self.cycle.response_complete and self.cycle.more_body
        super().on_response_complete()
        if self.transport.is_closing():
            self._must_be_written()
        elif unread and self._reading is None:
            # An answer before the end of the request, such as a refusal: the rest may still come, but not for ever.
            self._reading = self._after(STALLED_SECONDS, self._body_unwanted)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._must_be_written()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._must_be_written()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._forget_writing()

    def send_400_response(self, msg: str) -> None:
        """Called for what is no HTTP. An answer that has begun must not have another one in its middle."""
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.counts.rejected("invalid_http")
            self.transport.abort()
        else:
            self._refuse(400, "Bad Request", "invalid_http", "this is no HTTP request")

    def _after(self, seconds: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, callback)

    def _forget_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _forget_writing(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _must_be_written(self) -> None:
        """What was sent must be taken off us in time, also when we have closed: closing waits for it."""
        if self._writing is None:
            self._writing = self._after(STALLED_SECONDS, self._not_read)

    def _not_read(self) -> None:
        self.counts.rejected("answer_not_read")
        self.transport.abort()

    def _headers_too_slow(self) -> None:
        """Whoever has sent nothing has asked nothing, and is told nothing."""
        self._reading = None
        if self._header_bytes:
            self._refuse(408, "Request Timeout", "headers_too_slow", "the headers did not arrive in time")
        else:
            self.counts.rejected("connection_unused")
            self.transport.close()

    def _body_unwanted(self) -> None:
        self.counts.rejected("body_unwanted")
        self.transport.close()
        self._must_be_written()

    def _refuse(self, status: int, title: str, code: str, detail: str) -> None:
        """Answer before there is a request that any app could answer, and close."""
        self.counts.rejected(code)
        problem = {
            "type": f"urn:holdfast:problem:{code}",
            "title": title,
            "status": status,
            "detail": detail,
            "code": code,
        }
        body = json.dumps(problem, separators=(",", ":")).encode("ascii")
        head = (
            f"HTTP/1.1 {status} {title}\r\ncontent-type: application/problem+json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()
        self._must_be_written()
